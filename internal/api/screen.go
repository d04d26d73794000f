package api

import (
	"fmt"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/screen"
	"github.com/ptyd/ptyd/internal/vt"
)

// Screen is what a person sees of a session.
type Screen struct {
	Rows        []string     `json:"rows" doc:"From top to bottom, as many as the terminal has, without the blanks at their ends."`
	Cursor      ScreenCursor `json:"cursor"`
	Alt         bool         `json:"alt" doc:"The alternate screen is shown, that of full-screen programs."`
	Title       string       `json:"title" doc:"The window title that the program set."`
	Cwd         string       `json:"cwd" doc:"URL or path of the working directory that the program told by OSC 7."`
	Cols        int          `json:"cols"`
	RowCount    int          `json:"row_count"`
	Revision    uint64       `json:"revision" doc:"Grows with each byte of output and each resize: equal revisions are equal screens, as long as epoch and the daemon's worker stay."`
	Offset      uint64       `json:"offset" doc:"Bytes of output that are in it."`
	Epoch       string       `json:"epoch" doc:"What the offset counts under."`
	Approximate bool         `json:"approximate" doc:"It may differ from what was shown: the beginning of the output is no longer kept, or the size that the terminal had then is not known."`
	ANSI        string       `json:"ansi,omitempty" doc:"With format=ansi: the rows with their colours, each ended by CR LF but the last."`
	Cells       [][]Span     `json:"cells,omitempty" doc:"With format=cells: of each row the neighbouring cells of one style, without the empty ones at its end."`
}

// ScreenCursor is where the next character goes.
type ScreenCursor struct {
	Row     int  `json:"row" doc:"0 is the top row."`
	Col     int  `json:"col" doc:"0 is the first column."`
	Visible bool `json:"visible"`
}

// Span is neighbouring cells of one style.
type Span struct {
	Text           string `json:"text" doc:"Blanks for empty cells."`
	Col            int    `json:"col" doc:"Of the first cell, 0 is the first column."`
	Width          int    `json:"width" doc:"In columns."`
	Foreground     string `json:"fg,omitempty" doc:"A number from 0 to 255 of the palette, or #rrggbb; absent: the terminal's own."`
	Background     string `json:"bg,omitempty" doc:"As fg."`
	Underline      string `json:"underline,omitempty" doc:"single, double, curly, dotted or dashed."`
	UnderlineColor string `json:"underline_color,omitempty" doc:"As fg."`
	Bold           bool   `json:"bold,omitempty"`
	Dim            bool   `json:"dim,omitempty"`
	Italic         bool   `json:"italic,omitempty"`
	Blink          bool   `json:"blink,omitempty"`
	Inverse        bool   `json:"inverse,omitempty"`
	Invisible      bool   `json:"invisible,omitempty"`
	Strike         bool   `json:"strike,omitempty"`
	Overline       bool   `json:"overline,omitempty"`
	Link           string `json:"link,omitempty" doc:"URI."`
}

func (s *Server) sessionScreen(c *call, _ nothing) (Screen, error) {
	f := screen.Text
	switch name := c.query.Get("format"); name {
	case "", "text":
	case "ansi":
		f = screen.ANSI
	case "cells":
		f = screen.Cells
	default:
		return Screen{}, problem.Field("format", "%q is none of text, ansi and cells", clip(name))
	}
	info, err := s.find(c)
	if err != nil {
		return Screen{}, err
	}
	sc, err := s.Screens.Screen(c.r.Context(), info.ID, f)
	if err != nil {
		return Screen{}, err
	}
	out := Screen{
		Rows: sc.Rows, Alt: sc.Alt, Title: sc.Title, Cwd: sc.Cwd, Cols: sc.Cols, RowCount: len(sc.Rows),
		Cursor:   ScreenCursor{Row: sc.Cursor.Row, Col: sc.Cursor.Col, Visible: sc.Cursor.Visible},
		Revision: sc.Revision, Offset: sc.Offset, Epoch: fmt.Sprintf("%016x", sc.Epoch), Approximate: sc.Approximate, ANSI: string(sc.ANSI),
	}
	for _, row := range sc.Cells {
		spans := make([]Span, len(row))
		for i, sp := range row {
			spans[i] = spanOf(sp)
		}
		out.Cells = append(out.Cells, spans)
	}
	return out, nil
}

func spanOf(s vt.Span) Span {
	return Span{
		Text: s.Text, Col: s.Col, Width: s.Width, Foreground: color(s.Foreground), Background: color(s.Background),
		Underline: []string{"", "single", "double", "curly", "dotted", "dashed"}[min(max(s.Underline, 0), 5)], UnderlineColor: color(s.UnderlineColor),
		Bold: s.Bold, Dim: s.Dim, Italic: s.Italic, Blink: s.Blink, Inverse: s.Inverse, Invisible: s.Invisible,
		Strike: s.Strike, Overline: s.Overline, Link: s.Link,
	}
}

func color(c vt.Color) string {
	switch c.Kind {
	case vt.ColorIndexed:
		return fmt.Sprint(c.Value)
	case vt.ColorRGB:
		return fmt.Sprintf("#%06x", c.Value)
	}
	return ""
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/problem"
)

// jsonLine is v as one line of JSON.
func jsonLine(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // for people and jq, not for pages
	if err := enc.Encode(v); err != nil {
		// Only values that were decoded from JSON, or are made of plain
		// fields, come here.
		panic(fmt.Sprintf("encode JSON: %v", err))
	}
	return b.Bytes()
}

// emit writes to standard output in one write.
func emit(cmd *cobra.Command, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := cmd.OutOrStdout().Write(b)
	return err
}

// show prints v as JSON where that was asked for, else what text gives.
func show(cmd *cobra.Command, g *globals, v any, text func(w io.Writer)) error {
	if g.JSON {
		return emit(cmd, jsonLine(v))
	}
	var b bytes.Buffer
	if text != nil {
		text(&b)
	}
	return emit(cmd, b.Bytes())
}

// done is the JSON of a command that has nothing else to say.
type done struct {
	Session string `json:"session,omitempty"`
	Name    string `json:"name,omitempty"`
	OK      bool   `json:"ok"`
}

// table prints rows in columns that are as wide as they need to be. The last
// column is cut to what is left of width, where there is one.
func table(w io.Writer, width int, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = clean(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		column := 0
		for i, cell := range row {
			if i == len(row)-1 {
				if room := width - column; width > 0 && room > 0 && utf8.RuneCountInString(cell) > room {
					cell = string([]rune(cell)[:room-1]) + "…"
				}
				line.WriteString(cell)
				break
			}
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			column += widths[i] + 2
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// age is how long ago t was, in one unit.
func age(now, t time.Time) string {
	switch d := max(now.Sub(t), 0); {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	default:
		return strconv.Itoa(int(d.Hours()/24)) + "d"
	}
}

// when is a time for a table.
func when(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// quote is a command line as a shell would take it.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		plain := a != "" && !strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("-_./:=,+@%^", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r < 0x80
		})
		if words[i] = a; !plain {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// pairs reads K=V arguments.
func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, problem.Field(flag, "%q is not KEY=VALUE", kv)
		}
		m[k] = v
	}
	return m, nil
}

// byteSize is a flag of bytes, with a unit.
type byteSize int64

func (n *byteSize) String() string {
	if *n == 0 {
		return ""
	}
	return config.FormatSize(int64(*n))
}

func (n *byteSize) Type() string { return "size" }

func (n *byteSize) Set(s string) error {
	v, err := config.ParseSize(s)
	if err == nil {
		*n = byteSize(v)
	}
	return err
}

// duration is a flag that also takes days.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.ParseFloat(n, 64); err == nil && days >= 0 && days < 36500 {
			*d = duration(days * 24 * float64(time.Hour))
			return nil
		}
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("write a duration with its unit, such as 500ms, 90s, 5m, 2h or 7d")
	}
	*d = duration(v)
	return nil
}

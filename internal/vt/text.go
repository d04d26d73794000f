package vt

import (
	"strings"
	"unicode/utf8"
)

// Screen is what a person sees, as text.
type Screen struct {
	// Rows are the screen's, from top to bottom, without the blanks at their
	// ends.
	Rows []string
	// Lines are the rows with those joined that continue each other.
	Lines    []string
	Cursor   Cursor
	Alt      bool // the alternate screen, that of full-screen programs
	Title    string
	Cwd      string // as the program told it by OSC 7
	Cols     int
	Revision uint64
}

// Cursor is where the next character goes, zero-based. Pending says that it
// stands past the last column, which Col names, and what comes wraps.
type Cursor struct {
	Row, Col         int
	Visible, Pending bool
}

// Text returns the screen.
func (t *Terminal) Text() Screen {
	s := Screen{
		Rows: make([]string, len(t.s.rows)), Cursor: t.Cursor(), Alt: t.Alt(),
		Title: t.title, Cwd: t.cwd, Cols: t.cols, Revision: t.rev,
	}
	var line strings.Builder
	var buf []byte
	for y, r := range t.s.rows {
		buf = t.rowText(buf[:0], r)
		s.Rows[y] = strings.TrimRight(string(buf), " ")
		if y > 0 && !r.wrapped {
			s.Lines = append(s.Lines, strings.TrimRight(line.String(), " "))
			line.Reset()
		}
		line.Write(buf)
	}
	s.Lines = append(s.Lines, strings.TrimRight(line.String(), " "))
	return s
}

// Cursor returns where the cursor is.
func (t *Terminal) Cursor() Cursor {
	return Cursor{
		Row: t.s.y, Col: min(t.s.x, t.cols-1),
		Visible: !t.modes.hidden, Pending: t.s.x >= t.cols,
	}
}

// rowText appends all columns of r, blanks for the empty ones.
func (t *Terminal) rowText(dst []byte, r *row) []byte {
	for i, c := range r.cells {
		switch {
		case c.hasContent():
			if ch := c.content(); ch < utf8.RuneSelf {
				dst = append(dst, byte(ch))
			} else {
				dst = t.appendText(dst, c)
			}
		case isHalf(c) && i > 0 && r.cells[i-1].width() == 2:
		default:
			// A column that a wide character left because it did not
			// fit is no blank of the text.
			if i < t.cols-1 || !t.leftByWide(r) {
				dst = append(dst, ' ')
			}
		}
	}
	return dst
}

// leftByWide says that the row after r continues it with a wide character.
func (t *Terminal) leftByWide(r *row) bool {
	for y, other := range t.s.rows {
		if other == r {
			return y+1 < len(t.s.rows) && t.s.rows[y+1].wrapped && t.s.rows[y+1].width(0) == 2
		}
	}
	return false
}

// HistoryLen is the number of lines above the normal screen.
func (t *Terminal) HistoryLen() int { return t.normal.base() }

// HistoryLine returns line i of those, 0 the oldest, without the blanks at its
// end, and whether it continues the one before.
func (t *Terminal) HistoryLine(i int) (text string, wrapped bool) {
	t.tidy()
	r := t.decode(i)
	return strings.TrimRight(string(t.rowText(nil, r)), " "), r.wrapped
}

// ChangedSince returns the rows that changed after a revision; all says that the
// whole screen may have.
func (t *Terminal) ChangedSince(rev uint64) (rows []int, all bool) {
	if t.moved > rev || rev > t.rev {
		return nil, true
	}
	for y, r := range t.s.rows {
		if r.rev > rev {
			rows = append(rows, y)
		}
	}
	return rows, false
}

// AppendANSI appends the rows of the screen, with colours, each ended by CR LF
// but the last: what a terminal shows that is at least as large.
func (t *Terminal) AppendANSI(dst []byte) []byte {
	e := encoder{t: t, dst: dst}
	for y, r := range t.s.rows {
		if y > 0 {
			e.text("\r\n")
		}
		e.row(&row{cells: r.cells})
	}
	return e.dst
}

// ColorKind says how a Color is named.
type ColorKind uint8

// Colours are the terminal's own, one of 256 by number, or red, green and blue
// as 0xRRGGBB.
const (
	ColorDefault ColorKind = iota
	ColorIndexed
	ColorRGB
)

// Color of text, background or underline.
type Color struct {
	Kind  ColorKind
	Value uint32
}

func colorOf(c uint32) Color {
	switch c & colorMode {
	case 0:
		return Color{}
	case colorRGB:
		return Color{ColorRGB, c & colorRGBMask}
	default:
		return Color{ColorIndexed, c & 0xff}
	}
}

// Span is neighbouring cells of one style.
type Span struct {
	Text       string // blanks for empty cells
	Col, Width int    // in columns
	Foreground Color
	Background Color
	// Underline is 0 for none, else its kind as SGR 4 numbers it: 1 single,
	// 2 double, 3 curly, 4 dotted, 5 dashed.
	Underline      int
	UnderlineColor Color

	Bold, Dim, Italic, Blink, Inverse, Invisible, Strike, Overline bool

	Link string // URI
}

// Cells returns row y of the screen as spans, without the empty cells of no
// colour at its end.
func (t *Terminal) Cells(y int) []Span {
	if y < 0 || y >= len(t.s.rows) {
		return nil
	}
	r := t.s.rows[y]
	n := len(r.cells)
	for n > 0 && r.cells[n-1] == 0 {
		n--
	}
	var spans []Span
	for i := 0; i < n; {
		id := r.cells[i].style()
		end := i + 1
		for end < n && r.cells[end].style() == id {
			end++
		}
		st := t.styles.list[id]
		sp := Span{
			Col: i, Width: end - i,
			Text:       string(t.rowText(nil, &row{cells: r.cells[i:end]})),
			Foreground: colorOf(st.fg), Background: colorOf(st.bg),
			Underline: int(st.under >> underlineShift),
			Bold:      st.fg&fgBold != 0, Dim: st.bg&bgDim != 0, Italic: st.bg&bgItalic != 0,
			Blink: st.fg&fgBlink != 0, Inverse: st.fg&fgInverse != 0, Invisible: st.fg&fgInvisible != 0,
			Strike: st.fg&fgStrike != 0, Overline: st.bg&bgOverline != 0,
			Link: t.styles.links[st.link].uri,
		}
		if c := st.under & colorMask; c != colorMask {
			sp.UnderlineColor = colorOf(c)
		}
		spans = append(spans, sp)
		i = end
	}
	return spans
}

// Mark is one OSC 133 of a shell: 'A' a prompt begins, 'B' the command line,
// 'C' the output, 'D' the command ended. Line counts from the oldest line of the
// scrollback.
type Mark struct {
	Line   int
	Kind   byte
	Params string // as the shell gave them, "0" or "0;aid=…" of D
}

// Marks returns those of the normal screen and its scrollback, oldest first.
func (t *Terminal) Marks() []Mark {
	t.tidy()
	var all []Mark
	add := func(line int, r *row) {
		for _, m := range r.marks {
			all = append(all, Mark{Line: line, Kind: m.kind, Params: strings.TrimPrefix(m.data, ";")})
		}
	}
	h := t.normal.hist
	for i := range h.len() {
		if h.flags(i)&lineMarked != 0 {
			add(i, t.decode(i))
		}
	}
	for y, r := range t.normal.rows {
		add(h.len()+y, r)
	}
	return all
}

package vt

import (
	"reflect"
	"strings"
	"testing"
)

// show writes a stream to a small terminal and returns its rows, with "|"
// between them and without the empty ones at the end.
func show(t *Terminal) string {
	return strings.TrimRight(strings.Join(t.Text().Rows, "|"), "|")
}

// TestScreen holds what each kind of sequence does to a screen of 10 by 4, as
// xterm.js 6.0.0 shows it.
func TestScreen(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		x, y           int
	}{
		{"text", "hello", "hello", 5, 0},
		{"carriage return", "hello\rJ", "Jello", 1, 0},
		{"line feed keeps the column", "ab\ncd", "ab|  cd", 4, 1},
		{"pending wrap", "0123456789", "0123456789", 10, 0},
		{"wrap", "0123456789a", "0123456789|a", 1, 1},
		{"backspace from pending wrap", "0123456789\b\bX", "0123456X89", 8, 0},
		{"no wrap", "\x1b[?7l0123456789abc", "012345678c", 10, 0},
		{"scroll", "1\r\n2\r\n3\r\n4\r\n5", "2|3|4|5", 1, 3},
		{"tab", "a\tb", "a       b", 9, 0},
		{"tab stops", "\x1b[3g\x1b[5G\x1bH\r\tx", "    x", 5, 0},
		{"back tab", "\x1b[10G\x1b[Zx", "        x", 9, 0},
		{"cursor", "\x1b[2;3Hx\x1b[Ay\x1b[2Dz", "  zy|  x", 3, 0},
		{"cursor beyond", "\x1b[99;99Hx", "|||         x", 10, 3},
		{"next line", "ab\x1b[Ecd\x1b[Fe", "eb|cd", 1, 0},
		{"VPA HPA", "\x1b[3d\x1b[4`x", "||   x", 4, 2},
		{"erase right", "hello\x1b[3G\x1b[K", "he", 2, 0},
		{"erase left", "hello\x1b[3G\x1b[1K", "   lo", 2, 0},
		{"erase below", "a\r\nb\r\nc\x1b[2;1H\x1b[J", "a", 0, 1},
		{"erase above", "a\r\nb\r\nc\x1b[2;1H\x1b[1J", "||c", 0, 1},
		{"erase all", "a\r\nb\x1b[2J", "", 1, 1},
		{"ICH", "abc\r\x1b[2@", "  abc", 0, 0},
		{"DCH", "abcdef\r\x1b[2P", "cdef", 0, 0},
		{"ECH", "abcdef\r\x1b[2X", "  cdef", 0, 0},
		{"insert mode", "abc\r\x1b[4hxy", "xyabc", 2, 0},
		{"IL", "a\r\nb\r\nc\x1b[2;2H\x1b[L", "a||b|c", 0, 1},
		{"DL", "a\r\nb\r\nc\x1b[2;2H\x1b[M", "a|c", 0, 1},
		{"SU", "a\r\nb\r\nc\x1b[S", "b|c", 1, 2},
		{"SD", "a\r\nb\r\nc\x1b[T", "|a|b|c", 1, 2},
		{"REP", "ab\x1b[3b", "abbbb", 5, 0},
		{"REP after a control is nothing", "ab\r\x1b[3b", "ab", 0, 0},
		{"region", "\x1b[2;3r1\r\n2\r\n3\r\n4", "1|3|4", 1, 2},
		{"origin", "\x1b[2;3r\x1b[?6h\x1b[1;1Hx\x1b[9;1Hy", "|x|y", 1, 2},
		{"reverse index", "a\x1b[H\x1bMb", "b|a", 1, 0},
		{"DECALN", "\x1b#8", "EEEEEEEEEE|EEEEEEEEEE|EEEEEEEEEE|EEEEEEEEEE", 0, 0},
		{"save and restore", "ab\x1b7\x1b[3;3Hx\x1b8y", "aby||  x", 3, 0},
		{"line drawing", "\x1b(0lqk\x1b(Bx", "┌─┐x", 4, 0},
		{"shift out", "\x1b)0q\x0eq\x0fq", "q─q", 3, 0},
		{"wide", "a中b", "a中b", 4, 0},
		{"wide wraps", "012345678中", "012345678|中", 2, 1},
		{"half a wide one is nothing", "中\x1b[2Gx", " x", 2, 0},
		{"combining", "e\u0301x", "e\u0301x", 2, 0},
		{"ZWJ joins, widths do not", "👩\u200d👧", "👩\u200d👧", 4, 0},
		{"alternate screen", "a\x1b[?1049hb", " b", 2, 0},
		{"alternate and back", "a\x1b[?1049hb\x1b[?1049lc", "ac", 2, 0},
		{"SL", "abc\x1b[ @", "bc", 3, 0},
		{"SR", "abc\x1b[ A", " abc", 3, 0},
		{"DECIC", "abc\r\x1b['}", " abc", 0, 0},
		{"DECDC", "abc\r\x1b['~", "bc", 0, 0},
		{"DECSED keeps what is protected", "\x1b[1\"qa\x1b[0\"qb\x1b[?2J", "a", 2, 0},
		{"C1", "ab\u009b2Dx", "xb", 1, 0},
		{"OSC is not shown", "a\x1b]0;t\x07b\x1b]2;u\x1b\\c", "abc", 3, 0},
		{"DCS is not shown", "a\x1bPq#0\x1b\\b", "ab", 2, 0},
		{"APC is not shown", "a\x1b_x\x1b\\b", "ab", 2, 0},
		{"CAN ends a sequence", "a\x1b[3\x18b", "ab", 2, 0},
		{"bad UTF-8 is nothing", "a\xff\xc3b\xe4\xb8c", "abc", 3, 0},
		{"LNM", "\x1b[20ha\nb", "a|b", 1, 1},
		{"reverse wrap", "\x1b[?45h0123456789a\b\b\bX", "01234567X9|a", 9, 0},
		{"RIS", "abc\x1bcx", "x", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			vt := New(Options{Cols: 10, Rows: 4})
			vt.Write([]byte(c.in))
			if got := show(vt); got != c.want {
				t.Errorf("%q shows %q, not %q", c.in, got, c.want)
			}
			if vt.s.x != c.x || vt.s.y != c.y {
				t.Errorf("%q leaves the cursor at %d,%d, not %d,%d", c.in, vt.s.x, vt.s.y, c.x, c.y)
			}
		})
	}
}

func TestColours(t *testing.T) {
	rgb := func(v uint32) Color { return Color{ColorRGB, v} }
	index := func(v uint32) Color { return Color{ColorIndexed, v} }
	for in, want := range map[string]Span{
		"0":                    {},
		"1;2;3;5;7;8;9;53":     {Bold: true, Dim: true, Italic: true, Blink: true, Inverse: true, Invisible: true, Strike: true, Overline: true},
		"31;42":                {Foreground: index(1), Background: index(2)},
		"91;102":               {Foreground: index(9), Background: index(10)},
		"38;5;200":             {Foreground: index(200)},
		"38:5:200":             {Foreground: index(200)},
		"48;2;1;2;3":           {Background: rgb(0x010203)},
		"48:2::1:2:3":          {Background: rgb(0x010203)},
		"38;2;1;2;3;1":         {Foreground: rgb(0x010203), Bold: true},
		"31;39":                {},
		"4":                    {Underline: 1},
		"21":                   {Underline: 2},
		"4:3;58:5:9":           {Underline: 3, UnderlineColor: index(9)},
		"4:5;58:2::9:8:7":      {Underline: 5, UnderlineColor: rgb(0x090807)},
		"4:3;58;2;9;8;7;59":    {Underline: 3},
		"4;24":                 {},
		"1;3;22;23":            {},
		"4:0":                  {},
		"38;2;1;2;3;38;5;4;49": {Foreground: index(4)},
	} {
		vt := New(Options{Cols: 10, Rows: 2})
		vt.Write([]byte("\x1b[" + in + "mx"))
		want.Text, want.Width = "x", 1
		if got := vt.Cells(0); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("SGR %s: %+v, not %+v", in, got, want)
		}
	}
}

func TestLinks(t *testing.T) {
	vt := New(Options{Cols: 20, Rows: 2})
	vt.Write([]byte("a\x1b]8;id=1;http://x\x07b\x1b[mc\x1b]8;;\x07d"))
	got := ""
	for _, s := range vt.Cells(0) {
		got += s.Text + "<" + s.Link + ">"
	}
	if want := "a<>bc<http://x>d<>"; got != want {
		t.Errorf("links %s, not %s", got, want)
	}
}

func TestTextJoinsWrappedRows(t *testing.T) {
	vt := New(Options{Cols: 5, Rows: 6})
	vt.Write([]byte("hello world\r\nab中中\x1b]7;file:///tmp\x07\x1b]2;title\x07\x1b[?25l"))
	s := vt.Text()
	if want := []string{"hello world", "ab中中", ""}; !reflect.DeepEqual(s.Lines, want) {
		t.Errorf("lines %q, not %q", s.Lines, want)
	}
	if s.Title != "title" || s.Cwd != "file:///tmp" || s.Cursor.Visible {
		t.Errorf("%+v", s)
	}
}

func TestChangedSince(t *testing.T) {
	vt := New(Options{Cols: 10, Rows: 4})
	vt.Write([]byte("a\r\nb"))
	rev := vt.Revision()
	if rows, all := vt.ChangedSince(rev); len(rows) > 0 || all {
		t.Errorf("nothing changed: %v %v", rows, all)
	}
	vt.Write([]byte("\x1b[3;1Hc"))
	if rows, all := vt.ChangedSince(rev); !reflect.DeepEqual(rows, []int{2}) || all {
		t.Errorf("row 2 changed: %v %v", rows, all)
	}
	vt.Write([]byte("\r\n\n\n"))
	if _, all := vt.ChangedSince(rev); !all {
		t.Error("the screen scrolled")
	}
	if _, all := vt.ChangedSince(vt.Revision() + 1); !all {
		t.Error("a revision that never was")
	}
}

func TestMarks(t *testing.T) {
	vt := New(Options{Cols: 10, Rows: 3})
	vt.Write([]byte("\x1b]133;A\x07$ \x1b]133;B\x07ls\r\n\x1b]133;C\x07out\r\n\x1b]133;D;1\x07\x1b]133;A\x07$ \r\n\r\n"))
	want := []Mark{{0, 'A', ""}, {0, 'B', ""}, {1, 'C', ""}, {2, 'D', "1"}, {2, 'A', ""}}
	if got := vt.Marks(); !reflect.DeepEqual(got, want) {
		t.Errorf("marks %v, not %v", got, want)
	}
	again := Restore(Options{Cols: 10, Rows: 3}, vt.AppendSnapshot(nil))
	if got := again.Marks(); !reflect.DeepEqual(got, want) {
		t.Errorf("restored marks %v, not %v", got, want)
	}
	if e := again.TakeEvents(); len(e) != 0 {
		t.Errorf("a restored terminal tells old news: %v", e)
	}
}

func TestResizeReflows(t *testing.T) {
	vt := New(Options{Cols: 10, Rows: 3})
	vt.Write([]byte("0123456789abcdef\r\nx\r\ny\r\nz"))
	vt.Resize(5, 3)
	var got []string
	for i := range vt.HistoryLen() {
		line, wrapped := vt.HistoryLine(i)
		if wrapped {
			line = "+" + line
		}
		got = append(got, line)
	}
	if want := []string{"01234", "+56789", "+abcde", "+f"}; !reflect.DeepEqual(got, want) {
		t.Errorf("scrollback %q, not %q", got, want)
	}
	vt.Resize(20, 5)
	if got, want := show(vt), "0123456789abcdef|x|y|z"; got != want {
		t.Errorf("widened: %q, not %q", got, want)
	}
}

package oracle

import (
	"encoding/json"
	"strings"
	"testing"
)

// fault is something that xterm.js does wrong, that oracle.cjs puts right in
// the reference and that vt does right. Each is looked for in xterm.js as it is
// delivered: when a new version has it no more, its entry goes, and with it the
// correction in oracle.cjs.
type fault struct {
	name, reason string
	// plays makes terminals "as delivered" and puts out what shows looks at.
	plays []op
	shows func(a answer) bool
}

func asDelivered(t, cols, rows, scrollback int) op { return op{"N", t, cols, rows, scrollback} }

func text(raw json.RawMessage) string {
	var s struct {
		Normal, Alternate *struct {
			Lines []struct {
				C [][]any
			}
		}
	}
	if json.Unmarshal(raw, &s) != nil {
		return "not a state"
	}
	b := s.Normal
	if s.Alternate != nil {
		b = s.Alternate
	}
	var out strings.Builder
	for _, l := range b.Lines {
		for _, c := range l.C {
			n, _ := c[7].(float64)
			chars, _ := c[0].(string)
			out.WriteString(strings.Repeat(chars, int(n)))
		}
		out.WriteByte('/')
	}
	return out.String()
}

// wraps is the wrap flags of the normal screen's lines.
func wraps(raw json.RawMessage) string {
	var s struct {
		Normal struct{ Lines []struct{ W int } }
	}
	if json.Unmarshal(raw, &s) != nil {
		return "not a state"
	}
	out := ""
	for _, l := range s.Normal.Lines {
		out += string(rune('0' + l.W))
	}
	return out
}

// screenBeyondLines says that the screen has fewer lines than rows.
func screenBeyondLines(raw json.RawMessage) bool {
	var s struct {
		Rows   int
		Normal struct {
			Ybase int
			Lines []json.RawMessage
		}
	}
	return json.Unmarshal(raw, &s) == nil && s.Normal.Ybase+s.Rows > len(s.Normal.Lines)
}

var faults = []fault{
	{
		"a cut character is lost",
		"the decoder counts the bytes that it kept by their value, and stops at one of 0x80; a stream comes in pieces of any size, so the page holds open characters back",
		[]op{asDelivered(0, 10, 1, 0), opWrite(0, []byte("\xe2\x80")), opWrite(0, []byte("\xa6|")), opDump(0)},
		func(a answer) bool { return text(a.Out[0]) == "|/" },
	},
	{
		"half a wide character stays, depending on cuts",
		"what is left of a wide character is looked for at the begin of a run of text only, and the cursor gets into one within a run when wraparound is off; the screen must not depend on how bytes were cut",
		[]op{asDelivered(0, 2, 1, 0), opWrite(0, []byte("\x1b[?7l\u4e2d\u4e2dx")), opDump(0),
			asDelivered(1, 2, 1, 0), opWrite(1, []byte("\x1b[?7l\u4e2d\u4e2d")), opWrite(1, []byte("x")), opDump(1)},
		func(a answer) bool { return text(a.Out[0]) == "\u4e2dx/" && text(a.Out[1]) == "x/" },
	},
	{
		"the alternate screen keeps what is beyond its edge",
		"lines of the alternate screen stay as long as they were when it becomes narrower, and what was cut off is seen again when it is widened; nothing that is sent to a terminal could restore that, and programs draw anew after a change of size",
		[]op{asDelivered(0, 6, 1, 0), opWrite(0, []byte("\x1b[?1049habcdef")), opResize(0, 3, 1), opResize(0, 6, 1), opDump(0)},
		func(a answer) bool { return text(a.Out[0]) == "abcdef/" },
	},
	{
		"erasing above the last cell throws",
		"with the cursor in the last column the wrap flag of the next line is cleared, and that line is looked for from the top of the scrollback: where there is none, an exception",
		[]op{asDelivered(0, 2, 1, 5), opWrite(0, []byte("ab\x1b[1J")), opDump(0)},
		func(a answer) bool { return len(a.Threw) == 1 },
	},
	{
		"erasing above changes the scrollback",
		"the same line, where the scrollback has one",
		[]op{asDelivered(0, 2, 1, 5), opWrite(0, []byte("abcd\r\nxx")), opDump(0), opWrite(0, []byte("\x1b[1J")), opDump(0)},
		func(a answer) bool { return wraps(a.Out[0]) == "010" && wraps(a.Out[1]) == "000" },
	},
	{
		"a line of its own is written behind the scroll",
		"on a screen of one line without scrollback the line that goes out is the one that comes in: what the text that scrolled it still clears in the old line it clears in the new one, with the pen's colours",
		[]op{asDelivered(0, 3, 1, 0), opWrite(0, []byte("\u4e2d\x1b[4m\u4e2d")), opDump(0)},
		func(a answer) bool { return strings.Contains(string(a.Out[0]), `["",1,268435456`) },
	},
	{
		"cells hold any number of combining characters",
		"one cell could take all memory; the emulator stops at 64 bytes",
		[]op{asDelivered(0, 2, 1, 0), opWrite(0, []byte("x"+strings.Repeat("\u0301", 1000))), opDump(0)},
		func(a answer) bool { return len(text(a.Out[0])) > 2000 },
	},
	{
		"wide characters are cut in two by a narrower screen",
		"the lines of the cursor's paragraph are cut at the new width, and the left half of a wide character stays alone in the last column",
		[]op{asDelivered(0, 4, 1, 1), opWrite(0, []byte("ab\u4e2d")), opResize(0, 3, 1), opDump(0)},
		func(a answer) bool { return text(a.Out[0]) == "ab\u4e2d/" },
	},
	{
		"the alternate screen gets a scrollback while it is hidden",
		"its list keeps the length it had when the screen becomes smaller",
		[]op{asDelivered(0, 4, 3, 1), opResize(0, 4, 1), opWrite(0, []byte("\x1b[?1049ha\r\nb\r\nc")), opDump(0)},
		func(a answer) bool { return text(a.Out[0]) == "a/b/c/" },
	},
	{
		"lines that become more overwrite the last one",
		"what a narrower screen makes of the oldest lines and has no room for goes before the first line of a ring, which is the last one",
		[]op{asDelivered(0, 5, 6, 1), opWrite(0, []byte("\nabcdefghijk\uc4d4lm\nnop\nqrst")), opResize(0, 3, 6), opDump(0)},
		func(a answer) bool { return strings.HasSuffix(text(a.Out[0]), "/jk/") },
	},
	{
		"copied cells get another one's text",
		"combined characters are kept beside the cells, and where reflow moves cells within a line the text of the first one replaces that of the next before it is moved",
		[]op{asDelivered(0, 4, 1, 3), opWrite(0, []byte("abcde\u0301f\u0302\n")), opResize(0, 3, 1), opDump(0)},
		func(a answer) bool { return strings.Contains(text(a.Out[0]), "e\u0301e\u0301") },
	},
	{
		"without scrollback the screen leaves its lines",
		"reflow then counts lines that are not kept, and the screen begins behind the last one; a daemon keeps at least one line",
		[]op{asDelivered(0, 2, 2, 0), opWrite(0, []byte("ab ab ab ")), opResize(0, 9, 6), opWrite(0, []byte("0123456789\u0e01\u0e33\u4e2d\u4e2dxx\u3042\r\n\r\n")), opResize(0, 2, 14), opDump(0)},
		func(a answer) bool { return screenBeyondLines(a.Out[0]) },
	},
	{
		"a combining character joins another one after a change of size",
		"the cursor behind the last column is put into it, and what was printed last then stands beside the place that is looked at",
		[]op{asDelivered(0, 3, 1, 1), opWrite(0, []byte("abc")), opResize(0, 3, 2), opWrite(0, []byte("\u0301")), opDump(0)},
		func(a answer) bool { return text(a.Out[0]) == "ab\u0301c//" },
	},
	{
		"a combining character joins another one at the edge",
		"a wide character that has no room, where nothing wraps, is not printed, and what would join it joins what stands before",
		[]op{asDelivered(0, 3, 1, 1), opWrite(0, []byte("\x1b[?7labc\u4e2d\u0301")), opDump(0)},
		func(a answer) bool { return text(a.Out[0]) == "ab\u0301c/" },
	},
	{
		"a saved cursor stays below a smaller screen",
		"it is put onto the screen when it is restored, and is lower when the screen grew again; no bytes could save one there",
		[]op{asDelivered(0, 4, 3, 1), opWrite(0, []byte("\x1b[?1049h\x1b[3;1H\x1b7\x1b[H")), opResize(0, 4, 1), opResize(0, 4, 3), opWrite(0, []byte("\x1b8x")), opDump(0)},
		func(a answer) bool { return text(a.Out[0]) == "//x/" },
	},
	{
		"counts are not bounded by the screen",
		"scrolling, inserting and deleting lines, tabs and repeating take as many turns as the parameter says, up to 2³¹, for minutes; beyond the height of the screen another turn changes nothing",
		[]op{asDelivered(0, 2, 1, 0), {"L", 0, "G1s3MDAwUw=="}}, // ESC [ 7000 S
		func(a answer) bool { return string(a.Out[0]) == "14000" },
	},
	{
		"a link is forgotten while cells show it",
		"a link lives as long as the lines on which it was written; cells that reflow moved to other lines, and text written with the same pen after the alternate screen was left, keep the number of a link that is gone",
		[]op{asDelivered(0, 10, 1, 0), opWrite(0, []byte("\x1b[?1049h\x1b]8;;http://x\x07a\x1b[?1049lb")), opDump(0)},
		func(a answer) bool { return strings.Contains(string(a.Out[0]), `"?1"`) },
	},
}

// TestFaultsOfXterm looks for each of them in xterm.js.
func TestFaultsOfXterm(t *testing.T) {
	cases := make([]request, len(faults))
	for i, f := range faults {
		cases[i] = request{f.plays}
	}
	for i, a := range play(t, cases) {
		if !faults[i].shows(a) {
			t.Errorf("%s: xterm.js does it no more: take it out of the list and out of oracle.cjs\n%s\n%s %v", faults[i].name, faults[i].reason, a.Out, a.Threw)
		}
	}
}

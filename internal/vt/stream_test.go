package vt

import (
	"math/rand"
	"strconv"
	"strings"
)

var words = []string{
	"a", "hello", "The quick brown fox", "  ", "あ", "漢字kanji", "é", "e\u0301", "\u0301", "x\u200d", "👍",
	"👩\u200d👩\u200d👧", "한글", "\u1100\u1161", "~qx`", "ｱ", "日本", "a\u0300\u0301", "●", "\xff", "\xe3\x81", "\xc3",
}

var sequences = []string{
	"\r\n", "\b", "\t", "\n", "\r", "\x0b", "\x0e", "\x0f", "\x07", "\x7f", "\x00", "\x1b7", "\x1b8", "\x1bD", "\x1bE",
	"\x1bH", "\x1bM", "\x1b=", "\x1b>", "\x1bn", "\x1bo", "\x1b|", "\x1b}", "\x1b~", "\x1b(0", "\x1b)A", "\x1b*4", "\x1b+H",
	"\x1b(B", "\x1b[s", "\x1b[u", "\x1b[!p", "\x1b#8", "\x1bc", "\x1b%G", "\x1b[g", "\x1b[3g", "\x1b[b", "\x1b[5b",
	"\x1b[ @", "\x1b[2 A", "\x1b['}", "\x1b[2'~", "\x1b[1\"q", "\x1b[0\"q", "\x1b[?J", "\x1b[?1J", "\x1b[?K", "\x1b[3J",
	"\x1b]8;;http://a\x07", "\x1b]8;;\x1b\\", "\x1b]8;id=1;http://b\x1b\\", "\x1b]0;title\x07", "\x1b]2;t\x1b\\",
	"\x1b]4;1;?\x07", "\x1b]4;1;#fff\x07", "\x1b]133;A\x07", "\x1b]133;D;0\x07", "\x1b]7;file:///\x07", "\x1b]52;c;YQ==\x07",
	"\x1b[6n", "\x1b[c", "\x1b[?7$p", "\x1bP$qr\x1b\\", "\x1bP$qm\x1b\\", "\x1b[3 q", "\x1b[0 q", "\x1b[>1u", "\x1b[<u",
	"\u0084", "\u0085", "\u0088", "\u009b2C", "\u009dx\u009c", "\x1bPfoo\x1b\\", "\x1b_apc\x1b\\", "\x1b[1;2", "\x1b[\x18",
	"\x1b^pm", "\x1b[1:2:3;4:5m", "\x1b[99999999999X",
}

var attributes = []string{
	"0", "1", "2", "3", "4", "5", "7", "8", "9", "21", "22", "23", "24", "25", "27", "28", "29", "31", "42", "93", "104", "39",
	"49", "38;5;123", "48;2;1;2;3", "38:2::9:8:7", "4:3", "4:0", "58:5:7", "58;2;4;5;6", "59", "53", "55", "38;5", "48", "",
}

var privateModes = []int{1, 2, 6, 7, 7, 12, 25, 45, 47, 66, 9, 1000, 1002, 1003, 1004, 1006, 1016, 1047, 1048, 1049, 2004, 2026}

// randomStream is n words and sequences of all kinds.
func randomStream(r *rand.Rand, n, cols, rows int) string {
	var b strings.Builder
	num := func(m int) string {
		if r.Intn(4) == 0 {
			return ""
		}
		return strconv.Itoa(r.Intn(m + 2))
	}
	for range n {
		switch r.Intn(12) {
		case 0, 1, 2, 3:
			b.WriteString(words[r.Intn(len(words))])
		case 4:
			b.WriteString(strings.Repeat("0123456789", 10)[:r.Intn(min(cols, 99))+1])
		case 5, 6:
			b.WriteString(sequences[r.Intn(len(sequences))])
		case 7:
			b.WriteString("\x1b[" + num(rows) + ";" + num(cols) + "H")
		case 8:
			b.WriteString("\x1b[" + num(5) + string("@ABCDEFGIJKLMPSTXZ`adef"[r.Intn(23)]))
		case 9:
			b.WriteString("\x1b[" + attributes[r.Intn(len(attributes))] + ";" + attributes[r.Intn(len(attributes))] + "m")
		case 10:
			b.WriteString("\x1b[?" + strconv.Itoa(privateModes[r.Intn(len(privateModes))]) + string("hhl"[r.Intn(3)]))
		case 11:
			b.WriteString([]string{"\x1b[" + num(rows) + ";" + num(rows) + "r", "\x1b[4h", "\x1b[4l", "\x1b[20h", "\x1b[20l"}[r.Intn(5)])
		}
	}
	return b.String()
}

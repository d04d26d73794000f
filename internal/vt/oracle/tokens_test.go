package oracle

import (
	"fmt"
	"strconv"
	"strings"
)

func (g *generator) token(k kind) token {
	choices := []struct {
		weight int
		make   func() string
	}{
		{k.text, g.text}, {k.wide, g.unicode}, {k.broken, g.broken}, {k.c0, g.c0}, {k.c1, g.c1},
		{k.cursor, g.cursor}, {k.erase, g.erase}, {k.sgr, g.sgr}, {k.mode, g.mode}, {k.esc, g.escape},
		{k.osc, g.osc}, {k.dcs, g.dcs}, {k.region, g.region}, {k.query, g.query}, {k.anyCSI, g.anyCSI},
		{k.resize, nil}, {k.swap, g.swap}, {k.save, g.save}, {k.link, g.link}, {k.charset, g.charset}, {k.flood, g.flood},
	}
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	at := g.r.Intn(sum)
	for _, c := range choices {
		if at -= c.weight; at >= 0 {
			continue
		}
		if c.make == nil {
			return g.resize()
		}
		return token{b: []byte(c.make())}
	}
	panic("weights do not add up")
}

func (g *generator) pick(s ...string) string { return s[g.r.Intn(len(s))] }

func (g *generator) resize() token {
	t := token{cols: max(2, g.cols+g.r.Intn(9)-4), rows: max(1, g.rows+g.r.Intn(7)-3)}
	switch g.r.Intn(8) {
	case 0:
		t.cols = 2 + g.r.Intn(40)
	case 1:
		t.rows = 1 + g.r.Intn(20)
	case 2:
		t.cols = g.cols
	case 3:
		t.rows = g.rows
	}
	return t
}

// number is a parameter: mostly small, often at an edge of the screen,
// sometimes at an edge of the machine's integers.
func (g *generator) number() string {
	switch g.r.Intn(16) {
	case 0:
		return ""
	case 1:
		return "0"
	case 2, 3, 4:
		return strconv.Itoa(1 + g.r.Intn(4))
	case 5, 6:
		return strconv.Itoa(max(0, g.cols-2+g.r.Intn(4)))
	case 7, 8:
		return strconv.Itoa(max(0, g.rows-2+g.r.Intn(4)))
	case 9, 10, 11:
		return strconv.Itoa(1 + g.r.Intn(g.cols))
	case 12, 13, 14:
		return strconv.Itoa(1 + g.r.Intn(g.rows))
	}
	return g.pick("99", "255", "256", "32767", "65535", "65536", "2147483647", "2147483648",
		"4294967295", "4294967296", "4294967297", "18446744073709551617", "99999999999999999999999", "007", "0000000001")
}

func (g *generator) csi() string {
	if g.r.Intn(24) == 0 {
		return "\u009b"
	}
	return "\x1b["
}

func (g *generator) cursor() string {
	switch g.r.Intn(4) {
	case 0:
		return fmt.Sprintf("%s%d;%d%s", g.csi(), g.r.Intn(g.rows+2), g.r.Intn(g.cols+2), g.pick("H", "H", "f"))
	case 1:
		return g.csi() + g.number() + ";" + g.number() + g.pick("H", "f")
	case 2:
		// To an edge, where most special cases are.
		return g.pick("\r", "\n", "\x1b[999C", "\x1b[999B", "\x1b[H", "\x1b[999;999H", "\x1bM", "\t")
	}
	return g.csi() + g.number() + g.pick("A", "B", "C", "D", "E", "F", "G", "d", "e", "a", "`", "I", "Z")
}

func (g *generator) erase() string {
	switch g.r.Intn(8) {
	case 0, 1:
		return g.csi() + g.pick("", "?") + g.pick("", "0", "1", "2", "3", "4") + "J"
	case 2, 3:
		return g.csi() + g.pick("", "?") + g.pick("", "0", "1", "2", "3") + "K"
	case 4:
		return g.csi() + g.number() + g.pick(" @", " A", "'}", "'~")
	case 5:
		return g.csi() + g.pick("", "0", "1", "2", "3") + "\"q"
	case 6:
		return g.csi() + g.count() + "b"
	}
	return g.csi() + g.number() + g.pick("X", "P", "@", "L", "M", "S", "T", "X", "P", "@")
}

func (g *generator) count() string {
	return g.pick("", g.number(), "0", "1", "2", "3", strconv.Itoa(g.r.Intn(2*g.cols+1)), strconv.Itoa(g.cols))
}

func (g *generator) sgr() string {
	n := 1 + g.r.Intn(3)
	parts := make([]string, n)
	for i := range parts {
		parts[i] = g.sgrPart()
	}
	return g.csi() + strings.Join(parts, ";") + "m"
}

func (g *generator) sgrPart() string {
	switch g.r.Intn(12) {
	case 0:
		return g.pick("", "0")
	case 1, 2:
		return strconv.Itoa(30 + g.r.Intn(20))
	case 3:
		return strconv.Itoa(90 + g.r.Intn(18))
	case 4:
		return g.pick("38", "48", "58") + ";5;" + strconv.Itoa(g.r.Intn(300))
	case 5:
		return fmt.Sprintf("%s;2;%d;%d;%d", g.pick("38", "48", "58"), g.r.Intn(300), g.r.Intn(256), g.r.Intn(256))
	case 6:
		return g.pick("38", "48", "58") + g.pick(":5:3", ":2::1:2:3", ":2:1:2:3", ":2:1:2:3:4:5", ":5", ":2", ":5::7", ":2::1:2", ":", ":9:1")
	case 7:
		return g.pick("4", "4:0", "4:1", "4:2", "4:3", "4:4", "4:5", "4:6", "4:", "4:3:2", "21", "24", "59", "4;58:5:1", "4:3;58;2;1;2;3")
	case 8:
		return g.pick("38", "48", "58") + g.pick(";5", ";2", ";2;1", ";5;", ";;;", ";2;;;", "", ";9;3", ";1;2;3")
	case 9:
		return g.pick("1", "2", "3", "5", "6", "7", "8", "9", "53", "51", "52", "100")
	case 10:
		return g.pick("22", "23", "25", "27", "28", "29", "39", "49", "55", "59", "10", "11", "54", "65", "73")
	}
	return g.number()
}

func (g *generator) mode() string {
	if g.r.Intn(4) == 0 {
		return g.csi() + g.pick("4", "4", "20", "2", "12", "4;20", "34") + g.pick("h", "l")
	}
	n := g.pick("1", "2", "3", "5", "6", "6", "7", "7", "8", "9", "12", "25", "45", "45", "66", "69", "1000", "1001", "1002", "1003",
		"1004", "1005", "1006", "1007", "1015", "1016", "2004", "2026", "2027", "1;7", "6;7", "1000;1006", "99", "25;45")
	return g.csi() + "?" + n + g.pick("h", "l")
}

func (g *generator) swap() string {
	return g.csi() + "?" + g.pick("47", "1047", "1048", "1049", "1049", "1049", "1049;1049", "1047;1049") + g.pick("h", "h", "l")
}

func (g *generator) save() string {
	return g.pick("\x1b7", "\x1b8", "\x1b8", "\x1b[s", "\x1b[u", "\x1b[?1048h", "\x1b[?1048l", "\x1b[2s", "\x1b[1;5s")
}

func (g *generator) region() string {
	switch g.r.Intn(4) {
	case 0:
		return g.csi() + g.pick("", "0", "1", ";", "0;0", "1;1") + "r"
	case 1:
		return g.csi() + g.number() + ";" + g.number() + "r"
	}
	top := 1 + g.r.Intn(g.rows)
	return fmt.Sprintf("%s%d;%dr", g.csi(), top, top+g.r.Intn(g.rows))
}

func (g *generator) escape() string {
	switch g.r.Intn(8) {
	case 0:
		return "\x1bc"
	case 1, 2, 3:
		return "\x1b" + g.pick("D", "E", "H", "M", "M", "=", ">", "D", "M")
	case 4:
		return g.csi() + g.pick("!p", "0g", "g", "3g", "2g", "1g", "0;3g", "5g")
	case 5:
		return g.pick("\x1b#8", "\x1b#3", "\x1b#5", "\x1b#6")
	case 6:
		return g.csi() + g.pick("", "0", "1", "2", "3", "4", "5", "6", "7", "99") + " q"
	}
	return "\x1b" + string(rune(0x20+g.r.Intn(0x5f)))
}

func (g *generator) charset() string {
	switch g.r.Intn(6) {
	case 0, 1:
		return "\x1b" + g.pick("(", "(", ")", "*", "+", "-", ".", "/") + g.pick("0", "0", "0", "A", "B", "4", "C", "5", "R", "Q", "K", "Y", "E", "6", "Z", "H", "7", "=", "U", "%5")
	case 2, 3:
		return g.pick("\x0e", "\x0f", "\x1bn", "\x1bo", "\x1b|", "\x1b}", "\x1b~", "\x1bN", "\x1bO")
	case 4:
		return g.pick("\x1b%G", "\x1b%@", "\x1b[?2h", "\x1b[!p")
	}
	return g.pick("lqqk", "x~{|}", "abc#[]^_`~")
}

func (g *generator) query() string {
	return g.pick("\x1b[c", "\x1b[0c", "\x1b[>c", "\x1b[>0c", "\x1b[1c", "\x1b[>1c", "\x1b[5n", "\x1b[6n", "\x1b[6n", "\x1b[?6n", "\x1b[?15n", "\x1b[n",
		"\x1b[4$p", "\x1b[20$p", "\x1b[12$p", "\x1b[2$p", "\x1b[3$p",
		"\x1b[?"+g.pick("1", "3", "6", "7", "8", "9", "12", "25", "45", "66", "67", "1000", "1002", "1003", "1004", "1005", "1006", "1015", "1016", "1048", "47", "1047", "1049", "2004", "2026")+"$p",
		"\x1bP$q"+g.pick("\"q", "\"p", "r", "x", "")+"\x1b\\")
}

// anyCSI is a sequence of any form, known or not.
func (g *generator) anyCSI() string {
	var b strings.Builder
	b.WriteString(g.csi())
	b.WriteString(g.pick("", "", "", "?", ">", "=", "<"))
	for i := range g.r.Intn(4) {
		if i > 0 {
			b.WriteString(g.pick(";", ";", ";", ":", "::"))
		}
		b.WriteString(g.number())
	}
	if g.r.Intn(40) == 0 {
		b.WriteString(strings.Repeat(g.pick("1;", ";", "1:", ":"), 20+g.r.Intn(30)))
	}
	b.WriteString(g.pick("", "", "", "", " ", "!", "\"", "$", "'", "#", "*", " $", "!!!"))
	final := rune(0x40 + g.r.Intn(0x3f))
	if final == 'q' || final == 't' || final == 'u' {
		final = 'm' // these ask what only one of the two knows
	}
	b.WriteRune(final)
	return b.String()
}

func (g *generator) terminator() string {
	return g.pick("\x07", "\x07", "\x1b\\", "\x1b\\", "\x1b\\", "\u009c", "\x18", "\x1a", "\x1bX", "\x1b[m", "")
}

func (g *generator) osc() string {
	body := g.pick("0;title", "1;icon", "2;ti\u00e9tle", "2;", "0", "2;a;b", "8;;", "52;c;", "7;file://h/tmp", "133;A", "133;C", "133;D;0",
		"4;1;red", "104", "10;#fff", "112", "9;x", "777;n;a;b", "1337;x=y", "L", "l", "", ";", "2", "00002;padded", "99999999999;x", "2;"+strings.Repeat("t", 300))
	return g.pick("\x1b]", "\x1b]", "\x1b]", "\u009d") + body + g.terminator()
}

func (g *generator) link() string {
	switch g.r.Intn(5) {
	case 0:
		return "\x1b]8;;\x1b\\"
	case 1:
		return "\x1b]8;" + g.pick("", "id=a", "id=b", "x=y:id=a", "id=") + ";http://" + g.pick("a", "b/c;d", "\u00e9") + g.pick("\x1b\\", "\x07")
	case 2:
		return "\x1b]8;;" + g.pick("x", "http://x/y?z=1&w=2", "file:///a b", ";") + "\x07"
	case 3:
		return g.pick("\x1b]8;id=a;\x07", "\x1b]8;x\x07", "\x1b]8\x07", "\x1b]8;\x07")
	}
	return "\x1b]8;;http://n" + strconv.Itoa(g.r.Intn(3)) + "\x07" + g.text() + g.pick("", "\x1b]8;;\x07")
}

func (g *generator) dcs() string {
	body := g.pick("P$q", "Pq#0;2;0;0;0#0~~", "Ptmux;x", "P1;2|17/ab", "P+q544e", "P", "P1$r0m", "P=1s", "P\x01", "P1;2;3", "P!!!!x", "P1:2q",
		"_Gf=24;AA", "^pm", "Xsos", "_", "P0;1;2;3;4;5;6;7;8;9;0;1;2;3;4;5;6;7;8;9;0;1;2;3;4;5;6;7;8;9;0;1;2q") + g.pick("", "data", "d\u00e9\u4e2d", "\x05\x0a")
	return "\x1b" + body + g.terminator()
}

func (g *generator) c0() string {
	if g.r.Intn(4) > 0 {
		return g.pick("\n", "\r\n", "\r\n", "\r", "\b", "\t", "\r\n")
	}
	return string([]byte{byte(g.r.Intn(32))}) + g.pick("", "\x7f", "")
}

func (g *generator) c1() string {
	switch g.r.Intn(4) {
	case 0:
		return string([]byte{byte(0x80 + g.r.Intn(32))}) // not UTF-8: nothing
	case 1:
		return g.pick("\u0084", "\u0085", "\u0088", "\u008d", "\u0090q\u009c", "\u009bH", "\u009d2;x\u009c", "\u0098x\u009c", "\u009ex\u009c", "\u009fx\u009c")
	}
	return string(rune(0x80 + g.r.Intn(32)))
}

// broken is a sequence that is cut, holds what does not belong, or is not UTF-8.
func (g *generator) broken() string {
	switch g.r.Intn(9) {
	case 0:
		return g.pick("\x1b", "\x1b[", "\x1b[1", "\x1b[1;", "\x1b[?", "\x1b]", "\x1b]0", "\x1b]2;a", "\x1bP", "\x1bP1", "\x1bP$", "\x1bPq", "\x1b_", "\x1b(", "\x1b#", "\x1b[ ", "\x1b[1$")
	case 1:
		return "\x1b[" + g.pick("1\r2", "\n", "\x08", "3\x0b", "\x00") + g.pick("C", "m", "H")
	case 2:
		return "\x1b[1" + g.pick("\x18", "\x1a", "\x1b", "\x1b[", "\x7f", "\u4e2d", "\u00e9", "?", "<", "\u0084") + g.pick("m", "C", "2J")
	case 3:
		return g.pick("\xff", "\xc0", "\xc1\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xc3", "\xe4\xb8", "\xf0\x9f\x98", "\xf0\x9f", "\xbf", "\xfe",
			"\xef\xbf\xbf", "\xef\xbb\xbf", "\xed\xb0\x80", "\xf0\x80\x80\x80", "\xc2", "\xf5\x80\x80\x80")
	case 4:
		return g.pick("\xe4\xb8", "\xc3", "\xf0\x9f\x98", "\xf0\x9f", "\xe4") + g.pick("a", "\x1b[m", "\xe4\xb8\xad", "\xc3\xa9", "\r", "\xff", "\x1b", "\xf0\x9f\x98\x80")
	case 5:
		return "\x1b]" + g.pick("2;a\x01b", "2;\u4e2d", "2;\xff", "8;;\xe4", "2;\x7f", "\u00e9;x", "2\x05;x", "2a;x") + g.terminator()
	case 6:
		return "\x1bP" + g.pick("\u4e2d", "1\u00e9", "$\u00e9", "q\x7f\xff", "1;\x18x", "$q\x1bm") + g.terminator()
	}
	b := make([]byte, 1+g.r.Intn(6))
	for i := range b {
		b[i] = byte(g.r.Intn(256))
	}
	return string(b)
}

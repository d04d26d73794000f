package oracle

import "strings"

func (g *generator) text() string {
	switch g.r.Intn(8) {
	case 0:
		return string(rune('a' + g.r.Intn(26)))
	case 1:
		// Full lines, where wrapping happens.
		return strings.Repeat(string(rune('A'+g.r.Intn(26))), max(1, g.cols-2+g.r.Intn(5)))
	case 2:
		return strings.Repeat(g.pick("xy", "0123456789", "ab "), 1+g.r.Intn(g.cols))
	case 3:
		return strings.Repeat(" ", 1+g.r.Intn(g.cols))
	case 4:
		return g.pick("hello", "a b", "  x", "x  ", "line\r\nline\r\n", "\r\n\r\n", "tab\tx", "~#[]{}|")
	case 5:
		return g.unicode()
	}
	n := 1 + g.r.Intn(6)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(0x20 + g.r.Intn(0x5f))
	}
	return string(b)
}

// flood is lines of text, mostly plain, as a program prints them that prints
// more than anybody reads: enough for the shorter way that such input takes.
func (g *generator) flood() string {
	var b strings.Builder
	b.WriteString(g.pick("", "\r\n", "\x1b[999H\r", "\x1b[m\x1b[999H\r\n", "\x1b[m\x1b[r\x1b[999H\r\n"))
	end := g.pick("\r\n", "\r\n", "\n")
	for size := 1000 + g.r.Intn(3000); b.Len() < size; {
		n := g.r.Intn(g.cols + 2)
		if g.r.Intn(6) == 0 {
			n = g.r.Intn(4 * g.cols)
		}
		for range n {
			b.WriteByte(byte(0x20 + g.r.Intn(0x5f)))
		}
		switch g.r.Intn(60) {
		case 0:
			b.WriteString(g.pick("\t", "\x1b[31m", "\u00e9", "\u4e2d", "\x07", "\b", "\x7f", "\u0301", "\r", "\x85", "\xff"))
		case 1:
			b.WriteString(g.pick("\n", "\r"))
		}
		b.WriteString(end)
	}
	return b.String()
}

// clusters are texts whose layout is less than obvious.
var clusters = []string{
	"\u4e2d", "\u4e2d\u6587", "\u65e5\u672c\u8a9e", "\ud55c\uae00", "\uff21\uff22", "\u3042", "\u3000",
	"e\u0301", "a\u0308\u0301", "\u0301", "\u200d", "\u200b", "\u00ad", "\ufeff", "\u2060", "\ufe0f", "\ufe0e",
	"\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f44d\U0001f3fd", "\U0001f3fd",
	"\U0001f1e9\U0001f1ea", "\U0001f1e9", "\u2764\ufe0f", "\u2764", "1\ufe0f\u20e3", "\u00a9\ufe0f",
	"\u1100\u1161\u11a8", "\u0e01\u0e33", "\u0e40\u0e01\u0e35\u0e48", "\u0915\u094d\u0937\u093f", "\u0644\u0627", "\u05d0\u05b7",
	"\u4e2d\u0301", "\U0001f600\u0301", "\u4e2d\ufe0f", "x\u0301\u0302\u0303\u0304\u0305",
	"\u2500\u2502\u250c", "\u2588", "\u00e9", "\u00a0", "\u20ac", "\u03b1\u03b2", "\u0416", "\ue0b0", "\U000f0000", "\U0010ffff",
	"\U0001f9d1\u200d\U0001f4bb", "\U0001fae0", "\U00020000", "\ufffd", "\ufffc", "\u2028", "\u202e", "\u0600", "\U000e0101", "\U0001d11e",
	"\u30ab\u3099", "\uff76\uff9e", "\u115f", "\u1160", "\u3164", "\uffa0", "\u231a", "\u23f0", "\u2614", "\u26a1", "\u303d", "\u3297",
}

func (g *generator) unicode() string {
	var b strings.Builder
	for range 1 + g.r.Intn(4) {
		switch g.r.Intn(6) {
		case 0:
			b.WriteString(strings.Repeat(clusters[g.r.Intn(len(clusters))], 1+g.r.Intn(max(1, g.cols/2)+1)))
		case 1:
			b.WriteByte(byte(0x21 + g.r.Intn(0x5e)))
		case 2:
			b.WriteRune(g.rune())
		default:
			b.WriteString(clusters[g.r.Intn(len(clusters))])
		}
	}
	return b.String()
}

// rune is any printable code point, by blocks of which each is as likely.
func (g *generator) rune() rune {
	blocks := [][2]rune{{0xa0, 0x17f}, {0x300, 0x36f}, {0x370, 0x5ff}, {0x600, 0xdff}, {0xe00, 0x11ff}, {0x1200, 0x1fff},
		{0x2000, 0x2bff}, {0x2e80, 0x33ff}, {0x3400, 0x9fff}, {0xa000, 0xd7ff}, {0xe000, 0xfaff}, {0xfb00, 0xffff},
		{0x10000, 0x1bfff}, {0x1d000, 0x1f2ff}, {0x1f300, 0x1faff}, {0x20000, 0x3ffff}, {0xe0000, 0x10ffff}}
	b := blocks[g.r.Intn(len(blocks))]
	return b[0] + g.r.Int31n(b[1]-b[0]+1)
}

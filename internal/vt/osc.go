package vt

import (
	"bytes"
	"strconv"
	"strings"
)

// dispatchOSC acts on an operating system command.
func (t *Terminal) dispatchOSC(text []byte) {
	num, rest, _ := bytes.Cut(text, []byte(";"))
	if len(num) == 0 || len(num) > 9 {
		return
	}
	n := 0
	for _, c := range num {
		if c < '0' || c > '9' {
			return
		}
		n = n*10 + int(c-'0')
	}
	switch n {
	case 0:
		t.setTitle(rest)
		t.setIcon(rest)
	case 1:
		t.setIcon(rest)
	case 2:
		t.setTitle(rest)
	case 4:
		t.palette.indexed(t, string(rest))
	case 7:
		t.cwd = limited(rest, maxTitle)
		t.event(Event{Kind: EventCwd, Text: t.cwd})
	case 8:
		t.hyperlink(string(rest))
	case 10, 11, 12:
		t.palette.special(t, string(rest), n-10)
	case 52:
		t.clipboard(rest)
	case 104:
		t.palette.restore(string(rest))
	case 110, 111, 112:
		t.palette.specials[n-110] = entry{}
	case 133:
		t.promptMark(rest)
	}
}

func limited(b []byte, n int) string {
	if len(b) > n {
		b = b[:n]
		for len(b) > 0 && b[len(b)-1]&0xc0 == 0x80 {
			b = b[:len(b)-1]
		}
		if len(b) > 0 && b[len(b)-1] >= 0x80 {
			b = b[:len(b)-1]
		}
	}
	return string(b)
}

func (t *Terminal) setTitle(b []byte) {
	t.title = limited(b, maxTitle)
	t.event(Event{Kind: EventTitle, Text: t.title})
}

func (t *Terminal) setIcon(b []byte) {
	t.icon = limited(b, maxTitle)
}

// hyperlink is OSC 8: parameters ; URI.
func (t *Terminal) hyperlink(s string) {
	args, uri, ok := strings.Cut(s, ";")
	if !ok {
		return
	}
	args = strings.TrimSpace(args)
	if uri == "" {
		if args != "" {
			return
		}
		t.pen.link = 0
	} else {
		id := ""
		for arg := range strings.SplitSeq(args, ":") {
			if v, ok := strings.CutPrefix(arg, "id="); ok {
				id = v
				break
			}
		}
		if t.styles.full && !t.shared {
			t.pen.link = 0
			t.sweep()
		}
		t.pen.link = t.styles.linkOf(id, uri)
	}
	t.pen.extend()
	t.penStale = true
}

// clipboard is OSC 52. What is asked for is told to nobody.
func (t *Terminal) clipboard(b []byte) {
	which, data, ok := bytes.Cut(b, []byte(";"))
	if !ok || string(data) == "?" {
		return
	}
	t.event(Event{Kind: EventClipboard, Text: limited(which, 16), Data: bytes.Clone(data)})
}

// entry is a colour that the program set.
type entry struct {
	set bool
	rgb uint32
}

// palette holds the colours that the program set; the others are Options'.
type palette struct {
	colors   map[int]uint32
	specials [3]entry // foreground, background, cursor
}

func (p *palette) indexed(t *Terminal, s string) {
	slots := strings.Split(s, ";")
	for ; len(slots) > 1; slots = slots[2:] {
		n, err := strconv.Atoi(slots[0])
		if err != nil || n < 0 || n > 255 || slots[0][0] == '+' {
			continue
		}
		if slots[1] == "?" {
			c, ok := p.colors[n]
			if !ok {
				c = t.opt.color(n)
			}
			t.reply("\x1b]4;" + itoa(n) + ";" + rgbSpec(c) + "\x1b\\")
		} else if c, ok := parseColor(slots[1]); ok {
			if p.colors == nil {
				p.colors = map[int]uint32{}
			}
			p.colors[n] = c
		}
	}
}

func (p *palette) special(t *Terminal, s string, from int) {
	for i, spec := range strings.Split(s, ";") {
		n := from + i
		if n >= len(p.specials) {
			return
		}
		if spec == "?" {
			c := [3]uint32{t.opt.Foreground, t.opt.Background, t.opt.Cursor}[n]
			if p.specials[n].set {
				c = p.specials[n].rgb
			}
			t.reply("\x1b]" + itoa(10+n) + ";" + rgbSpec(c) + "\x1b\\")
		} else if c, ok := parseColor(spec); ok {
			p.specials[n] = entry{true, c}
		}
	}
}

func (p *palette) restore(s string) {
	if s == "" {
		p.colors = nil
		return
	}
	for num := range strings.SplitSeq(s, ";") {
		if n, err := strconv.Atoi(num); err == nil {
			delete(p.colors, n)
		}
	}
}

// rgbSpec is a colour as replies have it.
func rgbSpec(c uint32) string {
	const hex = "0123456789abcdef"
	b := []byte("rgb:")
	for shift := 16; shift >= 0; shift -= 8 {
		v := c >> shift & 0xff
		b = append(b, hex[v>>4], hex[v&15], hex[v>>4], hex[v&15])
		if shift > 0 {
			b = append(b, '/')
		}
	}
	return string(b)
}

// parseColor reads rgb:r/g/b and #rgb, with one to four digits each.
func parseColor(s string) (uint32, bool) {
	s = strings.ToLower(s)
	var parts []string
	if rest, ok := strings.CutPrefix(s, "rgb:"); ok {
		parts = strings.Split(rest, "/")
	} else if rest, ok := strings.CutPrefix(s, "#"); ok && len(rest)%3 == 0 {
		n := len(rest) / 3
		parts = []string{rest[:n], rest[n : 2*n], rest[2*n:]}
	}
	if len(parts) != 3 {
		return 0, false
	}
	c := uint32(0)
	for _, part := range parts {
		v, err := strconv.ParseUint(part, 16, 16)
		if err != nil || len(part) != len(parts[0]) || strings.ContainsAny(part, "+_") {
			return 0, false
		}
		// Scaled from the digits given to eight bits.
		if s[0] == '#' {
			v = v << 16 >> (4*len(part) + 8) & 0xff
			if len(part) == 1 {
				v &= 0xf0
			}
		} else {
			full := uint64(1)<<(4*len(part)) - 1
			v = (v*255 + full/2) / full
		}
		c = c<<8 | uint32(v)
	}
	return c, true
}

// defaultPalette is xterm.js's first 16 colours.
var defaultPalette = [16]uint32{
	0x2e3436, 0xcc0000, 0x4e9a06, 0xc4a000, 0x3465a4, 0x75507b, 0x06989a, 0xd3d7cf,
	0x555753, 0xef2929, 0x8ae234, 0xfce94f, 0x729fcf, 0xad7fa8, 0x34e2e2, 0xeeeeec,
}

// color is a colour of the 256 that the program did not set.
func (o *Options) color(n int) uint32 {
	switch {
	case n < 16:
		return o.Palette[n]
	case n < 232:
		n -= 16
		level := func(i int) uint32 {
			if i == 0 {
				return 0
			}
			return uint32(55 + 40*i)
		}
		return level(n/36)<<16 | level(n/6%6)<<8 | level(n%6)
	default:
		return uint32(8+10*(n-232)) * 0x010101
	}
}

package vt

// Underline kinds, as sub-parameters of SGR 4 name them.
const (
	underlineNone   = 0
	underlineSingle = 1
	underlineDouble = 2
	underlineLast   = 5
)

// sgrInPlace acts on the most frequent sequences of all, ESC [ m, ESC [ 0 m and
// those of one colour of the 16, when b begins with one, and returns its length.
func (t *Terminal) sgrInPlace(b []byte) int {
	if len(b) < len("\x1b[36m") {
		return 0
	}
	p := &t.pen
	n := 0
	switch c := b[2]; {
	case c == 'm':
		p.resetSGR()
		n = 3
	case b[3] == 'm' && c == '0':
		p.resetSGR()
		n = 4
	case b[4] == 'm' && (c == '3' || c == '9') && b[3] >= '0' && b[3] <= '7':
		bright := uint32(c-'3') / ('9' - '3') * 8
		p.fg = p.fg&^colorMask | color16 | uint32(b[3]-'0') + bright
		n = 5
	default:
		return 0
	}
	t.penStale = true
	t.join = 0
	return n
}

// sgr sets the pen.
func (t *Terminal) sgr(a *params) {
	t.penStale = true
	p := &t.pen
	if a.n == 1 && a.list[0] == 0 {
		p.resetSGR()
		return
	}
	for i := 0; i < a.n; i++ {
		switch n := a.list[i]; n {
		case 0:
			p.resetSGR()
		case 30, 31, 32, 33, 34, 35, 36, 37:
			p.fg = p.fg&^colorMask | color16 | uint32(n-30)
		case 40, 41, 42, 43, 44, 45, 46, 47:
			p.bg = p.bg&^colorMask | color16 | uint32(n-40)
		case 90, 91, 92, 93, 94, 95, 96, 97:
			p.fg = p.fg&^colorMask | color16 | uint32(n-90+8)
		case 100, 101, 102, 103, 104, 105, 106, 107:
			p.bg = p.bg&^colorMask | color16 | uint32(n-100+8)
		case 1:
			p.fg |= fgBold
		case 2:
			p.bg |= bgDim
		case 3:
			p.bg |= bgItalic
		case 4:
			kind := int32(underlineSingle)
			if subs := a.subsOf(i); len(subs) > 0 {
				kind = subs[0]
			}
			p.underline(kind)
		case 5:
			p.fg |= fgBlink
		case 7:
			p.fg |= fgInverse
		case 8:
			p.fg |= fgInvisible
		case 9:
			p.fg |= fgStrike
		case 21:
			p.underline(underlineDouble)
		case 22:
			p.fg &^= fgBold
			p.bg &^= bgDim
		case 23:
			p.bg &^= bgItalic
		case 24:
			p.underline(underlineNone)
		case 25:
			p.fg &^= fgBlink
		case 27:
			p.fg &^= fgInverse
		case 28:
			p.fg &^= fgInvisible
		case 29:
			p.fg &^= fgStrike
		case 38, 48, 58:
			i += p.color(a, i)
		case 39:
			p.fg &^= colorMask
		case 49:
			p.bg &^= colorMask
		case 53:
			p.bg |= bgOverline
		case 55:
			p.bg &^= bgOverline
		case 59:
			// xterm.js sets every bit of the colour for "none".
			p.under |= colorMask
			p.extend()
		}
	}
}

// resetSGR resets all but the link.
func (s *style) resetSGR() {
	s.fg, s.bg, s.under = 0, 0, 0
	s.extend()
}

// extend says in the background whether there is more to the style. The
// underline's colour alone is not.
func (s *style) extend() {
	if s.under>>underlineShift == underlineNone && s.link == 0 {
		s.bg &^= bgExtended
	} else {
		s.bg |= bgExtended
	}
}

func (s *style) underline(kind int32) {
	if kind < 0 || kind > underlineLast {
		kind = underlineSingle
	}
	s.under = s.under&colorMask | uint32(kind)<<underlineShift
	s.fg |= fgUnderline
	if kind == underlineNone {
		s.fg &^= fgUnderline
	}
	s.extend()
}

// color reads an extended colour that begins at parameter pos, in any of its
// forms: 38;5;n, 38:5:n, 38;2;r;g;b, 38:2:r:g:b:, 38:2::r:g:b, and mixtures of
// them. It returns how many further parameters it took.
func (s *style) color(a *params, pos int) int {
	// What was read, brought into one order: target, kind, colour space, and
	// the values. Semicolon forms have no colour space, nor has kind 5.
	v := [6]int32{2: -1}
	shift, took := 0, 0
	for {
		v[took+shift] = a.list[pos+took]
		if subs := a.subsOf(pos + took); len(subs) > 0 {
			for i, sub := range subs {
				if v[1] == 5 {
					shift = 1
				}
				if took+i+1+shift >= len(v) {
					break
				}
				v[took+i+1+shift] = sub
			}
			break
		}
		if v[1] == 5 && took+shift >= 2 || v[1] == 2 && took+shift >= 5 {
			break
		}
		if v[1] != 0 {
			shift = 1
		}
		took++
		if took+pos >= a.n || took+shift >= len(v) {
			break
		}
	}
	for i := range v {
		v[i] = max(v[i], 0)
	}
	set := func(c uint32) uint32 {
		switch v[1] {
		case 2:
			return colorRGB | c&^colorMask | uint32(v[3]&0xff)<<16 | uint32(v[4]&0xff)<<8 | uint32(v[5]&0xff)
		case 5:
			return c&^colorMask | color256 | uint32(v[3]&0xff)
		}
		return c
	}
	switch v[0] {
	case 38:
		s.fg = set(s.fg)
	case 48:
		s.bg = set(s.bg)
	case 58:
		s.under = set(s.under)
	}
	return took
}

// settle makes of a pen what a cell shows of it. DECRC restores the half of the
// pen that fg and bg are, so the other may not go with it.
func (s *style) settle() {
	if s.bg&bgExtended == 0 {
		s.under, s.link = 0, 0
	}
	if s.fg&fgUnderline == 0 {
		s.under = 0
	} else if s.under>>underlineShift == underlineNone {
		s.under |= underlineSingle << underlineShift
	}
	s.extend()
}

package tty

// style follows which parts of the graphic rendition are not the default.
type style struct {
	on     uint32 // bit n: the attribute that SGR n switches on
	colour uint8  // bits of the colours below
}

const (
	colourText = 1 << iota
	colourBack
	colourLine
)

// changed reports whether anything is not as terminals start.
func (s style) changed() bool { return s != style{} }

// apply follows one SGR.
func (s *style) apply(q *sequence) {
	if len(q.params) == 0 {
		*s = style{}
		return
	}
	for i := 0; i < len(q.params); i++ {
		n := q.param(i, 0)
		// What colons add belongs to n.
		subs := 0
		for i+subs+1 < len(q.params) && q.sub[i+subs+1] {
			subs++
		}
		switch {
		case n == 4 && subs > 0 && q.param(i+1, 1) == 0:
			s.on &^= 1<<4 | 1<<21
		case n == 38 || n == 48 || n == 58:
			s.colour |= colourText << (n/10 - 3)
			if subs == 0 { // 38;5;n and 38;2;r;g;b
				switch q.param(i+1, 0) {
				case 5:
					i += 2
				case 2:
					i += 4
				}
			}
		default:
			s.attribute(n)
		}
		i += subs
	}
}

func (s *style) attribute(n int) {
	switch {
	case n == 0:
		*s = style{}
	case n >= 1 && n <= 9, n >= 11 && n <= 21:
		s.on |= 1 << n
	case n == 10:
		s.on &^= 0x3ff << 11 // fonts
	case n == 22:
		s.on &^= 1<<1 | 1<<2
	case n == 23:
		s.on &^= 1<<3 | 1<<20
	case n == 24:
		s.on &^= 1<<4 | 1<<21
	case n == 25:
		s.on &^= 1<<5 | 1<<6
	case n >= 27 && n <= 29: // inverse, hidden, crossed out
		s.on &^= 1 << (n - 20)
	case n >= 30 && n <= 37, n >= 90 && n <= 97:
		s.colour |= colourText
	case n == 39:
		s.colour &^= colourText
	case n >= 40 && n <= 47, n >= 100 && n <= 107:
		s.colour |= colourBack
	case n == 49:
		s.colour &^= colourBack
	case n == 59:
		s.colour &^= colourLine
	case n == 26 || n == 50: // proportional spacing
		s.toggle(22, n == 26)
	case n == 51 || n == 52: // framed, encircled
		s.on |= 1 << 23
	case n == 54:
		s.on &^= 1 << 23
	case n == 53 || n == 55: // overlined
		s.toggle(24, n == 53)
	case n >= 60 && n <= 64: // ideograms
		s.on |= 1 << 25
	case n == 65:
		s.on &^= 1 << 25
	case n == 73 || n == 74: // raised, lowered
		s.on |= 1 << 26
	case n == 75:
		s.on &^= 1 << 26
	}
}

func (s *style) toggle(bit int, on bool) {
	if s.on &^= 1 << bit; on {
		s.on |= 1 << bit
	}
}

package buffer

import "bytes"

// scanner follows output just closely enough to know where it may be cut: it
// has the state graph of a terminal's parser (ECMA-48, as xterm.js follows it)
// without its actions. Its zero value is the ground state.
type scanner struct {
	state scanState
	need  uint8  // continuation bytes that the UTF-8 character in flight still lacks
	c1    bool   // the character in flight began with 0xC2: it may be a C1 control
	start uint64 // where the open sequence or character began; valid unless safe
}

type scanState uint8

const (
	ground scanState = iota
	escape           // after ESC, with or without intermediates
	csi              // after CSI, until its final byte
	osc              // after OSC: ends at BEL, ST, ESC, CAN, SUB
	str              // after DCS, SOS, PM, APC: ends at ST, ESC, CAN, SUB
)

func (s *scanner) safe() bool { return s.state == ground && s.need == 0 }

// scan consumes p, whose first byte has offset off. Where want is set, it
// returns the first safe offset at or after off and true, if there is one.
func (s *scanner) scan(p []byte, off uint64, want bool) (first uint64, ok bool) {
	if want && s.safe() {
		first, ok, want = off, true, false
	}
	for i := 0; i < len(p); {
		if s.safe() {
			n := s.plain(p[i:], off+uint64(i))
			i += n
			if n > 0 && want && s.safe() {
				first, ok, want = off+uint64(i), true, false
			}
			if i == len(p) {
				break
			}
		}
		s.step(p[i], off+uint64(i))
		i++
		if s.state == csi && s.need == 0 { // parameters come in runs
			for i < len(p) && p[i] >= 0x20 && p[i] <= 0x3f {
				i++
			}
		}
		if want && s.safe() {
			first, ok, want = off+uint64(i), true, false
		}
	}
	return first, ok
}

// plain skips over text in the ground state and returns how many bytes it
// took. It stops before ESC and before a C1 control, and leaves the scanner
// inside a character that p cuts.
func (s *scanner) plain(p []byte, off uint64) int {
	end := len(p)
	if end == 0 || p[0] == 0x1b {
		return 0
	}
	if i := bytes.IndexByte(p, 0x1b); i >= 0 {
		end = i
	}
	for i := 0; i < end; {
		j := bytes.IndexByte(p[i:end], 0xc2)
		if j < 0 {
			break
		}
		i += j
		if i+1 >= end || p[i+1] < 0xa0 {
			end = i // step decides: a C1 control, a cut or an invalid character
			break
		}
		i++ // what follows may be a lead byte itself
	}
	if end < len(p) {
		return end
	}
	// Only the last three bytes can hold the beginning of a character that is cut.
	for k := 1; k <= 3 && k <= end; k++ {
		b := p[end-k]
		if b < 0x80 {
			break
		}
		if n := need(b); n > 0 {
			if int(n) >= k {
				s.need, s.c1, s.start = n-uint8(k-1), b == 0xc2 && k == 1, off+uint64(end-k)
				if s.need == 0 {
					s.c1 = false
				}
			}
			break
		}
	}
	return end
}

// need is the number of continuation bytes after the lead byte b; 0 when b is none.
func need(b byte) uint8 {
	switch {
	case b >= 0xc2 && b <= 0xdf:
		return 1
	case b >= 0xe0 && b <= 0xef:
		return 2
	case b >= 0xf0 && b <= 0xf4:
		return 3
	}
	return 0
}

// step consumes one byte at offset off.
func (s *scanner) step(b byte, off uint64) {
	if s.need > 0 {
		if b&0xc0 == 0x80 {
			s.need--
			if s.c1 && s.need == 0 {
				s.c1 = false
				if b < 0xa0 {
					s.control1(b)
				} else {
					s.wide()
				}
			} else if s.need == 0 {
				s.wide()
			}
			return
		}
		s.need, s.c1 = 0, false // an invalid character ends here; b begins anew
	}
	if n := need(b); n > 0 {
		if s.state == ground {
			s.start = off
		}
		s.need, s.c1 = n, b == 0xc2
		return
	}
	switch {
	case b == 0x18 || b == 0x1a: // CAN and SUB abort anything
		s.state = ground
	case b == 0x1b:
		if s.state == ground {
			s.start = off
		}
		// In a string ESC ends it; the ST that may follow belongs to the same
		// sequence, so start stays.
		s.state = escape
	case b < 0x20:
		if b == 0x07 && s.state == osc {
			s.state = ground
		}
	case s.state == escape:
		switch {
		case b <= 0x2f || b == 0x7f: // intermediates; DEL is ignored
		case b == '[':
			s.state = csi
		case b == ']':
			s.state = osc
		case b == 'P' || b == 'X' || b == '^' || b == '_':
			s.state = str
		default:
			s.state = ground
		}
	case s.state == csi && b >= 0x40 && b <= 0x7e:
		s.state = ground
	}
}

// control1 acts on a C1 control that came as two bytes of UTF-8.
func (s *scanner) control1(b byte) {
	switch b {
	case 0x90, 0x98, 0x9e, 0x9f:
		s.state = str
	case 0x9b:
		s.state = csi
	case 0x9d:
		s.state = osc
	default: // among them ST
		s.state = ground
	}
}

// wide acts on a whole character beyond ASCII: it aborts ESC and CSI sequences.
func (s *scanner) wide() {
	if s.state == escape || s.state == csi {
		s.state = ground
	}
}

package tty

// kind is what a control sequence begins with.
type kind uint8

const (
	kindESC kind = iota // ESC, intermediates, a final byte
	kindCSI             // ESC [
	kindOSC             // ESC ]
	kindDCS             // ESC P
	kindAPC             // ESC _ and the other strings that nothing here reads: ESC X, ESC ^
)

const (
	// maxParams bounds the parameters of a sequence; terminals keep 16 to 32.
	maxParams = 32
	// maxParam bounds a parameter, as terminals do: larger ones are clamped.
	maxParam = 65535
	// maxString is how much of a string is kept. Longer ones are images and
	// clipboards, which nothing here looks into.
	maxString = 4 << 10
)

// sequence is one whole control sequence. Its slices are valid until the
// scanner goes on.
type sequence struct {
	kind   kind
	prefix byte   // of a CSI or DCS: one of < = > ?, or 0
	params []int  // -1 where left out
	sub    []bool // the parameter of the same index follows a colon
	inter  []byte // intermediate bytes, space to /
	final  byte
	data   []byte // of a string, cut at maxString
}

// param is the i-th parameter, or def where it is left out.
func (q *sequence) param(i, def int) int {
	if i < len(q.params) && q.params[i] >= 0 {
		return q.params[i]
	}
	return def
}

// is reports whether q is a CSI of exactly this form.
func (q *sequence) is(prefix byte, inter string, final byte) bool {
	return q.kind == kindCSI && q.prefix == prefix && string(q.inter) == inter && q.final == final
}

// event is what the scanner came upon.
type event uint8

const (
	evMore     event = iota // nothing whole: the next bytes belong to an open sequence
	evText                  // bytes that are none of the others
	evControl               // ended by one C0 control, or DEL, which may stand inside a sequence
	evSequence              // a sequence ended with the last byte
)

type scanState uint8

const (
	stGround scanState = iota
	stEsc
	stEscInter
	stCSI       // prefix, parameters
	stCSIInter  // intermediates
	stCSIIgnore // malformed: nothing until its final byte
	stOSC
	stOSCEsc // ESC inside an OSC: a backslash ends it
	stDCSHead
	stDCS
	stDCSEsc
	stAPC
	stAPCEsc
)

// scanner cuts a stream of output into text, controls and sequences, as
// terminals in UTF-8 mode do: eight-bit controls do not exist. The zero value
// is ready. It holds no more than the open sequence.
type scanner struct {
	state scanState
	seq   sequence
	begun uint64 // sequences so far, so that a caller can tell where one began
	cut   bool   // the last of them began inside another
}

// open reports whether the stream stopped inside a sequence.
func (s *scanner) open() bool { return s.state != stGround }

// next looks at the beginning of p, which must not be empty, and tells how
// many bytes it took and what they are. It stops in front of every ESC, so that
// one is always the first byte of a call.
func (s *scanner) next(p []byte) (n int, ev event) {
	if s.state == stGround {
		for n < len(p) && p[n] >= 0x20 && p[n] != 0x7f {
			n++
		}
		if n > 0 {
			return n, evText
		}
	}
	for n < len(p) {
		b := p[n]
		if b == 0x1b && n > 0 {
			return n, evMore
		}
		if b < 0x20 || b == 0x7f {
			// Controls act at once, wherever they stand, except that strings
			// take them as their own.
			if ev := s.control(b); ev != evMore {
				return n + 1, ev
			}
			n++
			continue
		}
		n++
		if s.step(b) {
			s.state = stGround
			return n, evSequence
		}
		if s.state == stGround {
			return n, evMore // a sequence that was none
		}
	}
	return n, evMore
}

// control handles a C0 control or DEL.
func (s *scanner) control(b byte) event {
	switch {
	case b == 0x18 || b == 0x1a: // CAN and SUB end any sequence unheard
		s.state = stGround
		return evControl
	case b == 0x1b:
		switch s.state {
		case stOSC:
			s.state = stOSCEsc
		case stDCS:
			s.state = stDCSEsc
		case stAPC:
			s.state = stAPCEsc
		default:
			s.begin()
		}
		return evMore
	}
	switch s.state {
	case stOSCEsc, stDCSEsc, stAPCEsc:
		// The ESC began something else; it dropped the string.
		s.begin()
		return evControl
	case stOSC:
		if b == 0x07 {
			s.state = stGround
			return evSequence
		}
		return evMore
	case stDCSHead, stDCS, stAPC:
		return evMore
	}
	return evControl
}

// begin starts a sequence after its ESC.
func (s *scanner) begin() {
	s.cut = s.state != stGround
	s.state = stEsc
	s.begun++
	q := &s.seq
	*q = sequence{params: q.params[:0], sub: q.sub[:0], inter: q.inter[:0], data: q.data[:0]}
}

// step takes one byte of an open sequence, which is no control, and tells
// whether the sequence is whole.
func (s *scanner) step(b byte) (whole bool) {
	q := &s.seq
	switch s.state {
	case stOSCEsc, stDCSEsc, stAPCEsc:
		if b == '\\' {
			return true
		}
		s.begin() // any other sequence drops the string
		return s.step(b)
	case stEsc:
		switch b {
		case '[':
			q.kind, s.state = kindCSI, stCSI
			return false
		case ']':
			q.kind, s.state = kindOSC, stOSC
			return false
		case 'P':
			q.kind, s.state = kindDCS, stDCSHead
			return false
		case 'X', '^', '_':
			q.kind, s.state = kindAPC, stAPC
			return false
		}
		q.kind = kindESC
		return s.escByte(b)
	case stEscInter:
		return s.escByte(b)
	case stCSI, stDCSHead:
		return s.head(b)
	case stCSIInter:
		switch {
		case b >= 0x40 && b < 0x7f:
			q.final = b
			return true
		case b < 0x30 && len(q.inter) < 4:
			q.inter = append(q.inter, b)
		default:
			s.state = stCSIIgnore
		}
	case stCSIIgnore:
		if b >= 0x40 && b < 0x7f {
			s.state = stGround
		}
	case stOSC, stDCS, stAPC:
		if len(q.data) < maxString {
			q.data = append(q.data, b)
		}
	}
	return false
}

// escByte takes a byte after ESC and its intermediates.
func (s *scanner) escByte(b byte) bool {
	q := &s.seq
	switch {
	case b < 0x30 && len(q.inter) < 4:
		q.inter = append(q.inter, b)
		s.state = stEscInter
		return false
	case b >= 0x30 && b < 0x7f:
		q.final = b
		return true
	}
	s.state = stGround // a byte of UTF-8, or too many intermediates
	return false
}

// head takes a byte of the prefix, the parameters or the end of them.
func (s *scanner) head(b byte) bool {
	q := &s.seq
	switch {
	case b >= '<' && b <= '?' && len(q.params) == 0 && q.prefix == 0 && len(q.inter) == 0:
		q.prefix = b
	case b >= '0' && b <= '9' && len(q.inter) == 0:
		if len(q.params) == 0 {
			s.addParam(false)
		}
		last := &q.params[len(q.params)-1]
		*last = min(max(*last, 0)*10+int(b-'0'), maxParam)
	case (b == ';' || b == ':') && len(q.inter) == 0:
		if len(q.params) == 0 {
			s.addParam(false)
		}
		s.addParam(b == ':')
	case b < 0x30:
		if s.state == stCSI {
			s.state = stCSIInter
		}
		if len(q.inter) < 4 {
			q.inter = append(q.inter, b)
		}
	case b >= 0x40 && b < 0x7f:
		q.final = b
		if s.state == stDCSHead {
			s.state = stDCS
			return false
		}
		return true
	default:
		if s.state == stDCSHead {
			s.state = stAPC // to its end, as a string that nothing reads
			q.kind = kindAPC
		} else {
			s.state = stCSIIgnore
		}
	}
	return false
}

// addParam opens a parameter. What is beyond maxParams adds to the last one's
// place, so that it is read and dropped.
func (s *scanner) addParam(sub bool) {
	q := &s.seq
	if len(q.params) == maxParams {
		q.params[maxParams-1] = -1
		return
	}
	q.params = append(q.params, -1)
	q.sub = append(q.sub, sub)
}

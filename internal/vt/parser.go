package vt

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// state is where the parser stands between two code points.
type state uint8

const (
	ground state = iota
	escape
	escapeCollect // an intermediate came
	csiEntry
	csiParam
	csiCollect
	csiIgnore
	ignoreString // SOS, PM, APC
	oscString
	dcsEntry
	dcsParam
	dcsCollect
	dcsIgnore
	dcsString
)

// parser holds a sequence that is still open.
type parser struct {
	state   state
	collect [maxCollect]byte // prefix and intermediates
	ncol    int
	args    params

	final    byte   // of a DCS
	text     []byte // of an OSC or DCS
	overlong bool   // text passed MaxString: it has no effect

	joinBefore uint8 // Terminal.join when the sequence began

	part  [utf8.UTFMax]byte // of a code point that is still open
	npart int
}

func (p *parser) reset() {
	p.state = ground
	p.clear()
	p.dropText()
}

func (p *parser) clear() {
	p.ncol = 0
	p.args.reset()
}

func (p *parser) dropText() {
	p.overlong = false
	if cap(p.text) > 4096 {
		p.text = nil
	}
	p.text = p.text[:0]
}

// Write reads what the program printed.
func (t *Terminal) Write(b []byte) {
	if len(b) == 0 {
		return
	}
	end := t.off + int64(len(b))
	t.rev += uint64(len(b))
	if t.p.npart > 0 {
		t.off++
		b = t.finishPart(b)
	}
	again := len(b) + 1 // bytes left when a backlog is worth looking for
	for len(b) > 0 {
		switch {
		case t.p.state == ground && b[0] >= 0x20 && b[0] < 0x7f:
			if t.s.x == 0 && len(b) < again {
				n, looked := t.backlog(b)
				if n > 0 {
					b = b[n:]
					continue
				}
				again = len(b) - looked
			}
			n := plainLen(b)
			t.printASCII(b[:n])
			b = b[n:]
			continue
		case b[0] == '\n' && t.p.state == ground:
			t.join = 0
			t.lineFeed()
			b = b[1:]
			continue
		case b[0] == '\r' && t.p.state == ground:
			t.join = 0
			t.s.x = 0
			b = b[1:]
			continue
		case b[0] < 0x80:
			if b[0] == 0x1b && len(b) > 2 && b[1] == '[' && t.p.state == ground {
				if n := t.sgrInPlace(b); n > 0 {
					b = b[n:]
					continue
				}
				t.off = end - int64(len(b))
				if n := t.csiInPlace(b); n > 0 {
					b = b[n:]
					continue
				}
			}
			if t.p.state == oscString || t.p.state == dcsString {
				if n := plainLen(b); n > 0 {
					t.p.put(b[:n])
					b = b[n:]
					continue
				}
			}
			t.off = end - int64(len(b)) + 1
			t.step(uint32(b[0]))
			b = b[1:]
			continue
		}
		if t.p.state == ground && b[0] >= 0xc2 {
			if n := t.printUTF8(b); n > 0 {
				b = b[n:]
				continue
			}
		}
		r, n, more := decode(b)
		if more {
			t.p.npart = copy(t.p.part[:], b)
			break
		}
		b = b[n:]
		if r >= 0 {
			t.off = end - int64(len(b))
			t.step(uint32(r))
		}
	}
	t.off = end
}

// finishPart takes what completes or breaks the code point that was open, and
// returns the rest.
func (t *Terminal) finishPart(b []byte) []byte {
	p := &t.p
	for len(b) > 0 {
		p.part[p.npart] = b[0]
		r, n, more := decode(p.part[:p.npart+1])
		if more {
			p.npart++
			b = b[1:]
			continue
		}
		if n > p.npart {
			b = b[1:] // the byte belonged to it
		}
		p.npart = 0
		if r >= 0 {
			t.step(uint32(r))
		}
		return b
	}
	return b
}

// decode reads one code point. A negative one is an error, which is passed over
// in silence as the browser does: wrong starters, overlong forms, surrogates
// and the byte order mark. More says that bytes are missing.
func decode(b []byte) (r int32, n int, more bool) {
	c := b[0]
	switch {
	case c < 0x80:
		return int32(c), 1, false
	case c < 0xc2 || c > 0xf7:
		return -1, 1, false
	}
	size := 2
	r = int32(c & 0x1f)
	if c >= 0xf0 {
		size, r = 4, int32(c&7)
	} else if c >= 0xe0 {
		size, r = 3, int32(c&0xf)
	}
	for i := 1; i < size; i++ {
		if i == len(b) {
			return 0, 0, true
		}
		if b[i]&0xc0 != 0x80 {
			return -1, i, false
		}
		r = r<<6 | int32(b[i]&0x3f)
	}
	switch {
	case size == 3 && (r < 0x800 || r >= 0xd800 && r < 0xe000 || r == 0xfeff),
		size == 4 && (r < 0x10000 || r > 0x10ffff):
		r = -1
	}
	return r, size, false
}

// plainLen counts the leading bytes of 0x20 to 0x7e.
func plainLen(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for len(b)-n >= 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		// High bit set where a byte is below 0x20, is 0x7f, or is above.
		bad := (w - 0x20*ones) | (w + ones) | w
		if bad &= high; bad != 0 {
			return n + bits.TrailingZeros64(bad)/8
		}
		n += 8
	}
	for n < len(b) && b[n] >= 0x20 && b[n] < 0x7f {
		n++
	}
	return n
}

// step takes one code point.
func (t *Terminal) step(r uint32) {
	p := &t.p
	if p.state == ground && r >= 0xa0 {
		t.printRune(r)
		return
	}
	if r >= 0x80 {
		t.stepHigh(r)
		return
	}
	c := byte(r)
	switch {
	case c == 0x1b:
		t.stringEnd(true)
		p.state = escape
		p.clear()
		return
	case c == 0x18 || c == 0x1a:
		if !t.stringEnd(false) {
			t.execute(c)
		}
		p.state = ground
		return
	}
	switch p.state {
	case ground:
		if c < 0x20 {
			t.execute(c)
		}
	case escape, escapeCollect:
		t.stepEscape(c)
	case csiEntry, csiParam, csiCollect, csiIgnore:
		t.stepCSI(c)
	case oscString:
		switch {
		case c == 7:
			t.stringEnd(true)
			p.state = ground
		case c >= 0x20:
			p.putByte(c)
		}
	case dcsEntry, dcsParam, dcsCollect:
		t.stepDCS(c)
	case dcsString:
		if c != 0x7f {
			p.putByte(c)
		}
	}
}

// stepHigh takes a code point from 0x80 on, outside of printed text.
func (t *Terminal) stepHigh(r uint32) {
	p := &t.p
	switch {
	case r >= 0xa0:
		switch p.state {
		case oscString, dcsString:
			var buf [utf8.UTFMax]byte
			p.put(utf8.AppendRune(buf[:0], rune(r)))
		case csiIgnore, dcsIgnore:
		default:
			p.state = ground
		}
	case r == 0x9c:
		t.stringEnd(true)
		p.state = ground
	case r == 0x9b:
		p.state = csiEntry
		p.clear()
	case r == 0x90:
		p.state = dcsEntry
		p.clear()
	case r == 0x9d:
		p.state = oscString
		p.dropText()
	case r == 0x98 || r == 0x9e || r == 0x9f:
		p.state = ignoreString
	default:
		t.execute(byte(r))
		p.state = ground
	}
}

func (t *Terminal) stepEscape(c byte) {
	p := &t.p
	switch {
	case c < 0x20:
		t.execute(c)
	case c == 0x7f:
	case c < 0x30:
		p.addCollect(c)
		p.state = escapeCollect
	case p.state == escapeCollect:
		p.state = ground
		t.dispatchEscape(c)
	case c == '[':
		p.state = csiEntry
		p.clear()
	case c == ']':
		p.state = oscString
		p.dropText()
	case c == 'P':
		p.state = dcsEntry
		p.clear()
	case c == 'X' || c == '^' || c == '_':
		p.state = ignoreString
	default:
		p.state = ground
		t.dispatchEscape(c)
	}
}

func (t *Terminal) stepCSI(c byte) {
	p := &t.p
	switch {
	case c < 0x20:
		t.execute(c)
	case c == 0x7f:
	case c >= 0x40:
		ignored := p.state == csiIgnore
		p.state = ground
		if !ignored {
			t.dispatchCSI(c)
		}
	case p.state == csiIgnore:
	case c < 0x30:
		p.addCollect(c)
		p.state = csiCollect
	case p.state == csiCollect:
		p.state = csiIgnore
	case c < 0x3c:
		p.args.put(c)
		p.state = csiParam
	case p.state == csiEntry:
		p.addCollect(c)
		p.state = csiParam
	default:
		p.state = csiIgnore
	}
}

func (t *Terminal) stepDCS(c byte) {
	p := &t.p
	switch {
	case c < 0x20 || c == 0x7f:
	case c >= 0x40:
		p.final = c
		p.dropText()
		p.state = dcsString
	case c < 0x30:
		p.addCollect(c)
		p.state = dcsCollect
	case p.state == dcsCollect:
		p.state = dcsIgnore
	case c < 0x3c:
		p.args.put(c)
		p.state = dcsParam
	case p.state == dcsEntry:
		p.addCollect(c)
		p.state = dcsParam
	default:
		p.state = dcsIgnore
	}
}

func (p *parser) addCollect(c byte) {
	if p.ncol < maxCollect {
		p.collect[p.ncol] = c
		p.ncol++
	}
}

func (p *parser) putByte(c byte) {
	if len(p.text) < MaxString {
		p.text = append(p.text, c)
	} else {
		p.overlong = true
	}
}

func (p *parser) put(b []byte) {
	if len(p.text)+len(b) > MaxString {
		p.overlong = true
		return
	}
	p.text = append(p.text, b...)
}

// stringEnd ends an OSC or DCS, if one is open. A false ok says that it was
// broken off.
func (t *Terminal) stringEnd(ok bool) bool {
	p := &t.p
	switch p.state {
	case oscString:
		t.join = 0
		if ok && !p.overlong {
			t.dispatchOSC(p.text)
		}
	case dcsString:
		t.join = 0
		if ok && !p.overlong {
			t.dispatchDCS(p.text)
		}
	default:
		return false
	}
	p.clear()
	p.dropText()
	return true
}

// csiInPlace reads a whole control sequence that b begins with, as nearly all
// are: digits, separators and a final byte. It returns 0 for any other.
func (t *Terminal) csiInPlace(b []byte) int {
	p := &t.p
	a := &p.args
	i := 2
	p.ncol = 0
	if c := b[2]; c >= 0x3c && c <= 0x3f {
		p.collect[0] = c
		p.ncol = 1
		i = 3
	}
	a.n, a.nsub, a.inSub, a.rejected, a.subRejected = 1, 0, false, false, false
	a.list[0], a.subs[0] = 0, 0
	value := int32(0)
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case c >= '0' && c <= '9':
			if value < 1<<24 {
				value = value*10 + int32(c-'0')
				continue
			}
			return 0
		case c == ';':
			if a.n == maxParams {
				return 0
			}
			a.list[a.n-1] = value
			a.list[a.n], a.subs[a.n] = 0, 0
			a.n++
			value = 0
			continue
		case c >= 0x40 && c < 0x7f:
			a.list[a.n-1] = value
			if c == 'm' && p.ncol == 0 {
				t.join = 0
				t.sgr(a)
				return i + 1
			}
			t.off += int64(i + 1)
			t.dispatchCSI(c)
			return i + 1
		}
		return 0
	}
	return 0
}

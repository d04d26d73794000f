package vt

import (
	"encoding/binary"
	"unicode/utf8"
)

// leave ends the wide character within which the cursor stands.
func (t *Terminal) leave() {
	s := t.s
	if s.x > 0 {
		if r := s.rows[s.y]; r.width(s.x-1) == 2 {
			r.rev = t.rev
			r.cells[s.x-1] = t.penCell()
		}
	}
}

// mend empties the right half behind the cursor when its left one was printed
// over.
func (t *Terminal) mend(r *row) {
	if x := t.s.x; x < t.cols && isHalf(r.cells[x]) {
		r.cells[x] = t.penCell()
	}
}

// printASCII prints bytes of 0x20 to 0x7e.
func (t *Terminal) printASCII(p []byte) {
	if t.charset != nil || t.modes.insert || !t.modes.wrap {
		for _, b := range p {
			t.printRune(uint32(b))
		}
		return
	}
	s := t.s
	if x := s.x; x > 0 {
		if cells := s.rows[s.y].cells; x <= len(cells) && cells[x-1]&widthMask == wide {
			t.leave()
		}
	}
	base := t.penCell()
	for {
		if s.x >= t.cols {
			t.wrap()
		}
		r := s.rows[s.y]
		r.rev = t.rev
		dst := r.cells[s.x:t.cols]
		n := min(len(dst), len(p))
		dst, src := dst[:n], p[:n]
		i := 0
		for ; i+8 <= len(src); i += 8 {
			w := binary.LittleEndian.Uint64(src[i:])
			d := dst[i : i+8 : i+8]
			d[0] = base | cell(w&0xff)
			d[1] = base | cell(w>>8&0xff)
			d[2] = base | cell(w>>16&0xff)
			d[3] = base | cell(w>>24&0xff)
			d[4] = base | cell(w>>32&0xff)
			d[5] = base | cell(w>>40&0xff)
			d[6] = base | cell(w>>48&0xff)
			d[7] = base | cell(w>>56)
		}
		for ; i < len(src); i++ {
			dst[i] = base | cell(src[i])
		}
		s.x += n
		p = p[n:]
		if len(p) == 0 {
			if x := s.x; x < len(r.cells) && isHalf(r.cells[x]) {
				t.mend(r)
			}
			break
		}
	}
	t.join = 1
}

// printUTF8 prints text that begins with a character beyond ASCII, as far as it
// neither joins nor wraps nor needs any other care, and returns how many bytes that
// were.
func (t *Terminal) printUTF8(b []byte) int {
	if t.charset != nil || t.modes.insert || !t.modes.wrap {
		return 0
	}
	s := t.s
	line := s.rows[s.y]
	cells := line.cells[:t.cols]
	pen := t.penCell()
	n, x, width := 0, s.x, 0
	for n < len(b) && b[n] >= 0x20 {
		var r uint32
		size := 0
		switch c := b[n]; {
		case c < 0x7f:
			if x >= len(cells) {
				break
			}
			cells[x] = pen | cell(c)
			x++
			width = 1
			n++
			continue
		case c >= 0xe0 && c < 0xf0 && len(b)-n >= 3 && b[n+1]&0xc0 == 0x80 && b[n+2]&0xc0 == 0x80:
			r = uint32(c&15)<<12 | uint32(b[n+1]&63)<<6 | uint32(b[n+2]&63)
			if r < 0x800 || r >= 0xd800 && r < 0xe000 || r == 0xfeff {
				break
			}
			size = 3
		case c >= 0xc2 && c < 0xe0 && len(b)-n >= 2 && b[n+1]&0xc0 == 0x80:
			r = uint32(c&31)<<6 | uint32(b[n+1]&63)
			size = 2
		default:
			v, k, more := decode(b[n:])
			if !more && v >= 0 {
				r, size = uint32(v), k
			}
		}
		if size == 0 || r < 0xa0 {
			break
		}
		w := runeWidth(r)
		if w == 0 || x+w > len(cells) {
			break
		}
		if n == 0 {
			t.leave() // not before: bytes that are no character change nothing
		}
		cells[x] = pen | glyph(r, w, 0)
		if w == 2 {
			cells[x+1] = pen | empty
		}
		x += w
		width = w
		n += size
	}
	if n > 0 {
		line.rev = t.rev
		s.x = x
		t.join = uint8(width)
		t.mend(line)
	}
	return n
}

// wrap goes to the beginning of the next row, which continues this one.
func (t *Terminal) wrap() {
	s := t.s
	s.x = 0
	s.y++
	if s.y == s.bottom+1 {
		s.y--
		t.scroll(t.blank(), true)
	} else {
		if s.y >= t.rows {
			s.y = t.rows - 1
		}
		t.line().wrapped = true
	}
}

// printRune prints one code point.
func (t *Terminal) printRune(r uint32) {
	if r < 127 && t.charset != nil {
		if to := t.charset.to[r]; to != 0 {
			r = uint32(to)
		}
	}
	t.leave()
	s := t.s
	width := runeWidth(r)
	old := 0
	joins := width == 0 && t.join != 0
	if joins {
		width = int(t.join)
		old = width
	}
	t.join = uint8(width)
	if s.x+width-old > t.cols {
		if t.modes.wrap {
			// A wide character did not fit: what it leaves is empty.
			if s.x < t.cols {
				t.line().cells[s.x] = t.penCell()
			}
			t.wrap()
		} else {
			s.x = t.cols - 1
			if width == 2 {
				t.join = 0 // nothing stands there that a combining one could join
				t.mend(s.rows[s.y])
				return // no room for it at the end of a row that does not wrap
			}
		}
	}
	line := t.line()
	if joins && s.x > 0 {
		at := s.x - 1
		if line.width(at) == 0 && at > 0 {
			at--
		}
		t.combine(line, at, r, width)
		return
	}
	if t.modes.insert {
		line.insert(s.x, width-old, t.penCell())
	}
	pen := t.penCell()
	shows := r
	if joins {
		// A combining character with a width, as nothing stands before
		// it: a cluster, which is what may begin with one.
		shows = t.styles.cluster(utf8.AppendRune(nil, rune(r)))
	}
	if s.x < len(line.cells) {
		line.cells[s.x] = pen | glyph(shows, width, 0)
	}
	s.x++
	if width == 2 {
		if s.x < len(line.cells) {
			line.cells[s.x] = pen | empty
		}
		s.x++
	}
	t.mend(line)
}

// combine adds a combining character to what a cell shows.
func (t *Terminal) combine(line *row, x int, r uint32, width int) {
	c := line.cells[x]
	var buf [MaxCluster + utf8.UTFMax]byte
	text := t.appendText(buf[:0], c)
	text = utf8.AppendRune(text, rune(r))
	if len(text) > MaxCluster {
		return
	}
	if t.styles.full && !t.shared {
		t.sweep()
		c = line.cells[x]
	}
	line.cells[x] = c&^(contentMask|widthMask) | glyph(t.styles.cluster(text), width, 0)
}

// appendText appends what a cell shows, nothing for an empty one.
func (t *Terminal) appendText(dst []byte, c cell) []byte {
	switch {
	case !c.hasContent():
		return dst
	case c.isCluster():
		return append(dst, t.styles.clusters[c.clusterIndex()]...)
	default:
		return utf8.AppendRune(dst, rune(c.content()))
	}
}

// maxRepeat bounds REP, in cells, where two screens are more still: a dozen bytes
// must not make a million cells.
const maxRepeat = 16384

// repeat is REP: it prints again what was printed last.
func (t *Terminal) repeat(n int) {
	if t.join == 0 {
		return
	}
	s := t.s
	x := s.x - int(t.join)
	line := s.rows[s.y]
	if x < 0 || x >= len(line.cells) || !line.cells[x].hasContent() {
		return
	}
	c := line.cells[x]
	n = min(n, 2*t.cols*t.rows, maxRepeat)
	if ch := c.content(); ch < 0x7f {
		var buf [256]byte
		for i := range buf[:min(n, len(buf))] {
			buf[i] = byte(ch)
		}
		for ; n > 0; n -= min(n, len(buf)) {
			t.printASCII(buf[:min(n, len(buf))])
		}
	} else {
		text := t.appendText(nil, c)
		for range n {
			for rest := text; len(rest) > 0; {
				r, size := utf8.DecodeRune(rest)
				rest = rest[size:]
				t.printRune(uint32(r))
			}
		}
	}
}

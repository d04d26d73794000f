package vt

import (
	"encoding/binary"
	"slices"
	"strconv"
	"unicode/utf8"
)

// encoder draws rows as bytes that any terminal takes, each row from a reset pen
// to a reset pen.
type encoder struct {
	t   *Terminal
	dst []byte

	style styleID // the pen
	link  linkID
}

// ending says where drawing a row leaves the cursor.
type ending uint8

const (
	endsElse  ending = iota
	endsFull         // past the last column: what is printed next wraps
	endsShort        // at the last column, which is empty, after something printed
)

// endingOf says where drawing r leaves the cursor.
func endingOf(r *row, cols int) ending {
	if cols < 2 || len(r.cells) < cols {
		return endsElse
	}
	last, before := r.cells[cols-1], r.cells[cols-2]
	switch {
	case last.hasContent():
		if last.width() <= 1 {
			return endsFull
		}
	case isHalf(last):
		if before.width() == 2 && before.style() == last.style() {
			return endsFull
		}
	case before.hasContent() && before.width() == 1,
		isHalf(before) && cols > 2 && r.cells[cols-3].width() == 2:
		return endsShort
	}
	return endsElse
}

// isHalf says that c is the right half of a wide character.
func isHalf(c cell) bool { return c&(widthMask|contentMask) == empty }

// joiner appends what leads from the end of prev to the beginning of r and says
// whether that took bytes. The last cell of prev is what it must look like
// afterwards; prev is called for only where it takes drawing again.
func (e *encoder) joiner(end ending, last cell, prev func() *row, r *row) bool {
	if !r.wrapped {
		e.dst = append(e.dst, "\r\n"...)
		return true
	}
	// What is printed next goes to the next row by itself. If that scrolls, the
	// row is born in the background of the moment, so that has to be none.
	first := r.cells[0]
	plain := first.hasContent() && len(r.marks) == 0 && e.t.styles.list[first.style()].bg&colorMask == 0
	switch {
	case end == endsFull && plain && first.width() > 0:
		return false
	case end == endsShort && plain && first.width() == 2 && last == styled(first.style()):
		return false // there is no room for it in the last column
	case end == endsFull:
		e.dst = append(e.dst, " \r"...)
		if !first.hasContent() {
			e.erase(1)
		}
		return true
	}
	e.forceWrap(prev())
	return true
}

// forceWrap makes the next row a continuation though nothing is printed past the
// end of prev: it prints there, wraps, and draws the last column again.
func (e *encoder) forceWrap(prev *row) {
	n := e.t.cols
	e.dst = append(e.dst, '\r')
	e.move(n - 1)
	if prev != nil && prev.cells[n-1]&(widthMask|contentMask) == 0 {
		// A wide character has no room in the last column: it wraps, and
		// leaves that column empty, in its style.
		c := prev.cells[n-1]
		e.pen(c)
		e.dst = append(e.dst, "\u3042"...)
		e.end()
		e.dst = append(e.dst, '\r')
		if e.t.styles.list[c.style()].bg&colorMask != 0 {
			e.erase(n) // the row may be born in that background
		} else {
			e.erase(2)
		}
		return
	}
	e.dst = append(e.dst, "  "...) // the second one wraps
	if prev != nil && e.t.rows > 1 {
		e.dst = append(e.dst, "\r\x1b[A"...)
		from := n - 1
		for from > 0 && e.t.styles.isHalved(prev.cells[from]) {
			from--
		}
		if from > 0 && isHalf(prev.cells[from]) {
			from--
		}
		e.move(from)
		e.erase(n - from)
		e.cells(prev.cells, from, n)
		e.end()
		e.dst = append(e.dst, "\r\x1b[B"...)
	} else {
		e.dst = append(e.dst, '\r')
	}
	e.erase(1)
}

// move goes n columns to the right.
func (e *encoder) move(n int) { e.sequence(n, 'C') }

// erase empties n columns, in the pen's background.
func (e *encoder) erase(n int) { e.sequence(n, 'X') }

func (e *encoder) sequence(n int, final byte) {
	if n <= 0 {
		return
	}
	e.dst = append(e.dst, "\x1b["...)
	if n != 1 {
		e.dst = strconv.AppendInt(e.dst, int64(n), 10)
	}
	e.dst = append(e.dst, final)
}

// row draws r from its first column on.
func (e *encoder) row(r *row) {
	for i := range r.marks {
		e.dst = r.marks[i].append(e.dst)
	}
	n := min(len(r.cells), e.t.cols)
	for n > 0 && r.cells[n-1] == 0 {
		n--
	}
	if n > 0 && n == e.t.cols-1 && r.cells[n-1].width() == 2 {
		n++ // its right half is empty: see clipped
	}
	e.cells(r.cells, 0, n)
	e.end()
}

// end resets the pen.
func (e *encoder) end() {
	if e.style != defaultStyle {
		e.set(defaultStyle)
	}
}

// set changes the pen.
func (e *encoder) set(id styleID) {
	t := e.t.styles
	e.style = id
	e.dst = append(e.dst, t.sgr[id]...)
	if len(t.links) == 1 {
		return // there are none
	}
	if l := t.list[id].link; l != e.link {
		e.link = l
		e.dst = appendLink(e.dst, t.links[l])
	}
}

// appendLink opens a link, or ends one where there is none.
func appendLink(dst []byte, l link) []byte {
	dst = append(dst, "\x1b]8;"...)
	if l.uri != "" {
		dst = append(dst, "id="...)
		dst = append(dst, l.id...)
		if l.id == "" {
			// A name of its own keeps the parts of one link together.
			dst = append(dst, "ptyd-"...)
			dst = strconv.AppendUint(dst, uint64(l.serial), 10)
		}
	}
	dst = append(dst, ';')
	dst = append(dst, l.uri...)
	return append(dst, "\x1b\\"...)
}

// cells draws the columns from i to to.
func (e *encoder) cells(cells []cell, i, to int) {
	for i < to {
		c := cells[i]
		if c.style() != e.style && c != 0 {
			e.set(c.style())
		}
		switch {
		case !c.hasContent():
			i = e.blanks(cells, i, to)
		case c.content() < 0x80 && c.width() == 1:
			// The common case: a stretch of ASCII in one style.
			i += e.ascii(cells[i:to], c&^contentMask)
		case c.width() < 2:
			if c.isCluster() || c.width() == 0 {
				e.glyph(c)
				i++
				continue
			}
			i += e.narrow(cells[i:to], c&^contentMask)
		case i+1 < to && cells[i+1] == c&^(contentMask|widthMask)|empty:
			e.glyph(c)
			i += 2
		case i+2 == e.t.cols && to == e.t.cols && cells[i+1].hasContent() && cells[i+1].width() == 1:
			// Without wrapping the last column is printed over and over,
			// even if it is half a character.
			e.dst = append(e.dst, "\x1b[?7l"...)
			e.glyph(c)
			e.pen(cells[i+1])
			e.glyph(cells[i+1])
			e.dst = append(e.dst, "\x1b[?7h"...)
			i += 2
		case i+2 == e.t.cols && i+1 < to && e.clipped(cells[i], cells[i+1]):
			i += 2
		default:
			// Half a wide character can't be drawn; it shows as nothing.
			e.erase(1)
			e.move(1)
			i++
		}
	}
}

// ascii prints the ASCII that run begins with, all of one style and width, which
// high is, and returns how much that is.
func (e *encoder) ascii(run []cell, high cell) int {
	n := len(e.dst)
	dst := e.dst
	if cap(dst)-n < len(run) {
		dst = slices.Grow(dst, len(run))
	}
	out := dst[n : n+len(run)]
	k := 0
	for ; k+8 <= len(run); k += 8 {
		r := run[k : k+8 : k+8]
		r0, r1, r2, r3 := r[0]^high, r[1]^high, r[2]^high, r[3]^high
		r4, r5, r6, r7 := r[4]^high, r[5]^high, r[6]^high, r[7]^high
		// Each is from 1 to 0x80, which nothing is.
		if (r0-1)|(r1-1)|(r2-1)|(r3-1)|(r4-1)|(r5-1)|(r6-1)|(r7-1) >= 0x80 {
			break
		}
		binary.LittleEndian.PutUint64(out[k:], uint64(r0|r1<<8|r2<<16|r3<<24|r4<<32|r5<<40|r6<<48|r7<<56))
	}
	for ; k < len(run); k++ {
		r := run[k] ^ high
		if r-1 >= 0x7f {
			break
		}
		out[k] = byte(r)
	}
	e.dst = dst[:n+k]
	return k
}

// narrow prints the runes of one column that run begins with, all of one style,
// which high is, and returns how many that are.
func (e *encoder) narrow(run []cell, high cell) int {
	dst := e.dst
	k := 0
	for ; k < len(run); k++ {
		r := run[k] ^ high
		switch {
		case r-1 < 0x7f:
			dst = append(dst, byte(r))
		case r-0x80 < 0x780:
			dst = append(dst, byte(0xc0|r>>6), byte(0x80|r&0x3f))
		case r-0x800 < 0xf800:
			dst = append(dst, byte(0xe0|r>>12), byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
		default:
			if r == 0 || r > utf8.MaxRune {
				e.dst = dst
				return k
			}
			dst = utf8.AppendRune(dst, rune(r))
		}
	}
	e.dst = dst
	return k
}

// clipped draws a wide character in the last two columns whose right half was
// printed over: without wraparound what is printed there stays there.
func (e *encoder) clipped(c, over cell) bool {
	if over.width() != 1 || e.t.isCombined(c) || over.hasContent() && e.t.isCombined(over) {
		return false
	}
	e.dst = append(e.dst, "\x1b[?7l"...)
	e.glyph(c)
	e.pen(over)
	if over.hasContent() {
		e.glyph(over)
	} else {
		// Another one has no room, and empties the half that is in its way.
		e.dst = append(e.dst, "\u3042"...)
	}
	e.dst = append(e.dst, "\x1b[?7h"...)
	return true
}

// isCombined says that a cell's width is not that of its first character.
func (t *Terminal) isCombined(c cell) bool {
	first := rune(c.content())
	if c.isCluster() {
		first, _ = utf8.DecodeRuneInString(t.styles.clusters[c.clusterIndex()])
	}
	return runeWidth(uint32(first)) != c.width()
}

// glyph prints what a cell shows.
func (e *encoder) glyph(c cell) {
	if c.isCluster() {
		text := e.t.styles.clusters[c.clusterIndex()]
		if r, _ := utf8.DecodeRuneInString(text); runeWidth(uint32(r)) == 0 {
			e.standAlone()
		}
		e.dst = append(e.dst, text...)
		return
	}
	if c.width() == 0 {
		e.standAlone()
	}
	if r := c.content(); r >= 0x800 && r < 0x10000 {
		e.dst = append(e.dst, byte(0xe0|r>>12), byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
	} else {
		e.dst = utf8.AppendRune(e.dst, rune(r))
	}
}

// standAlone keeps a combining character from joining what stands before it: any
// sequence does, and this one does nothing else.
func (e *encoder) standAlone() { e.dst = append(e.dst, "\x1b\\"...) }

// blanks draws the empty cells from i on that are alike, and returns where they
// end. At the end of a row the cursor may stay before them.
func (e *encoder) blanks(cells []cell, i, to int) int {
	c := cells[i]
	end := i + 1
	for end < to && cells[end] == c {
		end++
	}
	switch {
	case c == 0:
	case isHalf(c):
		e.orphan(cells, i)
		return i + 1
	case e.t.styles.isHalved(c):
		for end = i + 1; end < to && e.t.styles.isHalved(cells[end]); end++ {
		}
		if end == e.t.cols && i > 0 {
			e.halvedAtEnd(cells, i)
			return end
		}
		for ; i < end; i++ {
			e.halved(cells, i)
		}
		return end
	default:
		e.erase(end - i)
	}
	if end < e.t.cols {
		e.move(end - i)
	}
	return end
}

// isHalved says that c is empty and shows more than a background. Such a cell is
// left where a wide character lost a half, so it is drawn that way.
func (t *styles) isHalved(c cell) bool {
	s := &t.list[c.style()]
	return c&(widthMask|contentMask) == 0 && (s.fg != 0 || s.bg&^colorMask != 0)
}

// halved draws such a cell at column x and goes behind it: a wide character, then
// a narrow one on its right half.
func (e *encoder) halved(cells []cell, x int) {
	e.pen(cells[x])
	switch n := e.t.cols; {
	case x+1 == n:
		e.erase(1)
		return
	case x+2 == n:
		e.dst = append(e.dst, "\u3042\x1b[C \x1b[C"...)
	default:
		e.dst = append(e.dst, "\u3042\b \b"...)
	}
	if cells[x+1] == 0 {
		// Nothing draws over the narrow one.
		e.pen(0)
		e.erase(1)
	}
}

// halvedAtEnd draws such cells from column x to the last: from right to left, a
// wide character, then a narrow one on its left half. What stood before them is
// then drawn again.
func (e *encoder) halvedAtEnd(cells []cell, x int) {
	n := e.t.cols
	for i := n - 1; i >= x; i-- {
		e.pen(cells[i])
		e.dst = append(e.dst, '\r')
		e.move(i - 1)
		if i == n-1 {
			e.dst = append(e.dst, "\u3042\b "...)
		} else {
			e.dst = append(e.dst, "\u3042\b\b "...)
		}
	}
	from := x - 1
	e.dst = append(e.dst, '\b')
	if from > 0 && isHalf(cells[from]) && cells[from-1].width() == 2 {
		from--
		e.dst = append(e.dst, '\b')
	}
	if cells[from] == 0 {
		e.pen(0)
		e.erase(1)
		e.move(1)
	}
	e.cells(cells, from, x)
	e.move(n - 1 - x)
}

// pen changes the pen to that of c.
func (e *encoder) pen(c cell) {
	if c.style() != e.style {
		e.set(c.style())
	}
}

// orphan draws the right half of a wide character that is not there, at column x.
func (e *encoder) orphan(cells []cell, x int) {
	if x == 0 || x+1 >= e.t.cols || cells[x-1].hasContent() || isHalf(cells[x-1]) {
		e.erase(1)
		e.move(1)
		return
	}
	// A wide character before it, an insertion within, and back.
	e.dst = append(e.dst, "\b\u3042\b\x1b[@\b\x1b[P"...)
	style := e.style
	e.set(cells[x-1].style())
	e.erase(1)
	e.move(2)
	e.set(style)
}

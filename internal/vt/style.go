package vt

import "strconv"

// A colour is 26 bits: how it is named, and its number.
const (
	colorMask    = 0x3ffffff
	colorMode    = 0x3000000
	color16      = 0x1000000 // one of the 16, by number
	color256     = 0x2000000 // one of the 256, by number
	colorRGB     = 0x3000000 // red, green, blue
	colorRGBMask = 0xffffff
)

// Flags above the foreground's colour.
const (
	fgInverse   = 0x04000000
	fgBold      = 0x08000000
	fgUnderline = 0x10000000
	fgBlink     = 0x20000000
	fgInvisible = 0x40000000
	fgStrike    = 0x80000000
)

// Flags above the background's colour.
const (
	bgItalic    = 0x04000000
	bgDim       = 0x08000000
	bgExtended  = 0x10000000 // underline kind, underline colour or link hold
	bgProtected = 0x20000000
	bgOverline  = 0x40000000
)

const underlineShift = 26 // of the kind, above the underline's colour

// style is what a cell looks like, in the layout of xterm.js's cells.
type style struct {
	fg, bg uint32
	under  uint32 // underline kind << underlineShift | colour
	link   linkID
}

type (
	styleID uint32
	linkID  uint32
)

// defaultStyle is the index of the style of zero bits.
const defaultStyle styleID = 0

// link is an OSC 8 hyperlink. The id is what the program gave it; serial tells
// links without one apart.
type link struct {
	id, uri string
	serial  uint32
}

// styles interns styles, clusters and links for one terminal. What is no longer
// shown is swept when there is twice as much as after the last sweep, so that
// their number is bounded by that of the cells.
type styles struct {
	list  []style
	sgr   []string // the sequence that sets list's style from whatever was before
	ids   map[style]styleID
	cache [64]struct {
		s  style
		id styleID
		ok bool
	}

	clusters   []string
	clusterIDs map[string]uint32

	links     []link // [0] is none
	linkIDs   map[link]linkID
	linkBytes int
	serial    uint32 // of the last link without an id

	sweepStyles, sweepClusters, sweepLinks int // sizes at which to sweep

	full bool // a sweep is due
}

const sweepMin = 1024

func newStyles() *styles {
	t := &styles{}
	t.reset()
	t.sweepStyles, t.sweepClusters, t.sweepLinks = sweepMin, sweepMin, sweepMin
	return t
}

func (t *styles) reset() {
	t.list = append(t.list[:0:0], style{})
	t.sgr = append(t.sgr[:0:0], "\x1b[m")
	t.ids = map[style]styleID{{}: defaultStyle}
	clear(t.cache[:])
	t.clusters, t.clusterIDs = nil, map[string]uint32{}
	t.links, t.linkIDs = make([]link, 1), map[link]linkID{}
	t.linkBytes = 0
	t.full = false
}

// id interns a style.
func (t *styles) id(s style) styleID {
	if s == (style{}) {
		return defaultStyle
	}
	h := s.fg ^ s.bg*5 ^ s.under*7 ^ uint32(s.link)
	h ^= h>>24 ^ h>>12
	slot := &t.cache[h&63]
	if slot.ok && slot.s == s {
		return slot.id
	}
	id, ok := t.ids[s]
	if !ok {
		id = styleID(len(t.list))
		t.list = append(t.list, s)
		t.sgr = append(t.sgr, string(appendSGR(nil, s)))
		t.ids[s] = id
		t.grown()
	}
	slot.s, slot.id, slot.ok = s, id, true
	return id
}

// cluster interns a text of more than one rune.
func (t *styles) cluster(s []byte) uint32 {
	if i, ok := t.clusterIDs[string(s)]; ok {
		return uint32(clusterBit) | i
	}
	i := uint32(len(t.clusters))
	str := string(s)
	t.clusters = append(t.clusters, str)
	t.clusterIDs[str] = i
	t.grown()
	return uint32(clusterBit) | i
}

// linkOf interns a link; an empty id makes a new one each time. It returns 0,
// no link, when the limit is reached.
func (t *styles) linkOf(id, uri string) linkID {
	l := link{id: id, uri: uri}
	if id == "" {
		t.serial++
		l.serial = t.serial
	}
	if n, ok := t.linkIDs[l]; ok {
		return n
	}
	if len(uri) > MaxURI || len(id) > MaxURI || t.linkBytes+len(id)+len(uri) > maxLinkBytes {
		return 0
	}
	n := linkID(len(t.links))
	t.links = append(t.links, l)
	t.linkIDs[l] = n
	t.linkBytes += len(id) + len(uri)
	t.grown()
	return n
}

// grown notes whether a sweep is due.
func (t *styles) grown() {
	t.full = len(t.list) >= t.sweepStyles || len(t.clusters) >= t.sweepClusters ||
		len(t.links) >= t.sweepLinks || t.linkBytes > maxLinkBytes/2 && len(t.links) > t.sweepLinks/2
}

// appendSGR appends the sequence that sets s, apart from its link, whatever was
// set before.
func appendSGR(dst []byte, s style) []byte {
	dst = append(dst, "\x1b["...)
	n := len(dst)
	put := func(code string) {
		dst = append(dst, ';')
		dst = append(dst, code...)
	}
	flag := func(word, bit uint32, code string) {
		if word&bit != 0 {
			put(code)
		}
	}
	flag(s.fg, fgBold, "1")
	flag(s.bg, bgDim, "2")
	flag(s.bg, bgItalic, "3")
	switch kind := s.under >> underlineShift & 7; {
	case s.fg&fgUnderline != 0 && kind > 0:
		put("4:" + string(rune('0'+kind)))
	case s.fg&fgUnderline != 0:
		put("4")
	}
	flag(s.fg, fgBlink, "5")
	flag(s.fg, fgInverse, "7")
	flag(s.fg, fgInvisible, "8")
	flag(s.fg, fgStrike, "9")
	flag(s.bg, bgOverline, "53")
	dst = appendColor(dst, s.fg, 30)
	dst = appendColor(dst, s.bg, 40)
	switch u := s.under & colorMask; u & colorMode {
	case color16, color256:
		put("58:5:" + strconv.Itoa(int(u&0xff)))
	case colorRGB:
		put("58:2::" + strconv.Itoa(int(u>>16&0xff)) + ":" + strconv.Itoa(int(u>>8&0xff)) + ":" + strconv.Itoa(int(u&0xff)))
	}
	if len(dst) > n {
		// "0" first: whatever was set before ends.
		dst = append(dst, 0)
		copy(dst[n+1:], dst[n:])
		dst[n] = '0'
	}
	dst = append(dst, 'm')
	if s.bg&bgProtected != 0 {
		dst = append(dst, "\x1b[1\"q"...)
	}
	return dst
}

// appendColor appends ;SGR for a colour, if there is one; base is 30 or 40.
func appendColor(dst []byte, c uint32, base int) []byte {
	num := func(n int) {
		dst = append(dst, ';')
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	switch c & colorMode {
	case color16:
		if n := int(c & 0xff); n < 8 {
			num(base + n)
		} else {
			num(base + 60 + n - 8)
		}
	case color256:
		num(base + 8)
		num(5)
		num(int(c & 0xff))
	case colorRGB:
		num(base + 8)
		num(2)
		num(int(c >> 16 & 0xff))
		num(int(c >> 8 & 0xff))
		num(int(c & 0xff))
	}
	return dst
}

// appendPlainSGR appends the sequence that sets all of s but underline and link,
// and touches neither.
func appendPlainSGR(dst []byte, s style) []byte {
	dst = append(dst, "\x1b[22"...)
	flag := func(set bool, on, off string) {
		if !set {
			on = off
		}
		dst = append(dst, on...)
	}
	flag(s.fg&fgBold != 0, ";1", "")
	flag(s.bg&bgDim != 0, ";2", "")
	flag(s.bg&bgItalic != 0, ";3", ";23")
	flag(s.fg&fgBlink != 0, ";5", ";25")
	flag(s.fg&fgInverse != 0, ";7", ";27")
	flag(s.fg&fgInvisible != 0, ";8", ";28")
	flag(s.fg&fgStrike != 0, ";9", ";29")
	flag(s.bg&bgOverline != 0, ";53", ";55")
	dst = append(dst, ";39;49"...)
	dst = appendColor(dst, s.fg, 30)
	dst = appendColor(dst, s.bg, 40)
	dst = append(dst, 'm')
	flag(s.bg&bgProtected != 0, "\x1b[1\"q", "\x1b[0\"q")
	return dst
}

package vt

import (
	"strconv"
)

// AppendSnapshot appends bytes that bring any terminal of this size, whatever it
// showed, to what this one shows and will do with the bytes to come: scrollback
// and screens, cursors, modes, and a sequence that is still open. They ask the
// terminal nothing.
func (t *Terminal) AppendSnapshot(dst []byte) []byte {
	e := &encoder{t: t, dst: dst}
	n, a := t.normal, t.alt
	// What RIS leaves as it was, because xterm.js takes it for an option.
	e.text("\x1bc\x1b[20l\x1b[?12l\x1b[?25h")
	e.titles()
	e.palette()
	e.savedCursor(n)
	e.flow(n)
	e.tabs(n)
	e.kitty(&t.kitty[0])
	if t.Alt() {
		e.region(n)
		e.hiddenCursor(n)
	}
	if t.Alt() || a.saved != (savedCursor{}) || len(t.kitty[1].saved) > 0 || t.kitty[1].flags != 0 {
		e.text("\x1b[?47h")
		e.savedCursor(a)
		e.kitty(&t.kitty[1])
		if t.Alt() {
			e.text("\x1b[H")
			e.flow(a)
			e.tabs(a)
		} else {
			e.text("\x1b[?47l")
		}
	}
	e.region(t.s)
	saved := &t.s.saved
	split := t.penIsSplit() && (t.pen.fg^saved.fg)&fgUnderline == 0 && saved.bg&bgExtended == 0
	if t.charset == saved.charset && (split || t.charset != t.charsets[t.gl]) {
		// Only DECRC takes a set into use that is nowhere designated, or
		// leaves a pen of which one half is not in force.
		e.charsets()
		if split {
			e.penBesides()
			e.text("\x1b8")
		} else {
			e.text("\x1b8\x1b[m")
		}
		e.cursor()
	} else {
		split = false
		e.cursor()
		e.charsets()
	}
	e.modes()
	e.lastPen(split)
	e.dst = t.p.appendOpen(e.dst)
	return e.dst
}

func (e *encoder) text(s string) { e.dst = append(e.dst, s...) }

func (e *encoder) num(n int) { e.dst = strconv.AppendInt(e.dst, int64(n), 10) }

func (e *encoder) osc(n int, s string) {
	e.text("\x1b]")
	e.num(n)
	e.text(";")
	e.text(s)
	e.text("\x1b\\")
}

func (e *encoder) titles() {
	t := e.t
	e.osc(1, t.icon)
	e.osc(2, t.title)
	if t.cwd != "" {
		e.osc(7, t.cwd)
	}
}

func (e *encoder) palette() {
	e.text("\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\")
	for n, c := range e.t.palette.specials {
		if c.set {
			e.osc(10+n, rgbSpec(c.rgb))
		}
	}
	if len(e.t.palette.colors) == 0 {
		return
	}
	for n := range 256 {
		if c, ok := e.t.palette.colors[n]; ok {
			e.osc(4, strconv.Itoa(n)+";"+rgbSpec(c))
		}
	}
}

// goTo puts the cursor to a place of the screen, zero-based, while the region is
// the whole screen.
func (e *encoder) goTo(x, y int) {
	e.text("\x1b[")
	e.num(y + 1)
	e.text(";")
	e.num(x + 1)
	e.text("H")
}

// savedCursor saves the cursor of an empty screen where s has it, and leaves the
// screen empty and the cursor at home.
func (e *encoder) savedCursor(s *screen) {
	c := s.saved
	if c == (savedCursor{}) {
		return
	}
	t := e.t
	y := min(c.y, t.rows-1)
	e.goTo(0, y)
	if s.hist != nil {
		// It counts from the oldest line: it is saved that far down, and
		// the lines that made room are forgotten.
		for n := min(c.y-y, t.opt.ScrollbackLines); n > 0; n-- {
			e.text("\n")
		}
	}
	e.goTo(min(c.x, t.cols-1), y)
	pen := style{fg: c.fg, bg: c.bg}
	e.dst = appendSGR(e.dst, pen)
	if c.bg&bgExtended != 0 && c.fg&fgUnderline == 0 {
		e.osc(8, ";x:")
	}
	if c.x >= t.cols {
		e.text(" ") // past the last column
		e.beyond(c.x - t.cols)
	}
	if c.charset != nil {
		e.dst = append(e.dst, 0x1b, '(', c.charset.final)
	}
	e.text("\x1b7")
	if c.charset != nil {
		e.text("\x1b(B")
	}
	if c.bg&bgExtended != 0 && c.fg&fgUnderline == 0 {
		e.osc(8, ";")
	}
	e.text("\x1b[m")
	if c.x >= t.cols {
		e.text("\x1b[2K")
	}
	if c.y > y {
		e.text("\x1b[3J")
	}
	e.text("\x1b[H")
}

// flow draws the scrollback and the screen as one text.
func (e *encoder) flow(s *screen) {
	t := e.t
	rows := s.rows
	n := 0
	if s.hist != nil {
		n = s.hist.len()
	}
	wrapped := rows[0].wrapped
	if n > 0 {
		wrapped = s.hist.flags(0)&lineWrapped != 0
	}
	if wrapped {
		// The first line continues one that is gone.
		e.forceWrap(nil)
		for range t.rows - 1 {
			e.text("\n")
		}
		e.text("\x1b[3J\x1b[H\x1b[X")
	}
	if n > 0 {
		if first := s.hist.line(0); !wrapped {
			e.dst = append(e.dst, first[len("\r\n"):]...)
		} else {
			e.row(t.decode(0))
		}
		for _, b := range s.hist.blocks {
			from := uint64(0)
			if start := s.hist.end(0); start > b.start {
				from = min(start-b.start, uint64(len(b.b)))
			}
			e.dst = append(e.dst, b.b[from:]...)
		}
	} else {
		// Empty rows at the end need not be drawn.
		for len(rows) > 1 && rows[len(rows)-1].blank() {
			rows = rows[:len(rows)-1]
		}
	}
	for i, r := range rows {
		switch {
		case i > 0:
			prev := rows[i-1]
			end := endsElse
			if r.wrapped {
				end = endingOf(prev, t.cols)
			}
			e.joiner(end, prev.cells[t.cols-1], func() *row { return prev }, r)
		case n > 0:
			e.joinHistory(s.hist, r)
		}
		e.row(r)
	}
}

// blank says that drawing r changes nothing on an empty screen.
func (r *row) blank() bool {
	if r.wrapped || len(r.marks) > 0 {
		return false
	}
	for _, c := range r.cells {
		if c != 0 {
			return false
		}
	}
	return true
}

func (e *encoder) tabs(s *screen) {
	cols := e.t.cols
	for i := range cols {
		if s.tabs[i] != (i%8 == 0) {
			e.text("\x1b[3g")
			for i := range cols {
				if s.tabs[i] {
					e.text("\r")
					e.move(i)
					e.text("\x1bH")
				}
			}
			return
		}
	}
}

func (e *encoder) kitty(k *kittyStack) {
	flags := append(append([]uint8(nil), k.saved...), uint8(k.flags))
	for i, f := range flags {
		switch {
		case i > 0:
			e.text("\x1b[>")
		case f == 0:
			continue
		default:
			e.text("\x1b[=")
		}
		e.num(int(f))
		e.text("u")
	}
}

func (e *encoder) region(s *screen) {
	if s.top == 0 && s.bottom == e.t.rows-1 {
		return
	}
	e.text("\x1b[")
	e.num(s.top + 1)
	e.text(";")
	e.num(s.bottom + 1)
	e.text("r")
}

// hiddenCursor puts the normal screen's cursor where it was when the alternate
// screen came: a change of size keeps its line on the screen.
func (e *encoder) hiddenCursor(s *screen) {
	if s.x < e.t.cols {
		e.goTo(s.x, s.y)
		return
	}
	e.text("\x1b[?47h")
	e.goTo(e.t.cols-1, s.y)
	e.text(" ")
	e.beyond(s.x - e.t.cols)
	e.text("\x1b[?47l")
}

// cursor sets origin mode and puts the cursor where it is, or, if the last
// character is printed once more in the end, before that.
func (e *encoder) cursor() {
	t := e.t
	s := t.s
	x := s.x
	if e.reprints() && !e.printsOverHalf() {
		x -= int(t.join)
	}
	outside := t.modes.origin && (s.y < s.top || s.y > s.bottom)
	if x < t.cols && !outside {
		y := s.y
		if t.modes.origin {
			e.text("\x1b[?6h")
			y -= s.top
		}
		e.goTo(x, y)
		return
	}
	if s == t.normal {
		// The cursor goes along when the screens change, even to places
		// that it can't be sent to.
		e.text("\x1b[?47h")
		if t.modes.origin {
			e.text("\x1b[?6h")
		}
		e.goTo(min(x, t.cols-1), s.y)
		if x >= t.cols {
			e.text(" ")
			e.beyond(x - t.cols)
		}
		e.text("\x1b[?47l")
		return
	}
	y := s.y
	if t.modes.origin {
		e.text("\x1b[?6h")
		y = clamp(y-s.top, 0, s.bottom-s.top)
	}
	from := t.cols - 1
	cells := s.rows[s.y].cells
	if cells[from-1].width() == 2 {
		from--
	}
	e.goTo(from, y)
	switch {
	case x < t.cols:
	case cells[t.cols-1].hasContent() || isHalf(cells[t.cols-1]):
		// Its last character once more puts it past the last column.
		e.cells(cells, from, t.cols)
		e.end()
		e.standAlone()
		e.beyond(x - t.cols)
	case !s.rows[s.y].wrapped && e.evenlyBlank(cells):
		// Erasing the row leaves the cursor there.
		e.pen(cells[0])
		e.text(" \x1b[2K")
		e.end()
		e.beyond(x - t.cols)
	}
}

// evenlyBlank says that one erasing makes these cells.
func (e *encoder) evenlyBlank(cells []cell) bool {
	c := cells[0]
	for _, d := range cells[:e.t.cols] {
		if d != c {
			return false
		}
	}
	return c&(widthMask|contentMask) == 0 && !e.t.styles.isHalved(c)
}

// beyond goes further still, from past the last column: each combining character
// without a base takes the cursor there by one, and is seen nowhere.
func (e *encoder) beyond(n int) {
	for ; n > 0; n-- {
		e.standAlone()
		e.text("\u0301")
	}
}

// printsOverHalf says that the last character was printed over the right half of
// a wide one, in the last column of a screen that does not wrap.
func (e *encoder) printsOverHalf() bool {
	t := e.t
	s := t.s
	return s == t.normal && !t.modes.wrap && s.x == t.cols && t.join == 1 && s.rows[s.y].width(t.cols-2) == 2
}

// reprints says that the last character has to be printed once more, because a
// combining one that comes next joins it.
func (e *encoder) reprints() bool {
	t := e.t
	x := t.s.x - int(t.join)
	if t.join == 0 || x < 0 {
		return false
	}
	c := t.s.rows[t.s.y].cells[x]
	return c.hasContent() && c.width() == int(t.join)
}

func (e *encoder) charsets() {
	t := e.t
	for g, c := range t.charsets {
		if c != nil {
			e.dst = append(e.dst, 0x1b, "()*+"[g], c.final)
		}
	}
	e.text([]string{"", "\x0e", "\x1bn", "\x1bo"}[t.gl])
}

func (e *encoder) modes() {
	m := &e.t.modes
	set := func(on bool, s string) {
		if on {
			e.text(s)
		}
	}
	set(m.insert, "\x1b[4h")
	set(m.newline, "\x1b[20h")
	set(m.appCursor, "\x1b[?1h")
	set(m.appKeypad, "\x1b=")
	set(!m.wrap, "\x1b[?7l")
	set(m.reverseWrap, "\x1b[?45h")
	set(m.focus, "\x1b[?1004h")
	set(m.bracketed, "\x1b[?2004h")
	set(m.blinkOption, "\x1b[?12h")
	set(m.hidden, "\x1b[?25l")
	set(m.mouse > 0, [...]string{"", "\x1b[?9h", "\x1b[?1000h", "\x1b[?1002h", "\x1b[?1003h"}[m.mouse])
	set(m.encoding > 0, [...]string{"", "\x1b[?1006h", "\x1b[?1016h"}[m.encoding])
	if m.blink >= 0 {
		n := 2 * int(m.style)
		if m.style == 0 {
			n = 8 // no shape, blinking alone
		}
		e.text("\x1b[")
		e.num(n - int(m.blink))
		e.text(" q")
	}
	set(m.synced, "\x1b[?2026h")
}

// lastPen sets the pen, of which DECRC set a part if it is split, and prints the last character once more where that is
// needed.
func (e *encoder) lastPen(split bool) {
	t := e.t
	again := e.reprints()
	if again && t.modes.insert {
		e.sequence(int(t.join), 'P') // it comes back at once
	}
	switch {
	case split:
		if saved := t.s.saved; t.pen.fg != saved.fg || t.pen.bg != saved.bg {
			e.dst = appendPlainSGR(e.dst, t.pen)
		}
	default:
		if t.pen.link != 0 && t.pen.bg&bgExtended != 0 {
			e.dst = appendLink(e.dst, t.styles.links[t.pen.link])
		}
		pen := t.pen
		if pen.fg&fgUnderline == 0 {
			pen.under &= colorMask
		}
		if pen != (style{}) {
			e.dst = appendSGR(e.dst, pen)
		}
	}
	if again {
		e.glyph(t.s.rows[t.s.y].cells[t.s.x-int(t.join)])
	}
}

// penIsSplit says that the pen has a link or a kind of underline that is not in
// force: DECRC took it out, and the next SGR about it brings it back.
func (t *Terminal) penIsSplit() bool {
	p := t.pen
	return p.bg&bgExtended == 0 && (p.link != 0 || p.under>>underlineShift != underlineNone)
}

// penBesides sets what of the pen DECRC does not.
func (e *encoder) penBesides() {
	p := e.t.pen
	if p.link != 0 {
		e.dst = appendLink(e.dst, e.t.styles.links[p.link])
	}
	rest := style{under: p.under}
	if rest.under>>underlineShift != underlineNone {
		rest.fg = fgUnderline
	}
	e.dst = appendSGR(e.dst, rest)
}

// Restore makes a terminal of a snapshot. What the snapshot tells on the way is
// no event, and nothing is answered.
func Restore(o Options, snapshot []byte) *Terminal {
	t := New(o)
	t.Write(snapshot)
	t.out = outbox{}
	t.off = 0
	return t
}

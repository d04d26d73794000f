package vt

// execute acts on a control character, C0 or C1.
func (t *Terminal) execute(c byte) {
	t.join = 0
	s := t.s
	switch c {
	case 0x07:
		t.out.bells++
		t.event(Event{Kind: EventBell})
	case 0x08:
		t.backspace()
	case 0x09:
		if s.x < t.cols {
			s.x = s.nextTab(s.x, t.cols)
		}
	case 0x0a, 0x0b, 0x0c:
		t.lineFeed()
	case 0x0d:
		s.x = 0
	case 0x0e:
		t.setGL(1)
	case 0x0f:
		t.setGL(0)
	case 0x84:
		t.index()
	case 0x85:
		s.x = 0
		t.index()
	case 0x88:
		t.setTab()
	}
}

func (t *Terminal) setTab() {
	s := t.s
	for len(s.tabs) <= s.x {
		s.tabs = append(s.tabs, false)
	}
	s.tabs[s.x] = true
}

// restrict puts the cursor onto the screen, or into the scroll region in origin
// mode, and out of the column past the last one.
func (t *Terminal) restrict() { t.restrictTo(t.cols - 1) }

func (t *Terminal) restrictTo(maxX int) {
	s := t.s
	s.x = clamp(s.x, 0, maxX)
	if t.modes.origin {
		s.y = clamp(s.y, s.top, s.bottom)
	} else {
		s.y = clamp(s.y, 0, t.rows-1)
	}
}

// setCursor goes to a place, counted from the scroll region in origin mode.
func (t *Terminal) setCursor(x, y int) {
	if t.modes.origin {
		y += t.s.top
	}
	t.s.x, t.s.y = x, y
	t.restrict()
}

// moveCursor goes from where the cursor is. In origin mode xterm.js counts the
// new row from the scroll region as well, and so does this.
func (t *Terminal) moveCursor(dx, dy int) {
	t.restrict()
	t.setCursor(t.s.x+dx, t.s.y+dy)
}

func (t *Terminal) cursorUp(n int) {
	if d := t.s.y - t.s.top; d >= 0 {
		n = min(n, d)
	}
	t.moveCursor(0, -n)
}

func (t *Terminal) cursorDown(n int) {
	if d := t.s.bottom - t.s.y; d >= 0 {
		n = min(n, d)
	}
	t.moveCursor(0, n)
}

func (t *Terminal) backspace() {
	s := t.s
	if !t.modes.reverseWrap {
		t.restrict()
		if s.x > 0 {
			s.x--
		}
		return
	}
	t.restrictTo(t.cols)
	if s.x > 0 {
		s.x--
	} else if s.y > s.top && s.y <= s.bottom && s.rows[s.y].wrapped {
		t.line().wrapped = false
		s.y--
		s.x = t.cols - 1
		// An empty last column is what a wide character left that wrapped.
		if r := s.rows[s.y]; r.width(s.x) != 0 && !r.cells[s.x].hasContent() {
			s.x--
		}
	}
	t.restrict()
}

func (t *Terminal) lineFeed() {
	s := t.s
	if t.modes.newline {
		s.x = 0
	}
	s.y++
	switch {
	case s.y == s.bottom+1:
		s.y--
		t.scroll(t.blank(), false)
	case s.y >= t.rows:
		s.y = t.rows - 1
	default:
		if r := s.rows[s.y]; r.wrapped {
			r.wrapped = false
			r.rev = t.rev
		}
	}
	if s.x >= t.cols {
		s.x--
	}
}

func (t *Terminal) index() {
	s := t.s
	t.restrict()
	s.y++
	if s.y == s.bottom+1 {
		s.y--
		t.scroll(t.blank(), false)
	} else if s.y >= t.rows {
		s.y = t.rows - 1
	}
	t.restrict()
}

func (t *Terminal) reverseIndex() {
	s := t.s
	t.restrict()
	if s.y == s.top {
		t.rotate(s.y, s.bottom, -1, t.blank())
		return
	}
	s.y--
	t.restrict()
}

// scroll moves the scroll region up by one. What leaves the top of the screen
// goes into the scrollback, if the screen has one.
func (t *Terminal) scroll(blank cell, wrapped bool) {
	s := t.s
	t.touchAll()
	if s.top == 0 && s.hist != nil {
		t.retire(s.rows[0])
	}
	r := s.rows[s.top]
	copy(s.rows[s.top:s.bottom], s.rows[s.top+1:s.bottom+1])
	if len(r.cells) != t.cols {
		r = newRow(t.cols)
	}
	r.fill(blank, nil)
	r.wrapped, r.marks, r.rev = wrapped, nil, t.rev
	s.rows[s.bottom] = r
}

// rotate moves the rows from top to bottom by one, up or (-1) down, and blanks
// the one that comes free.
func (t *Terminal) rotate(top, bottom, by int, blank cell) {
	s := t.s
	t.touchAll()
	var r *row
	if by > 0 {
		r = s.rows[top]
		copy(s.rows[top:bottom], s.rows[top+1:bottom+1])
		s.rows[bottom] = r
	} else {
		r = s.rows[bottom]
		copy(s.rows[top+1:bottom+1], s.rows[top:bottom])
		s.rows[top] = r
	}
	if len(r.cells) != t.cols {
		r.cells = make([]cell, t.cols)
	}
	r.fill(blank, nil)
	r.wrapped, r.marks, r.rev = false, nil, t.rev
}

func (t *Terminal) setGL(g int) {
	t.gl = g
	t.charset = t.charsets[g]
}

func (t *Terminal) designate(g int, c *charset) {
	t.charsets[g] = c
	if g == t.gl {
		t.charset = c
	}
}

func (t *Terminal) saveCursor() {
	s := t.s
	s.saved = savedCursor{x: s.x, y: s.base() + s.y, fg: t.pen.fg, bg: t.pen.bg, charset: t.charset}
}

func (t *Terminal) restoreCursor() {
	s := t.s
	s.x = s.saved.x
	s.y = max(s.saved.y-s.base(), 0)
	pen := t.pen
	pen.fg, pen.bg = s.saved.fg, s.saved.bg
	t.setPen(pen)
	if s.saved.charset != nil {
		t.charset = s.saved.charset
	} else {
		t.charset = nil
	}
	t.restrict()
}

// showAlt shows the alternate screen, empty.
func (t *Terminal) showAlt() {
	if t.s == t.alt {
		return
	}
	t.alt.allocate(t.cols, t.rows, t.blank())
	t.alt.x, t.alt.y = t.normal.x, t.normal.y
	t.s = t.alt
	t.touchAll()
}

// showNormal shows the normal screen and forgets the alternate one.
func (t *Terminal) showNormal() {
	if t.s == t.normal {
		return
	}
	a := t.alt
	t.normal.x, t.normal.y = a.x, a.y
	a.rows = nil
	a.x, a.y, a.top, a.bottom = 0, 0, 0, t.rows-1
	a.resetTabs(t.cols)
	t.s = t.normal
	t.touchAll()
}

// reset is RIS.
func (t *Terminal) reset() {
	t.p.reset()
	t.join = 0
	t.resetScreens()
	t.charset, t.charsets, t.gl = nil, [4]*charset{}, 0
	t.modes.resetHard()
	t.kitty = [2]kittyStack{}
}

// softReset is DECSTR.
func (t *Terminal) softReset() {
	s := t.s
	s.top, s.bottom = 0, t.rows-1
	t.setPen(style{})
	t.modes.resetSoft()
	t.charset, t.charsets, t.gl = nil, [4]*charset{}, 0
	s.saved = savedCursor{y: s.base()}
	t.kitty = [2]kittyStack{}
}

// align is DECALN: a screen full of E.
func (t *Terminal) align() {
	s := t.s
	// As xterm.js has it: without the link and the kind of underline.
	plain := style{fg: t.pen.fg, bg: t.pen.bg}
	plain.settle()
	e := styled(t.styles.id(plain)) | 'E'
	t.setCursor(0, 0)
	from := s.y
	if s.hist == nil {
		from = 0 // no scrollback: its rows go round
	}
	for y := from; y < t.rows; y++ {
		r := t.rowAt(y)
		r.fill(e, nil)
		r.wrapped = false
	}
	t.setCursor(0, 0)
}

// dispatchEscape acts on an escape sequence.
func (t *Terminal) dispatchEscape(c byte) {
	t.join = 0
	p := &t.p
	if p.ncol == 0 {
		switch c {
		case '7':
			t.saveCursor()
		case '8':
			t.restoreCursor()
		case 'D':
			t.index()
		case 'E':
			t.s.x = 0
			t.index()
		case 'H':
			t.setTab()
		case 'M':
			t.reverseIndex()
		case '=':
			t.modes.appKeypad = true
		case '>':
			t.modes.appKeypad = false
		case 'c':
			t.reset()
		case 'n', '}':
			t.setGL(2)
		case 'o', '|':
			t.setGL(3)
		case '~':
			t.setGL(1)
		}
		return
	}
	if p.ncol != 1 {
		return
	}
	switch p.collect[0] {
	case '#':
		if c == '8' {
			t.align()
		}
	case '%':
		if c == '@' || c == 'G' {
			t.setGL(0)
			t.designate(0, nil)
		}
	case '(', ')', '*', '+', '-', '.':
		set, ok := charsets[c]
		if !ok && c != 'B' {
			return
		}
		g := map[byte]int{'(': 0, ')': 1, '*': 2, '+': 3, '-': 1, '.': 2}[p.collect[0]]
		t.designate(g, set)
	}
}

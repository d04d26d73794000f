package vt

// dispatchCSI acts on a control sequence.
func (t *Terminal) dispatchCSI(c byte) {
	p := &t.p
	p.joinBefore = t.join
	t.join = 0
	switch p.ncol {
	case 0:
		t.csi(c, &p.args)
	case 1:
		switch p.collect[0] {
		case '?':
			t.csiPrivate(c, &p.args)
		case '>':
			switch c {
			case 'c':
				if p.args.at(0) == 0 {
					t.reply("\x1b[>0;276;0c")
				}
			case 'q':
				if p.args.at(0) == 0 {
					t.reply("\x1bP>|" + t.opt.Version + "\x1b\\")
				}
			case 'u':
				t.kittyNow().push(p.args.at(0))
			}
		case '=':
			switch c {
			case 'c':
				if p.args.at(0) == 0 {
					t.reply("\x1bP!|00000000\x1b\\")
				}
			case 'u':
				t.kittyNow().set(p.args.at(0), p.args.at(1))
			}
		case '<':
			if c == 'u' {
				t.kittyNow().pop(max(1, p.args.at(0)))
			}
		case '!':
			if c == 'p' {
				t.softReset()
			}
		case ' ':
			t.csiSpace(c, &p.args)
		case '"':
			if c == 'q' {
				t.protect(p.args.at(0))
			}
		case '$':
			if c == 'p' {
				t.reportMode(p.args.at(0), false)
			}
		case '\'':
			switch c {
			case '}':
				t.columns(func(r *row, blank cell) { r.insert(t.s.x, p.args.count(0, t.cols), blank) })
			case '~':
				t.columns(func(r *row, blank cell) { r.remove(t.s.x, p.args.count(0, t.cols), blank) })
			}
		}
	case 2:
		if p.collect[0] == '?' && p.collect[1] == '$' && c == 'p' {
			t.reportMode(p.args.at(0), true)
		}
	}
}

func (t *Terminal) csi(c byte, a *params) {
	s := t.s
	switch c {
	case '@':
		t.restrict()
		t.line().insert(s.x, a.count(0, MaxCols), t.blank())
	case 'A':
		t.cursorUp(a.count(0, t.rows))
	case 'B':
		t.cursorDown(a.count(0, t.rows))
	case 'C', 'a':
		t.moveCursor(a.count(0, t.cols), 0)
	case 'D':
		t.moveCursor(-a.count(0, t.cols), 0)
	case 'E':
		t.cursorDown(a.count(0, t.rows))
		s.x = 0
	case 'F':
		t.cursorUp(a.count(0, t.rows))
		s.x = 0
	case 'G', '`':
		t.setCursor(a.count(0, t.cols)-1, s.y)
	case 'H', 'f':
		x := 0
		if a.n > 1 {
			x = a.count(1, t.cols) - 1
		}
		t.setCursor(x, a.count(0, t.rows)-1)
	case 'I':
		for n := a.count(0, t.cols); n > 0 && s.x < t.cols; n-- {
			s.x = s.nextTab(s.x, t.cols)
		}
	case 'J':
		t.eraseDisplay(a.at(0), false)
	case 'K':
		t.eraseLine(a.at(0), false)
	case 'L':
		t.insertLines(a.count(0, t.rows))
	case 'M':
		t.deleteLines(a.count(0, t.rows))
	case 'P':
		t.restrict()
		t.line().remove(s.x, a.count(0, MaxCols), t.blank())
	case 'S':
		t.shiftRegion(a.count(0, t.rows), 1, t.blank())
	case 'T':
		t.shiftRegion(a.count(0, t.rows), -1, 0)
	case 'X':
		t.restrict()
		t.line().replace(s.x, s.x+a.count(0, MaxCols), t.blank(), nil)
	case 'Z':
		if s.x < t.cols {
			for n := a.count(0, t.cols); n > 0; n-- {
				s.x = s.prevTab(s.x, t.cols)
			}
		}
	case 'b':
		t.repeatPreceding(a.count(0, maxParam))
	case 'c':
		if a.at(0) == 0 {
			t.reply("\x1b[?1;2c")
		}
	case 'd':
		t.setCursor(s.x, a.count(0, t.rows)-1)
	case 'e':
		t.moveCursor(0, a.count(0, t.rows))
	case 'g':
		switch a.at(0) {
		case 0:
			if s.x < len(s.tabs) {
				s.tabs[s.x] = false
			}
		case 3:
			clear(s.tabs)
		}
	case 'h', 'l':
		for i := range a.n {
			t.setMode(a.at(i), c == 'h')
		}
	case 'm':
		t.sgr(a)
	case 'n':
		t.deviceStatus(a.at(0), false)
	case 'r':
		t.setRegion(a)
	case 's':
		t.saveCursor()
	case 't':
		t.windowOp(a)
	case 'u':
		t.restoreCursor()
	}
}

func (t *Terminal) csiPrivate(c byte, a *params) {
	switch c {
	case 'J':
		t.eraseDisplay(a.at(0), true)
	case 'K':
		t.eraseLine(a.at(0), true)
	case 'h', 'l':
		for i := range a.n {
			t.setPrivateMode(a.at(i), c == 'h')
		}
	case 'n':
		t.deviceStatus(a.at(0), true)
	case 'u':
		t.reply("\x1b[?" + itoa(t.kittyNow().flags) + "u")
	}
}

// csiSpace acts on a control sequence with a space before its final byte.
func (t *Terminal) csiSpace(c byte, a *params) {
	n := a.count(0, t.cols)
	switch c {
	case '@':
		t.columns(func(r *row, blank cell) { r.remove(0, n, blank) })
	case 'A':
		t.columns(func(r *row, blank cell) { r.insert(0, n, blank) })
	case 'q':
		t.cursorStyle(a.at(0), a.n)
	}
}

// columns changes all rows of the scroll region.
func (t *Terminal) columns(f func(*row, cell)) {
	s := t.s
	if s.y > s.bottom || s.y < s.top {
		return
	}
	blank := t.blank()
	for y := s.top; y <= s.bottom; y++ {
		r := t.rowAt(y)
		f(r, blank)
		r.wrapped = false
	}
}

// protect is DECSCA.
func (t *Terminal) protect(n int) {
	switch n {
	case 1:
		t.pen.bg |= bgProtected
	case 0, 2:
		t.pen.bg &^= bgProtected
	default:
		return
	}
	t.penStale = true
}

func (t *Terminal) setRegion(a *params) {
	s := t.s
	top := a.count(0, maxParam)
	bottom := a.at(1)
	if a.n < 2 || bottom == 0 || bottom > t.rows {
		bottom = t.rows
	}
	if bottom > top {
		s.top, s.bottom = top-1, bottom-1
		t.setCursor(0, 0)
	}
}

// isProtected tells DECSED and DECSEL which cells to leave.
func (t *Terminal) isProtected(c cell) bool {
	return t.styles.list[c.style()].bg&bgProtected != 0
}

func (t *Terminal) keep(selective bool) func(cell) bool {
	if !selective {
		return nil
	}
	return t.isProtected
}

func (t *Terminal) eraseInLine(y, from, to int, unwrap, selective bool) {
	r := t.rowAt(y)
	r.replace(from, to, t.blank(), t.keep(selective))
	if unwrap {
		r.wrapped = false
	}
}

func (t *Terminal) eraseRow(y int, selective bool) {
	r := t.rowAt(y)
	r.fill(t.blank(), t.keep(selective))
	r.wrapped = false
	if !selective {
		r.marks = nil
	}
}

func (t *Terminal) eraseDisplay(n int, selective bool) {
	s := t.s
	t.restrictTo(t.cols)
	switch n {
	case 0:
		t.eraseInLine(s.y, s.x, t.cols, s.x == 0, selective)
		for y := s.y + 1; y < t.rows; y++ {
			t.eraseRow(y, selective)
		}
	case 1:
		t.eraseInLine(s.y, 0, s.x+1, true, selective)
		if s.x+1 >= t.cols && s.y+1 < t.rows {
			t.rowAt(s.y + 1).wrapped = false
		}
		for y := range s.y {
			t.eraseRow(y, selective)
		}
	case 2:
		for y := range t.rows {
			t.eraseRow(y, selective)
		}
	case 3:
		if s.hist != nil {
			s.hist.clear()
			t.touchAll()
		}
	}
}

func (t *Terminal) eraseLine(n int, selective bool) {
	s := t.s
	t.restrictTo(t.cols)
	switch n {
	case 0:
		t.eraseInLine(s.y, s.x, t.cols, s.x == 0, selective)
	case 1:
		t.eraseInLine(s.y, 0, s.x+1, false, selective)
	case 2:
		t.eraseInLine(s.y, 0, t.cols, true, selective)
	}
}

func (t *Terminal) insertLines(n int) {
	s := t.s
	t.restrict()
	if s.y > s.bottom || s.y < s.top {
		return
	}
	for range min(n, s.bottom-s.y+1) {
		t.rotate(s.y, s.bottom, -1, t.blank())
	}
	s.x = 0
}

func (t *Terminal) deleteLines(n int) {
	s := t.s
	t.restrict()
	if s.y > s.bottom || s.y < s.top {
		return
	}
	for range min(n, s.bottom-s.y+1) {
		t.rotate(s.y, s.bottom, 1, t.blank())
	}
	s.x = 0
}

// shiftRegion moves the rows of the scroll region, up or (-1) down.
func (t *Terminal) shiftRegion(n, by int, blank cell) {
	s := t.s
	for range min(n, s.bottom-s.top+1) {
		t.rotate(s.top, s.bottom, by, blank)
	}
}

// repeatPreceding is REP; what it repeats is known only before this sequence.
func (t *Terminal) repeatPreceding(n int) {
	t.join = t.p.joinBefore
	t.repeat(n)
	t.join = 0
}

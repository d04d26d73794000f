package vt

// Resize changes the size, clamped to the limits. Lines of the normal screen and
// its scrollback flow into the new width; the alternate screen is cut or padded.
func (t *Terminal) Resize(cols, rows int) {
	cols, rows = clamp(cols, MinCols, MaxCols), clamp(rows, 1, MaxRows)
	if cols == t.cols && rows == t.rows {
		return
	}
	t.rev++
	t.touchAll()
	t.join, t.p.joinBefore = 0, 0 // what stands before the cursor may be another character
	t.resizeNormal(cols, rows)
	t.resizeAlt(cols, rows)
	t.cols, t.rows = cols, rows
	for _, s := range []*screen{t.normal, t.alt} {
		s.saved.y = min(s.saved.y, s.base()+rows-1) // not below the screen
	}
	t.normal.widenTabs(cols)
	t.alt.widenTabs(cols)
	t.scratch = nil
	t.tidy()
}

// flow is a screen with its scrollback as one list of lines, while it is
// resized.
type flow struct {
	lines      []*row
	max        int // lines that fit
	base       int // lines above the screen
	x, y       int
	savedY     int
	cols, rows int // the new size
	oldCols    int
}

func (t *Terminal) resizeNormal(cols, rows int) {
	s := t.normal
	if cols == t.cols {
		t.resizeRows(rows)
		return
	}
	f := &flow{max: rows + t.opt.ScrollbackLines, base: s.base(), x: s.x, y: s.y, savedY: s.saved.y, cols: cols, rows: rows, oldCols: t.cols}
	f.lines = make([]*row, 0, f.base+len(s.rows))
	for i := range f.base {
		f.lines = append(f.lines, t.decode(i))
	}
	f.lines = append(f.lines, s.rows...)
	if t.cols < cols {
		for _, r := range f.lines {
			r.resize(cols)
		}
	}
	f.setRows(t.rows, t.rows+t.opt.ScrollbackLines)
	s.saved.x = min(s.saved.x, cols-1)
	if cols > t.cols {
		f.widen()
	} else {
		f.narrow()
		for _, r := range f.lines {
			r.resize(cols)
		}
	}
	f.y = clamp(f.y, 0, max(0, len(f.lines)-f.base-1))
	for len(f.lines) < f.base+rows {
		f.lines = append(f.lines, newRow(cols))
	}
	s.x, s.y, s.saved.y = f.x, min(f.y, rows-1), f.savedY
	s.top, s.bottom = 0, rows-1

	// The scrollback is drawn anew, at the new width.
	s.hist.clear()
	oldCols, oldRows := t.cols, t.rows
	t.cols, t.rows, t.scratch = cols, rows, nil
	s.rows = append([]*row(nil), f.lines[f.base:f.base+rows]...)
	for _, r := range f.lines[:f.base] {
		t.retire(r)
	}
	s.saved.y = max(f.savedY-(f.base-s.hist.len()), 0)
	t.cols, t.rows = oldCols, oldRows
}

// resizeRows changes the height alone: lines go to the scrollback and come back
// from it.
func (t *Terminal) resizeRows(rows int) {
	s := t.normal
	x, y := s.x, s.y
	grow := 0
	for n := t.rows; n < rows; n++ {
		if s.base() > 0 && len(s.rows) <= y+grow+1 {
			// Nothing stands below the cursor: a line comes down.
			r := t.decode(s.base() - 1)
			s.hist.dropLast()
			s.rows = append([]*row{r}, s.rows...)
			grow++
		} else {
			s.rows = append(s.rows, newRow(t.cols))
		}
	}
	for n := t.rows; n > rows; n-- {
		if len(s.rows) > y+1 {
			s.rows = s.rows[:len(s.rows)-1]
		} else {
			before := s.base()
			t.retire(s.rows[0])
			s.rows = s.rows[1:]
			if s.base() == before {
				// The oldest line went: all others are one nearer to it.
				s.saved.y = max(s.saved.y-1, 0)
			}
		}
	}
	s.rows = append([]*row(nil), s.rows...)
	s.x = min(x, t.cols-1)
	s.y = min(y, rows-1) + grow
	s.y = clamp(s.y, 0, rows-1)
	s.saved.x = min(s.saved.x, t.cols-1)
	s.top, s.bottom = 0, rows-1
}

func (t *Terminal) resizeAlt(cols, rows int) {
	s := t.alt
	if len(s.rows) > 0 {
		for _, r := range s.rows {
			r.resize(cols)
		}
		trimmed := 0
		for len(s.rows) > rows {
			if len(s.rows) > s.y+1+trimmed {
				s.rows = s.rows[:len(s.rows)-1]
			} else {
				s.rows = s.rows[1:]
				trimmed++
			}
		}
		s.saved.y = max(s.saved.y-trimmed, 0)
		s.rows = append([]*row(nil), s.rows...)
		for len(s.rows) < rows {
			s.rows = append(s.rows, newRow(cols))
		}
		s.x, s.y = min(s.x, cols-1), min(s.y, rows-1)
		s.saved.x = min(s.saved.x, cols-1)
		s.top = 0
	}
	s.bottom = rows - 1
}

// setRows changes the number of rows, before the lines flow into a new width.
func (f *flow) setRows(old, oldMax int) {
	grow := 0
	for n := old; n < f.rows; n++ {
		if len(f.lines) < f.rows+f.base {
			if f.base > 0 && len(f.lines) <= f.base+f.y+grow+1 {
				f.base--
				grow++
			} else {
				f.lines = append(f.lines, newRow(f.cols))
			}
		}
	}
	for n := old; n > f.rows; n-- {
		if len(f.lines) > f.rows+f.base {
			if len(f.lines) > f.base+f.y+1 {
				f.lines = f.lines[:len(f.lines)-1]
			} else {
				f.base++
			}
		}
	}
	if trim := len(f.lines) - f.max; f.max < oldMax && trim > 0 {
		f.lines = f.lines[trim:]
		f.base = max(f.base-trim, 0)
		f.savedY = max(f.savedY-trim, 0)
	}
	f.x, f.y = min(f.x, f.cols-1), min(f.y, f.rows-1)+grow
}

// paragraph is where the lines that began at from end, lines[to] excluded.
func (f *flow) paragraphEnd(from int) int {
	to := from + 1
	for to < len(f.lines) && f.lines[to].wrapped {
		to++
	}
	return to
}

// used is how much of line i of a paragraph is text: all of it, but for the last
// line, and for a column that a wide character left empty.
func (f *flow) used(lines []*row, i int) int {
	r := lines[i]
	if i == len(lines)-1 {
		return r.used()
	}
	n := f.oldCols
	if r.width(n-1) == 1 && !r.cells[n-1].hasContent() && lines[i+1].width(0) == 2 {
		return n - 1
	}
	return n
}

// widen joins lines that continue each other and now fit together. The paragraph
// of the cursor stays: its program draws it anew.
func (f *flow) widen() {
	cursor := f.base + f.y
	removed := 0
	kept := f.lines[:0:0]
	for from := 0; from < len(f.lines); {
		to := f.paragraphEnd(from)
		lines := f.lines[from:to]
		if len(lines) > 1 && !(cursor >= from && cursor < to) {
			n := f.joinLines(lines)
			removed += len(lines) - n
			lines = lines[:n]
		}
		kept = append(kept, lines...)
		from = to
	}
	f.lines = kept
	for range removed {
		if f.base > 0 {
			f.base--
			continue
		}
		if f.y > 0 {
			f.y--
		}
		if len(f.lines) < f.rows {
			f.lines = append(f.lines, newRow(f.cols))
		}
	}
	f.savedY = max(f.savedY-removed, 0)
}

// joinLines moves the text of a paragraph to the front of its lines and returns
// how many it still takes.
func (f *flow) joinLines(lines []*row) int {
	d, x := 0, f.used(lines, 0)
	for i, from := 1, 0; i < len(lines); {
		used := f.used(lines, i)
		n := min(used-from, f.cols-x)
		copyCells(lines[d], x, lines[i], from, n)
		x += n
		if x == f.cols {
			d++
			x = 0
		}
		from += n
		if from == used {
			i++
			from = 0
		}
		if x == 0 && d > 0 && lines[d-1].width(f.cols-1) == 2 {
			// A wide character does not fit: it begins the next line.
			copyCells(lines[d], 0, lines[d-1], f.cols-1, 1)
			x = 1
			lines[d-1].cells[f.cols-1] = 0
		}
	}
	if d < len(lines) {
		lines[d].replace(x, f.cols, 0, nil)
	}
	n := len(lines)
	for n > 1 && (n-1 > d || lines[n-1].used() == 0) {
		n--
	}
	for _, r := range lines[n:] {
		lines[0].marks = append(lines[0].marks, r.marks...)
	}
	return n
}

// copyCells moves n cells, which may overlap.
func copyCells(to *row, x int, from *row, fromX, n int) {
	if n > 0 && x < len(to.cells) && fromX < len(from.cells) {
		copy(to.cells[x:min(x+n, len(to.cells))], from.cells[fromX:min(fromX+n, len(from.cells))])
	}
}

// insertion is lines that a paragraph needs more of.
type insertion struct {
	at   int
	rows []*row
}

// narrow breaks lines that no longer fit. It goes from the last line to the
// first, as xterm.js does: what falls off the top of a full scrollback depends on
// the order.
func (f *flow) narrow() {
	var more []insertion
	added := 0
	// Lines that go at the bottom, to make room, are still broken here: they
	// count for where the screen ends up.
	all := f.lines
	for y := len(all) - 1; y >= 0; y-- {
		r := all[y]
		if !r.wrapped && r.used() <= f.cols {
			continue
		}
		end := y + 1
		for r.wrapped && y > 0 {
			y--
			r = all[y]
		}
		lines := append([]*row(nil), all[y:end]...)
		if cursor := f.base + f.y; cursor >= y && cursor < end {
			continue
		}
		lengths := f.breakLines(lines)
		add := len(lengths) - len(lines)
		trimmed := len(f.lines) - f.max + add
		if f.base == 0 && f.y != len(f.lines)-1 {
			trimmed = f.y - f.max + add
		}
		trimmed = max(0, trimmed)
		if add > 0 {
			fresh := make([]*row, add)
			for i := range fresh {
				fresh[i] = newRow(f.cols)
				fresh[i].wrapped = true
			}
			more = append(more, insertion{at: end + added, rows: fresh})
			added += add
			lines = append(lines, fresh...)
		}
		f.splitLines(lines, lengths, len(lines)-max(add, 0))
		for n := add - trimmed; n > 0; n-- {
			switch {
			case f.base > 0:
				if f.base < min(f.max, len(f.lines)+added)-f.rows {
					f.base++
				}
			case f.y < f.rows-1:
				f.y++
				f.lines = f.lines[:len(f.lines)-1]
			default:
				f.base++
			}
		}
		f.savedY = min(f.savedY+add, f.base+f.rows-1)
	}
	f.insert(more, added)
}

// breakLines is how long the lines of a paragraph become.
func (f *flow) breakLines(lines []*row) []int {
	need := 0
	for i := range lines {
		need += f.used(lines, i)
	}
	var lengths []int
	for have, x, i := 0, 0, 0; have < need; {
		if need-have < f.cols {
			return append(lengths, need-have)
		}
		x += f.cols
		if used := f.used(lines, i); x > used && i < len(lines)-1 {
			x -= used
			i++
		}
		n := f.cols
		if lines[i].width(x-1) == 2 {
			// A wide character does not fit.
			x--
			n--
		}
		lengths = append(lengths, n)
		have += n
	}
	return lengths
}

// splitLines moves the text of the first old lines to all of them, whose lengths
// are given, from the end to the beginning.
func (f *flow) splitLines(lines []*row, lengths []int, old int) {
	d := len(lengths) - 1
	if d < 0 {
		return
	}
	x := lengths[d]
	if x == 0 && d > 0 {
		d--
		x = lengths[d]
	}
	from := lines[old-1].used()
	for i := old - 1; i >= 0 && d >= 0; {
		n := min(from, x)
		if d >= len(lines) {
			break
		}
		copyCells(lines[d], x-n, lines[i], from-n, n)
		x -= n
		if x == 0 {
			d--
			if d >= 0 {
				x = lengths[d]
			}
		}
		from -= n
		if from == 0 {
			i--
			from = f.used(lines[:max(old, len(lines))], max(i, 0))
		}
	}
	for i := range lines {
		if i < len(lengths) && lengths[i] < f.cols && lengths[i] < len(lines[i].cells) {
			lines[i].cells[lengths[i]] = 0
		}
	}
}

// insert puts the new lines where they belong and drops what does not fit at the
// top.
func (f *flow) insert(more []insertion, added int) {
	if len(more) == 0 {
		return
	}
	old := f.lines
	total := min(f.max, len(old)+added)
	lines := make([]*row, total)
	next, done, k := len(old)-1, 0, 0
	for i := min(f.max-1, len(old)+added-1); i >= 0; i-- {
		if k < len(more) && more[k].at > next+done {
			rows := more[k].rows
			for j := len(rows) - 1; j >= 0; j-- {
				if i >= 0 {
					lines[i] = rows[j]
				}
				i--
			}
			i++
			done += len(rows)
			k++
		} else {
			lines[i] = old[next]
			next--
		}
	}
	f.lines = lines
}

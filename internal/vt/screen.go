package vt

// screen is the normal or the alternate screen. Each has its own cursor, saved
// cursor, scroll region and tab stops.
type screen struct {
	rows []*row // as many as the terminal has; none in the alternate screen while it is hidden
	hist *history

	x, y        int // the cursor; x == cols means that the next character wraps
	top, bottom int // the scroll region, inclusive
	saved       savedCursor
	tabs        []bool // at least one longer than the screen is wide
}

// savedCursor is what DECSC keeps. The row counts from the oldest line of the
// scrollback, as in xterm.js: a saved cursor scrolls with the text.
type savedCursor struct {
	x, y    int
	fg, bg  uint32
	charset *charset
}

// base is the number of lines above the screen.
func (s *screen) base() int {
	if s.hist == nil {
		return 0
	}
	return s.hist.len()
}

// allocate gives the screen its rows.
func (s *screen) allocate(cols, rows int, blank cell) {
	s.rows = make([]*row, rows)
	cells := make([]cell, cols*rows)
	if blank != 0 {
		for i := range cells {
			cells[i] = blank
		}
	}
	for i := range s.rows {
		s.rows[i] = &row{cells: cells[i*cols : (i+1)*cols : (i+1)*cols]}
	}
}

// resetTabs sets a stop every 8 columns.
func (s *screen) resetTabs(cols int) {
	s.tabs = make([]bool, cols+1)
	for i := 0; i < cols; i += 8 {
		s.tabs[i] = true
	}
}

// widenTabs adds stops from the last one on, for a screen of a new width. Stops
// beyond a narrower screen are kept.
func (s *screen) widenTabs(cols int) {
	if len(s.tabs) < cols+1 {
		s.tabs = append(s.tabs, make([]bool, cols+1-len(s.tabs))...)
	}
	i := cols
	if !s.tabs[i] {
		i = s.prevTab(i, cols)
	}
	for ; i < cols; i += 8 {
		s.tabs[i] = true
	}
}

func (s *screen) nextTab(x, cols int) int {
	for x++; x < cols && !(x < len(s.tabs) && s.tabs[x]); x++ {
	}
	return min(x, cols-1)
}

func (s *screen) prevTab(x, cols int) int {
	for x--; x > 0 && !(x < len(s.tabs) && s.tabs[x]); x-- {
	}
	return max(0, min(x, cols-1))
}

package vt

import "bytes"

// backlogMin is the shortest input, in bytes, that is looked at as a backlog.
const backlogMin = 1 << 10

// backlog takes whole lines of plain ASCII, of which more come at once than the
// screen has rows: most of them pass the screen unseen, so they go straight into
// the scrollback, as they are. It returns how many bytes it took; the rest, and
// whatever is not as plain as that, goes the usual way to the same result. Where it
// took none, looking again is of use only after as many bytes as it looked at.
func (t *Terminal) backlog(b []byte) (taken, looked int) {
	s := t.normal
	rows := t.rows
	if len(b) < backlogMin || t.s != s || s.x != 0 || s.y != rows-1 || s.top != 0 || s.bottom != rows-1 ||
		t.pen != (style{}) || t.charset != nil || t.modes.insert || s.hist.maxLines == 0 || !s.rows[rows-1].blank() {
		return 0, 0
	}
	size, lines := t.plainLines(b)
	direct := lines - (rows - 1)
	if direct < rows {
		return 0, size // not worth it
	}
	for _, r := range s.rows[:rows-1] {
		t.retire(r)
		r.fill(0, nil)
		r.wrapped, r.marks = false, nil
	}
	t.touchAll()
	for range direct {
		n := bytes.IndexByte(b[taken:], '\n') + 1
		t.retireText(b[taken : taken+n-len("\r\n")])
		taken += n
	}
	s.y = 0
	for taken < size {
		n := bytes.IndexByte(b[taken:], '\n') + 1
		if n > len("\r\n") {
			t.printASCII(b[taken : taken+n-len("\r\n")])
		}
		s.x = 0
		s.y++
		taken += n
	}
	t.join = 0
	return taken, 0
}

// plainLines measures the whole lines that b begins with, in bytes and in number:
// ASCII, no longer than a row, each ended by CR LF.
func (t *Terminal) plainLines(b []byte) (size, lines int) {
	for {
		n := plainLen(b[size:])
		end := size + n
		if n > t.cols || end+1 >= len(b) || b[end] != '\r' || b[end+1] != '\n' {
			return size, lines
		}
		size = end + len("\r\n")
		lines++
	}
}

// retireText adds a line of plain text to the scrollback.
func (t *Terminal) retireText(text []byte) {
	h := t.normal.hist
	flags := lineJoined
	switch len(text) {
	case t.cols:
		flags |= lineFull
	case t.cols - 1:
		flags |= lineShort
	}
	dst := append(h.room(len(text)+2), "\r\n"...)
	before := h.n
	h.push(append(dst, text...), flags)
	if h.n < before {
		s := &t.normal.saved
		s.y = max(s.y-(before-h.n), 0)
	}
}

package vt

import "sort"

// history keeps the lines above the screen, each as the bytes that draw it: what
// joins it to the line before, then its cells and marks, from a reset pen to a
// reset pen. A part of it as it lies in memory is thus a part of a snapshot.
type history struct {
	maxLines, maxBytes int

	blocks []block  // oldest first
	ends   []uint64 // ring: where each line ends, counted over all lines ever kept, with its flags
	first  int      // of the ring
	n      int      // lines
	start  uint64   // where the oldest line begins
	spare  []byte   // memory of a block that was dropped
	bytes  int      // of all blocks
}

// block holds whole lines.
type block struct {
	start uint64
	b     []byte
}

// A line's end is shifted by the flags' bits.
const (
	lineWrapped uint64 = 1 << iota // it continues the line before
	lineJoined                     // bytes lead to it from the line before
	lineFull                       // drawn, it leaves the cursor past the last column
	lineShort                      // drawn, it leaves it at the last column, which is empty
	lineMarked                     // it holds marks
	lineShift   = 5
	lineFlags   = 1<<lineShift - 1
)

const blockSize = 32 << 10

func (h *history) len() int { return h.n }

func (h *history) at(i int) *uint64 {
	i += h.first
	if i >= len(h.ends) {
		i -= len(h.ends)
	}
	return &h.ends[i]
}

// end is where line i ends; that of -1 is where the oldest begins.
func (h *history) end(i int) uint64 {
	if i < 0 {
		return h.start
	}
	return *h.at(i) >> lineShift
}

func (h *history) flags(i int) uint64 { return *h.at(i) & lineFlags }

// line is the bytes of line i.
func (h *history) line(i int) []byte {
	from, to := h.end(i-1), h.end(i)
	k := sort.Search(len(h.blocks), func(k int) bool { return h.blocks[k].start > from }) - 1
	b := h.blocks[k]
	return b.b[from-b.start : to-b.start]
}

// room is where the next line is to be appended; push ends it.
func (h *history) room(atLeast int) []byte {
	if k := len(h.blocks) - 1; k >= 0 && cap(h.blocks[k].b)-len(h.blocks[k].b) >= atLeast {
		return h.blocks[k].b
	}
	b := h.spare
	h.spare = nil
	if cap(b) < atLeast {
		b = make([]byte, 0, max(blockSize, atLeast))
	}
	h.blocks = append(h.blocks, block{start: h.end(h.n - 1), b: b[:0]})
	h.bytes += cap(h.blocks[len(h.blocks)-1].b)
	return h.blocks[len(h.blocks)-1].b
}

// push adds a line that was appended to what room returned.
func (h *history) push(b []byte, flags uint64) {
	k := len(h.blocks) - 1
	if cap(b) != cap(h.blocks[k].b) {
		h.bytes += cap(b) - cap(h.blocks[k].b)
	}
	h.blocks[k].b = b
	end := h.blocks[k].start + uint64(len(b))
	if h.n == len(h.ends) {
		ends := make([]uint64, max(64, min(2*h.n, h.maxLines+1)))
		for i := range h.n {
			ends[i] = *h.at(i)
		}
		h.ends, h.first = ends, 0
	}
	h.n++
	*h.at(h.n - 1) = end<<lineShift | flags
	for h.n > h.maxLines || h.n > 1 && h.bytes > h.maxBytes && len(h.blocks) > 1 {
		h.dropFirst()
	}
}

// dropFirst forgets the oldest line.
func (h *history) dropFirst() {
	h.start = h.end(0)
	h.first++
	if h.first == len(h.ends) {
		h.first = 0
	}
	h.n--
	for len(h.blocks) > 1 && h.blocks[1].start <= h.start {
		h.bytes -= cap(h.blocks[0].b)
		if cap(h.blocks[0].b) == blockSize {
			h.spare = h.blocks[0].b
		}
		h.blocks[0].b = nil
		h.blocks = h.blocks[1:]
	}
}

// dropLast takes the newest line back.
func (h *history) dropLast() {
	end := h.end(h.n - 2)
	h.n--
	k := len(h.blocks) - 1
	if end < h.blocks[k].start || end == h.blocks[k].start && k > 0 {
		h.bytes -= cap(h.blocks[k].b)
		h.blocks[k].b = nil
		h.blocks = h.blocks[:k]
		return
	}
	h.blocks[k].b = h.blocks[k].b[:end-h.blocks[k].start]
}

// clear forgets all lines.
func (h *history) clear() {
	*h = history{maxLines: h.maxLines, maxBytes: h.maxBytes}
}

// retire adds a row that leaves the top of the screen.
func (t *Terminal) retire(r *row) {
	h := t.normal.hist
	if h.maxLines == 0 {
		return
	}
	flags := uint64(0)
	e := encoder{t: t, dst: h.room(len(r.cells) + 64)}
	if e.joinHistory(h, r) {
		flags |= lineJoined
	}
	if r.wrapped {
		flags |= lineWrapped
	}
	if len(r.marks) > 0 {
		flags |= lineMarked
	}
	switch endingOf(r, t.cols) {
	case endsFull:
		flags |= lineFull
	case endsShort:
		if r.cells[t.cols-1] == 0 {
			flags |= lineShort
		}
	}
	e.row(r)
	before := h.n
	h.push(e.dst, flags)
	if h.n < before {
		// More than one went, for its bytes: the saved cursor keeps its
		// place on the screen.
		s := &t.normal.saved
		s.y = max(s.y-(before-h.n), 0)
	}
}

// joinHistory appends what leads from the newest line of the scrollback to r.
func (e *encoder) joinHistory(h *history, r *row) bool {
	if !r.wrapped || h.n == 0 {
		if h.n > 0 || !r.wrapped {
			e.dst = append(e.dst, "\r\n"...)
			return true
		}
		e.forceWrap(nil)
		return true
	}
	end, last := endsElse, cell(0)
	switch f := h.flags(h.n - 1); {
	case f&lineFull != 0:
		end = endsFull
	case f&lineShort != 0:
		end = endsShort
	}
	return e.joiner(end, last, func() *row { return e.t.decode(h.n - 1) }, r)
}

// decode draws line i of the scrollback again.
func (t *Terminal) decode(i int) *row {
	h := t.normal.hist
	d := t.decoder()
	s := d.s
	for _, r := range s.rows {
		r.fill(0, nil)
		r.wrapped, r.marks = false, nil
	}
	// What leads to the line begins past the last column of the one before.
	s.x, s.y = t.cols, 0
	flags := h.flags(i)
	if flags&lineJoined == 0 {
		s.x, s.y = 0, 1
	}
	d.setPen(style{})
	d.join = 0
	d.out = outbox{}
	d.Write(h.line(i))
	r := s.rows[1]
	s.rows[1] = newRow(t.cols)
	r.wrapped = flags&lineWrapped != 0
	return r
}

// decoder is a terminal of two rows that shares the styles.
func (t *Terminal) decoder() *Terminal {
	d := t.scratch
	if d == nil || d.cols != t.cols {
		d = &Terminal{cols: t.cols, rows: 2, styles: t.styles, shared: true}
		d.normal = &screen{bottom: 1}
		d.normal.allocate(t.cols, 2, 0)
		d.alt = &screen{}
		d.s = d.normal
		d.modes.reset()
		t.scratch = d
	}
	return d
}

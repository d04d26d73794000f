package vt

// cell is one position of the screen in 8 bytes. The low half holds what it
// shows: 0 for nothing, a rune, or clusterBit and the index of a cluster. The
// high half holds the width in its two low bits (XOR 1, so that a cell of zero
// bits is what an empty row is made of: nothing, one column wide, no style) and
// the style's index above them.
type cell uint64

const (
	clusterBit  cell = 1 << 31
	contentMask cell = 1<<32 - 1
	widthShift       = 32
	widthMask   cell = 3 << widthShift
	styleShift       = 34

	narrow cell = 0 << widthShift // width 1
	empty  cell = 1 << widthShift // width 0: the right half of a wide character, or a lone combining one
	wide   cell = 3 << widthShift // width 2
)

func (c cell) width() int        { return int(c>>widthShift&3) ^ 1 }
func (c cell) content() uint32   { return uint32(c & contentMask) }
func (c cell) hasContent() bool  { return c&contentMask != 0 }
func (c cell) style() styleID    { return styleID(c >> styleShift) }
func (c cell) isCluster() bool   { return c&clusterBit != 0 }
func (c cell) clusterIndex() int { return int(c & (clusterBit - 1)) }

// styled is an empty narrow cell of a style.
func styled(id styleID) cell { return cell(id) << styleShift }

// glyph is a cell that shows content.
func glyph(content uint32, width int, id styleID) cell {
	return cell(content) | cell(width^1)<<widthShift | cell(id)<<styleShift
}

// row is one line of a screen. Rows are moved by their pointers.
type row struct {
	cells []cell // at least as long as the screen is wide
	// wrapped says that the row continues the one above: no newline stands
	// between them.
	wrapped bool
	rev     uint64 // revision of the last change
	marks   []mark // OSC 133, in the order in which they came
}

func newRow(cols int) *row { return &row{cells: make([]cell, cols)} }

// width of column x; columns beyond the row have none, as in xterm.js.
func (r *row) width(x int) int {
	if x < 0 || x >= len(r.cells) {
		return 0
	}
	return r.cells[x].width()
}

// used is the number of columns up to the last one with something in it.
// Colour alone does not count, a space does.
func (r *row) used() int {
	for i := len(r.cells) - 1; i >= 0; i-- {
		if c := r.cells[i]; c.hasContent() {
			return i + c.width()
		}
	}
	return 0
}

// fill makes a row of blanks of it.
func (r *row) fill(blank cell, keep func(cell) bool) {
	if keep == nil {
		if blank == 0 {
			clear(r.cells)
			return
		}
		for i := range r.cells {
			r.cells[i] = blank
		}
		return
	}
	for i, c := range r.cells {
		if !keep(c) {
			r.cells[i] = blank
		}
	}
}

// replace blanks the columns from start to end, and the other half of a wide
// character that loses one.
func (r *row) replace(start, end int, blank cell, keep func(cell) bool) {
	if keep != nil {
		if start > 0 && r.width(start-1) == 2 && !keep(r.cells[start-1]) {
			r.cells[start-1] = blank
		}
		if end < len(r.cells) && r.width(end-1) == 2 && !keep(r.cells[end]) {
			r.cells[end] = blank
		}
		for ; start < end && start < len(r.cells); start++ {
			if !keep(r.cells[start]) {
				r.cells[start] = blank
			}
		}
		return
	}
	if start > 0 && r.width(start-1) == 2 {
		r.cells[start-1] = blank
	}
	if end < len(r.cells) && r.width(end-1) == 2 {
		r.cells[end] = blank
	}
	for ; start < end && start < len(r.cells); start++ {
		r.cells[start] = blank
	}
}

// insert moves the columns from x to the right by n and blanks the gap.
func (r *row) insert(x, n int, blank cell) {
	size := len(r.cells)
	x %= size
	if x > 0 && r.width(x-1) == 2 {
		r.cells[x-1] = blank
	}
	n = min(n, size-x)
	copy(r.cells[x+n:], r.cells[x:size-n])
	for i := x; i < x+n; i++ {
		r.cells[i] = blank
	}
	if r.width(size-1) == 2 {
		r.cells[size-1] = blank
	}
}

// remove moves the columns right of x+n to x and blanks what is left over.
func (r *row) remove(x, n int, blank cell) {
	size := len(r.cells)
	x %= size
	n = min(n, size-x)
	copy(r.cells[x:], r.cells[x+n:])
	for i := size - n; i < size; i++ {
		r.cells[i] = blank
	}
	if x > 0 && r.width(x-1) == 2 {
		r.cells[x-1] = blank
	}
	if r.width(x) == 0 && !r.cells[x].hasContent() {
		r.cells[x] = blank
	}
}

// resize makes the row cols wide. What is left of a wide character that is cut
// through becomes empty.
func (r *row) resize(cols int) {
	if cols <= len(r.cells) {
		r.cells = r.cells[:cols:cols]
		if r.width(cols-1) == 2 {
			r.cells[cols-1] = 0
		}
		return
	}
	cells := make([]cell, cols)
	copy(cells, r.cells)
	r.cells = cells
}

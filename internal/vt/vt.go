package vt

// Options say what a Terminal is like when it begins.
type Options struct {
	// Cols and Rows are the size in cells, clamped to the limits.
	Cols, Rows int
	// ScrollbackLines bounds the lines above the screen; 0 is the default,
	// a negative number none.
	ScrollbackLines int
	// ScrollbackBytes bounds the bytes that those lines take; 0 is the default.
	ScrollbackBytes int
	// Foreground, Background and Cursor are the colours that queries are
	// answered with, 0xRRGGBB, and Palette the 16 named ones. A zero Palette
	// is xterm.js's.
	Foreground, Background, Cursor uint32
	Palette                        [16]uint32
	// CellWidth and CellHeight answer queries for the size in pixels; zero
	// is 9 by 17.
	CellWidth, CellHeight int
	// Version is what XTVERSION tells.
	Version string
}

// Terminal is one emulated terminal. Its owner serialises all calls.
type Terminal struct {
	opt        Options
	cols, rows int
	normal     *screen
	alt        *screen
	s          *screen // the active one
	styles     *styles
	scratch    *Terminal // draws lines of the scrollback again
	shared     bool      // styles belong to another terminal: they are not swept

	pen      style
	penID    styleID // of pen, as cells have it
	eraseID  styleID // of what erasing leaves
	penStale bool

	charset  *charset // in use
	charsets [4]*charset
	gl       int

	modes modes
	kitty [2]kittyStack // of the normal and the alternate screen

	title, icon, cwd string
	palette          palette

	p     parser
	join  uint8  // width of the character that a combining one would join; 0 is none
	off   int64  // bytes written
	rev   uint64 // grows with every byte and every resize
	moved uint64 // revision at which rows changed their places

	out outbox
}

// New makes a terminal with an empty screen.
func New(o Options) *Terminal {
	if o.ScrollbackLines == 0 {
		o.ScrollbackLines = DefaultScrollbackLines
	}
	o.ScrollbackLines = max(0, min(o.ScrollbackLines, MaxScrollback))
	if o.ScrollbackBytes <= 0 {
		o.ScrollbackBytes = DefaultScrollbackBytes
	}
	if o.CellWidth <= 0 || o.CellHeight <= 0 {
		o.CellWidth, o.CellHeight = 9, 17
	}
	if o.Palette == ([16]uint32{}) {
		o.Palette = defaultPalette
	}
	if o.Foreground == o.Background {
		o.Foreground, o.Background = 0xffffff, 0
	}
	if o.Cursor == 0 {
		o.Cursor = o.Foreground
	}
	if o.Version == "" {
		o.Version = "ptyd"
	}
	t := &Terminal{
		opt:    o,
		cols:   clamp(o.Cols, MinCols, MaxCols),
		rows:   clamp(o.Rows, 1, MaxRows),
		styles: newStyles(),
	}
	t.resetScreens()
	t.modes.reset()
	return t
}

func clamp(n, low, high int) int { return max(low, min(n, high)) }

// resetScreens makes both screens empty and shows the normal one.
func (t *Terminal) resetScreens() {
	t.styles.reset()
	t.pen, t.penStale = style{}, true
	hist := &history{maxLines: t.opt.ScrollbackLines, maxBytes: t.opt.ScrollbackBytes}
	t.normal = &screen{hist: hist, bottom: t.rows - 1}
	t.normal.allocate(t.cols, t.rows, 0)
	t.normal.resetTabs(t.cols)
	t.alt = &screen{bottom: t.rows - 1}
	t.alt.resetTabs(t.cols)
	t.s = t.normal
	t.scratch = nil
	t.touchAll()
}

// Size is the screen's width and height in cells.
func (t *Terminal) Size() (cols, rows int) { return t.cols, t.rows }

// Offset is the number of bytes written, counted from where SetOffset said.
func (t *Terminal) Offset() int64 { return t.off }

// SetOffset says at which offset of the stream the next byte stands.
func (t *Terminal) SetOffset(off int64) { t.off = off }

// Revision grows with every byte written and every resize: equal revisions of
// one Terminal mean equal screens.
func (t *Terminal) Revision() uint64 { return t.rev }

// Title is the window title that the program set last.
func (t *Terminal) Title() string { return t.title }

// Cwd is the URL or path of the working directory that the program told last
// by OSC 7.
func (t *Terminal) Cwd() string { return t.cwd }

// Alt says whether the alternate screen is shown.
func (t *Terminal) Alt() bool { return t.s == t.alt }

// touchAll marks all rows as changed.
func (t *Terminal) touchAll() { t.moved = t.rev }

// line is the row of the cursor, to be changed.
func (t *Terminal) line() *row { return t.rowAt(t.s.y) }

// rowAt is the row y of the active screen, to be changed.
func (t *Terminal) rowAt(y int) *row {
	r := t.s.rows[y]
	r.rev = t.rev
	return r
}

// setPen changes the pen; what derives from it follows when it is needed.
func (t *Terminal) setPen(s style) {
	t.pen = s
	t.penStale = true
}

func (t *Terminal) freshenPen() {
	t.penStale = false
	if t.pen == (style{}) {
		t.penID, t.eraseID = defaultStyle, defaultStyle
		return
	}
	if t.styles.full && !t.shared {
		t.sweep()
	}
	shown := t.pen
	if shown.bg&bgExtended != 0 || shown.fg&fgUnderline != 0 || shown.under|uint32(shown.link) != 0 {
		shown.settle()
	}
	t.penID = t.styles.id(shown)
	t.eraseID = defaultStyle
	if bg := t.pen.bg & colorMask; bg != 0 {
		t.eraseID = t.styles.id(style{bg: bg})
	}
}

// penCell is an empty cell in the pen's style.
func (t *Terminal) penCell() cell {
	if t.penStale {
		t.freshenPen()
	}
	return styled(t.penID)
}

// blank is what erasing leaves: the pen's background alone.
func (t *Terminal) blank() cell {
	if t.penStale {
		t.freshenPen()
	}
	return styled(t.eraseID)
}

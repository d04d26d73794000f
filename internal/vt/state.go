package vt

// State is all of a terminal, in the terms of xterm.js, for tests to compare.
type State struct {
	Cols      int          `json:"cols"`
	Rows      int          `json:"rows"`
	Alt       bool         `json:"alt"`
	Normal    *ScreenState `json:"normal"`
	Alternate *ScreenState `json:"alternate"` // nil while hidden: it is empty then
	Pen       PenState     `json:"pen"`
	GL        int          `json:"gl"`
	G         [4]string    `json:"g"`
	Modes     ModeState    `json:"modes"`
	Title     string       `json:"title"`
	Join      int          `json:"join"` // width of what a combining character would join
	Charset   string       `json:"cs"`   // in use; after DECRC not always that of GL
	Blink12   bool         `json:"blink12"`
}

// ModeState is the modes.
type ModeState struct {
	Insert         bool   `json:"insert"`
	ConvertEol     bool   `json:"convertEol"`
	AppCursor      bool   `json:"appCursor"`
	AppKeypad      bool   `json:"appKeypad"`
	BracketedPaste bool   `json:"bracketedPaste"`
	Origin         bool   `json:"origin"`
	ReverseWrap    bool   `json:"reverseWrap"`
	SendFocus      bool   `json:"sendFocus"`
	Wrap           bool   `json:"wrap"`
	Sync           bool   `json:"sync"`
	CursorHidden   bool   `json:"cursorHidden"`
	CursorStyle    string `json:"cursorStyle"`
	CursorBlink    *bool  `json:"cursorBlink"` // by DECSCUSR; nil when it did not say
	Mouse          string `json:"mouse"`
	MouseEnc       string `json:"mouseEnc"`
}

// PenState is how the next character will look; the numbers are as in xterm.js's
// cells.
type PenState struct {
	Fg    uint32 `json:"fg"`
	Bg    uint32 `json:"bg"`
	Under uint32 `json:"us"`
	Color uint32 `json:"uc"`
	Link  string `json:"link"`
}

// ScreenState is one screen, its scrollback first.
type ScreenState struct {
	X            int         `json:"x"`
	Y            int         `json:"y"`
	Base         int         `json:"ybase"`
	Top          int         `json:"top"`
	Bottom       int         `json:"bottom"`
	SavedX       int         `json:"savedX"`
	SavedY       int         `json:"savedY"`
	SavedFg      uint32      `json:"savedFg"`
	SavedBg      uint32      `json:"savedBg"`
	SavedCharset string      `json:"savedCharset"`
	Tabs         []int       `json:"tabs"`
	Lines        []LineState `json:"lines"`
}

// LineState is one line: whether it continues the one before, and its cells,
// equal neighbours counted together: characters, width, foreground, background,
// underline kind and colour, link, count.
type LineState struct {
	Wrapped int   `json:"w"`
	Cells   []any `json:"c"`
}

func (c *charset) name() string {
	if c == nil {
		return "B"
	}
	return string(rune(c.final))
}

// State returns the terminal's.
func (t *Terminal) State() State {
	st := State{
		Cols: t.cols, Rows: t.rows, Alt: t.Alt(), Normal: t.screenState(t.normal),
		Pen:     t.penState(t.pen),
		GL:      t.gl,
		Modes:   t.Modes(),
		Title:   t.title,
		Join:    int(t.join),
		Charset: t.charset.name(),
		Blink12: t.modes.blinkOption,
	}
	for i, c := range t.charsets {
		st.G[i] = c.name()
	}
	if st.Alt {
		st.Alternate = t.screenState(t.alt)
	}
	return st
}

// Modes returns the modes that are set.
func (t *Terminal) Modes() ModeState {
	m := &t.modes
	st := ModeState{
		Insert: m.insert, ConvertEol: m.newline, AppCursor: m.appCursor, AppKeypad: m.appKeypad,
		BracketedPaste: m.bracketed, Origin: m.origin, ReverseWrap: m.reverseWrap, SendFocus: m.focus,
		Wrap: m.wrap, Sync: m.synced, CursorHidden: m.hidden,
		CursorStyle: [...]string{"", "block", "underline", "bar"}[m.style],
		Mouse:       [...]string{"NONE", "X10", "VT200", "DRAG", "ANY"}[m.mouse],
		MouseEnc:    [...]string{"DEFAULT", "SGR", "SGR_PIXELS"}[m.encoding],
	}
	if m.blink >= 0 {
		on := m.blink == 1
		st.CursorBlink = &on
	}
	return st
}

// penState tells a pen: the underline as it shows, colour and link as they are
// kept.
func (t *Terminal) penState(p style) PenState {
	shown := p
	shown.settle()
	return PenState{p.fg, p.bg &^ bgExtended, shown.under >> underlineShift, p.under & colorMask, t.styles.links[p.link].uri}
}

func (t *Terminal) screenState(s *screen) *ScreenState {
	st := &ScreenState{
		X: s.x, Y: s.y, Base: s.base(), Top: s.top, Bottom: s.bottom,
		SavedX: s.saved.x, SavedY: s.saved.y, SavedFg: s.saved.fg, SavedBg: s.saved.bg &^ bgExtended,
		SavedCharset: s.saved.charset.name(),
		Tabs:         []int{},
	}
	for i, set := range s.tabs {
		if set && i < t.cols {
			st.Tabs = append(st.Tabs, i)
		}
	}
	for i := range s.base() {
		st.Lines = append(st.Lines, t.lineState(t.decode(i)))
	}
	for _, r := range s.rows {
		st.Lines = append(st.Lines, t.lineState(r))
	}
	return st
}

func (t *Terminal) lineState(r *row) LineState {
	var l LineState
	if r.wrapped {
		l.Wrapped = 1
	}
	for _, c := range r.cells {
		p := t.penState(t.styles.list[c.style()])
		v := []any{string(t.appendText(nil, c)), c.width(), p.Fg, p.Bg, p.Under, p.Color, p.Link, 1}
		if n := len(l.Cells); n > 0 && sameCell(l.Cells[n-1].([]any), v) {
			last := l.Cells[n-1].([]any)
			last[7] = last[7].(int) + 1
			continue
		}
		l.Cells = append(l.Cells, v)
	}
	return l
}

// sameCell compares all but the counts.
func sameCell(a, b []any) bool {
	for i := range 7 {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

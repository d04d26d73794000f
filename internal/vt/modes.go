package vt

// mouse is what is reported of the mouse.
type mouse uint8

const (
	mouseNone  mouse = iota
	mouseX10         // ?9: presses
	mouseVT200       // ?1000: presses and releases
	mouseDrag        // ?1002: moves with a button down too
	mouseAny         // ?1003: all moves
)

// encoding is how the mouse is reported.
type encoding uint8

const (
	encodingDefault   encoding = iota
	encodingSGR                // ?1006
	encodingSGRPixels          // ?1016
)

type modes struct {
	insert, newline                       bool // IRM, LNM
	appCursor, appKeypad, origin, wrap    bool // DECCKM, DECKPAM, DECOM, DECAWM
	reverseWrap, focus, bracketed, synced bool // ?45, ?1004, ?2004, ?2026
	hidden                                bool // the cursor, DECTCEM
	blinkOption                           bool // ?12; a reset leaves it
	style                                 uint8
	blink                                 int8 // by DECSCUSR: -1 not set, else 0 or 1
	mouse                                 mouse
	encoding                              encoding
}

// reset makes the modes what a new terminal has.
func (m *modes) reset() { *m = modes{wrap: true, blink: -1} }

// resetHard is RIS; what xterm.js holds as an option stays.
func (m *modes) resetHard() {
	*m = modes{wrap: true, blink: -1, newline: m.newline, blinkOption: m.blinkOption, hidden: m.hidden}
}

// resetSoft is DECSTR.
func (m *modes) resetSoft() {
	*m = modes{wrap: true, blink: -1, newline: m.newline, blinkOption: m.blinkOption, mouse: m.mouse, encoding: m.encoding}
}

func (t *Terminal) setMode(n int, on bool) {
	switch n {
	case 4:
		t.modes.insert = on
	case 20:
		t.modes.newline = on
	}
}

func (t *Terminal) setPrivateMode(n int, on bool) {
	m := &t.modes
	switch n {
	case 1:
		m.appCursor = on
	case 2:
		if on {
			for g := range t.charsets {
				t.designate(g, nil)
			}
		}
	case 6:
		m.origin = on
		t.setCursor(0, 0)
	case 7:
		m.wrap = on
	case 12:
		m.blinkOption = on
	case 25:
		m.hidden = !on
	case 45:
		m.reverseWrap = on
	case 66:
		m.appKeypad = on
	case 9, 1000, 1002, 1003:
		m.mouse = mouseNone
		if on {
			m.mouse = map[int]mouse{9: mouseX10, 1000: mouseVT200, 1002: mouseDrag, 1003: mouseAny}[n]
		}
	case 1004:
		m.focus = on
	case 1006, 1016:
		m.encoding = encodingDefault
		if on && n == 1006 {
			m.encoding = encodingSGR
		} else if on {
			m.encoding = encodingSGRPixels
		}
	case 1048:
		if on {
			t.saveCursor()
		} else {
			t.restoreCursor()
		}
	case 47, 1047, 1049:
		if on {
			if n == 1049 {
				t.saveCursor()
			}
			t.showAlt()
			return
		}
		t.showNormal()
		if n == 1049 {
			t.restoreCursor()
		}
	case 2004:
		m.bracketed = on
	case 2026:
		m.synced = on
	}
}

// cursorStyle is DECSCUSR.
func (t *Terminal) cursorStyle(n, count int) {
	m := &t.modes
	if n == 0 {
		m.style, m.blink = 0, -1
		return
	}
	if n <= 6 {
		m.style = uint8(n+1) / 2
	}
	m.blink = int8(n % 2)
}

// reportMode is DECRQM.
func (t *Terminal) reportMode(n int, private bool) {
	const (
		unknown = iota
		set
		reset
		alwaysSet
		alwaysReset
	)
	of := func(on bool) int {
		if on {
			return set
		}
		return reset
	}
	m := &t.modes
	v := unknown
	if !private {
		switch n {
		case 2:
			v = alwaysReset
		case 4:
			v = of(m.insert)
		case 12:
			v = alwaysSet
		case 20:
			v = of(m.newline)
		}
		t.reply("\x1b[" + itoa(n) + ";" + itoa(v) + "$y")
		return
	}
	switch n {
	case 1:
		v = of(m.appCursor)
	case 6:
		v = of(m.origin)
	case 7:
		v = of(m.wrap)
	case 8:
		v = alwaysSet
	case 9:
		v = of(m.mouse == mouseX10)
	case 12:
		v = of(m.blinkOption)
	case 25:
		v = of(!m.hidden)
	case 45:
		v = of(m.reverseWrap)
	case 66:
		v = of(m.appKeypad)
	case 67, 1005, 1015:
		v = alwaysReset
	case 1000:
		v = of(m.mouse == mouseVT200)
	case 1002:
		v = of(m.mouse == mouseDrag)
	case 1003:
		v = of(m.mouse == mouseAny)
	case 1004:
		v = of(m.focus)
	case 1006:
		v = of(m.encoding == encodingSGR)
	case 1016:
		v = of(m.encoding == encodingSGRPixels)
	case 1048:
		v = set
	case 47, 1047, 1049:
		v = of(t.Alt())
	case 2004:
		v = of(m.bracketed)
	case 2026:
		v = of(m.synced)
	}
	t.reply("\x1b[?" + itoa(n) + ";" + itoa(v) + "$y")
}

// kittyStack is the keyboard flags of one screen, by the kitty protocol. The
// page's terminal does not know them; who types does.
type kittyStack struct {
	flags int
	saved []uint8
}

const kittyFlags = 31

func (t *Terminal) kittyNow() *kittyStack {
	if t.Alt() {
		return &t.kitty[1]
	}
	return &t.kitty[0]
}

func (k *kittyStack) push(flags int) {
	if len(k.saved) == maxKittyStack {
		copy(k.saved, k.saved[1:])
		k.saved = k.saved[:maxKittyStack-1]
	}
	k.saved = append(k.saved, uint8(k.flags))
	k.flags = flags & kittyFlags
}

func (k *kittyStack) pop(n int) {
	for ; n > 0 && len(k.saved) > 0; n-- {
		k.flags = int(k.saved[len(k.saved)-1])
		k.saved = k.saved[:len(k.saved)-1]
	}
	if n > 0 {
		k.flags = 0
	}
}

func (k *kittyStack) set(flags, how int) {
	flags &= kittyFlags
	switch how {
	case 0, 1:
		k.flags = flags
	case 2:
		k.flags |= flags
	case 3:
		k.flags &^= flags
	}
}

// KittyFlags are the keyboard flags in force, by the kitty protocol.
func (t *Terminal) KittyFlags() int { return t.kittyNow().flags }

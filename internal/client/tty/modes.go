package tty

// defaultOn are the private modes that terminals start with. All others that
// Modes follows are off at first.
var defaultOn = map[int]bool{7: true, 25: true}

// notFollowed are private modes that Modes leaves alone: either they are no
// states but deeds, or terminals begin with them as they please, so that
// nobody knows what to go back to.
var notFollowed = map[int]bool{
	3:    true, // 132 columns: undoing it clears the screen
	8:    true, // keys repeat
	40:   true, // whether 3 works at all
	1007: true, // the wheel moves the cursor in the alternate screen
	1034: true, 1035: true, 1036: true, 1039: true, 1042: true, 1046: true, 1070: true,
	1048: true, // saves and restores the cursor
}

// reporting are the private modes that make a terminal write by itself.
var reporting = []int{9, 1000, 1001, 1002, 1003, 1004, 2031, 2048}

const (
	// titleStack is how many titles a terminal keeps; xterm keeps ten.
	titleStack = 10
	// kittyStack is how many keyboard modes are counted. Terminals keep eight
	// or more and drop the oldest.
	kittyStack = 16
)

// Modes follows what a stream of output changes of a terminal beyond the text
// on it, so that exactly that can be undone. The zero value is a terminal as it
// starts. Rows may be set to tell a scroll region from the whole screen.
type Modes struct {
	Rows int

	scan       scanner
	private    map[int]bool // modes that differ from how terminals start
	saved      map[int]bool // by XTSAVE
	ansi       map[int]bool // modes that are set
	alternate  int          // which of 47, 1047, 1049 switched to it; 0 on the main screen
	keypad     bool         // application keypad by ESC =
	cursor     bool         // the cursor has a shape of its own
	region     bool         // lines scroll in a part of the screen
	charsets   [4]byte      // what is in G0 to G3, 0 for ASCII
	shift      bool         // another than G0 is in use
	notUTF8    bool         // ESC % @
	kitty      [2]kittyKeys // of the main and the alternate screen
	modifyKeys map[int]bool // resources of XTMODKEYS
	formatKeys map[int]bool // resources of XTFMTKEYS
	style      style
	colours    map[int]bool // OSC numbers of colours that were set
	link       bool         // a hyperlink is open
	pointer    bool         // the mouse pointer has a shape of its own
	progress   bool         // a progress bar is shown
	titles     int          // titles that the output put on the stack
	titled     bool         // our own title was put below them
	held       []byte       // the beginning of what may become a title
	gone       uint64       // the sequence whose beginning is already written
}

// kittyKeys is one screen's stack of the kitty keyboard protocol.
type kittyKeys struct {
	depth int // entries pushed
	base  int // flags set without a push
}

// pushTitle saves the terminal's title, popTitle brings it back.
const (
	pushTitle = "\x1b[22;0t"
	popTitle  = "\x1b[23;0t"
)

// Filter follows p and returns what to write in its place: p itself, but for
// the terminal's own title, which is saved before the output's first one, and
// for the first few bytes of what may become one, which wait for the rest.
func (m *Modes) Filter(p []byte) []byte {
	if m.titled {
		m.follow(p)
		return p
	}
	at := len(m.held)
	if at > 0 {
		p = append(m.held, p...)
		m.held = nil
	}
	start := 0 // of the open sequence: what was held back begins with its ESC
	for i := at; i < len(p); {
		begun := m.scan.begun
		n, ev := m.scan.next(p[i:])
		if m.scan.begun != begun {
			start = i
			if p[i] != 0x1b && i > 0 {
				start-- // its ESC came as the end of a string that was not ended by it
			}
		}
		i += n
		if q := &m.scan.seq; ev != evText && q.kind == kindOSC && isTitle(q.data) &&
			(ev == evSequence || m.scan.open()) && m.gone != m.scan.begun {
			m.titled = true
			out := make([]byte, 0, len(p)+len(pushTitle))
			out = append(append(append(out, p[:start]...), pushTitle...), p[start:]...)
			if ev == evSequence {
				m.apply(q)
			}
			m.follow(p[i:])
			return out
		}
		switch ev {
		case evSequence:
			m.apply(&m.scan.seq)
		case evControl:
			m.control(p[i-1])
			if m.scan.open() {
				m.gone = m.scan.begun // controls act at once: they cannot wait
			}
		}
	}
	switch m.scan.state {
	case stEsc, stOSC:
		if len(m.scan.seq.data) >= 2 || len(p)-start > maxHeld || m.gone == m.scan.begun {
			m.gone = m.scan.begun
			return p
		}
	case stOSCEsc, stDCSEsc, stAPCEsc:
		start = len(p) - 1
	default:
		return p
	}
	m.held = append([]byte(nil), p[start:]...)
	return p[:start]
}

// maxHeld bounds what is held back: a title shows within three bytes, but for
// DELs among them, which mean nothing.
const maxHeld = 64

// isTitle reports whether an OSC of this text sets a title or icon name.
func isTitle(data []byte) bool {
	return len(data) >= 2 && data[0] >= '0' && data[0] <= '2' && data[1] == ';'
}

// Rest returns what is held back, for the end of the output.
func (m *Modes) Rest() []byte {
	b := m.held
	m.held = nil
	return b
}

// follow looks at output that is written as it is.
func (m *Modes) follow(p []byte) {
	for len(p) > 0 {
		n, ev := m.scan.next(p)
		switch ev {
		case evSequence:
			m.apply(&m.scan.seq)
		case evControl:
			m.control(p[n-1])
		}
		p = p[n:]
	}
}

package vt

import (
	"bytes"
	"strconv"
)

// EventKind says what an Event tells.
type EventKind uint8

// Events. Text and Data hold what is said of each.
const (
	EventTitle     EventKind = iota + 1 // Text is the title
	EventBell                           // BEL
	EventCwd                            // Text is a URL or path (OSC 7)
	EventClipboard                      // Text is the selection, Data base64 (OSC 52)
	EventMark                           // Text is the mark (OSC 133), as MarkKind and its parameters
)

// Event is something that the program told and that is not on the screen.
type Event struct {
	Kind   EventKind
	Text   string
	Data   []byte
	Offset int64 // of the stream, after what told it
}

// outbox is what the owner has not taken yet.
type outbox struct {
	replies    [][]byte
	replyBytes int
	suppress   int64 // what is asked up to this offset was answered before

	events     []Event
	eventBytes int

	bells                         uint64
	droppedReplies, droppedEvents uint64
}

// TakeReplies returns what the program is to read as answers to its queries, in
// the order asked, each whole, and forgets them.
func (t *Terminal) TakeReplies() [][]byte {
	r := t.out.replies
	t.out.replies, t.out.replyBytes = nil, 0
	return r
}

// SuppressReplies makes queries that end at or before offset go unanswered: they
// were answered when they were read the first time.
func (t *Terminal) SuppressReplies(offset int64) { t.out.suppress = offset }

// TakeEvents returns what was told since the last call.
func (t *Terminal) TakeEvents() []Event {
	e := t.out.events
	t.out.events, t.out.eventBytes = nil, 0
	return e
}

// Counters say what was rung and what was dropped since the terminal began.
type Counters struct {
	Bells, DroppedReplies, DroppedEvents uint64
}

// Counters returns the terminal's.
func (t *Terminal) Counters() Counters {
	return Counters{t.out.bells, t.out.droppedReplies, t.out.droppedEvents}
}

func (t *Terminal) reply(s string) {
	o := &t.out
	if t.off <= o.suppress {
		return
	}
	if o.replyBytes+len(s) > MaxReplyBytes {
		o.droppedReplies++
		return
	}
	o.replyBytes += len(s)
	o.replies = append(o.replies, []byte(s))
}

func (t *Terminal) event(e Event) {
	o := &t.out
	e.Offset = t.off
	size := len(e.Text) + len(e.Data)
	if len(o.events) == MaxEvents || o.eventBytes+size > MaxEventBytes {
		o.droppedEvents++
		return
	}
	o.eventBytes += size
	o.events = append(o.events, e)
}

func itoa(n int) string { return strconv.Itoa(n) }

// deviceStatus is DSR.
func (t *Terminal) deviceStatus(n int, private bool) {
	switch {
	case n == 5 && !private:
		t.reply("\x1b[0n")
	case n == 6:
		prefix := "\x1b["
		if private {
			prefix = "\x1b[?"
		}
		t.reply(prefix + itoa(t.s.y+1) + ";" + itoa(t.s.x+1) + "R")
	}
}

// windowOp answers for sizes, and does nothing else: a program can't move the
// window, and the title is never told.
func (t *Terminal) windowOp(a *params) {
	switch a.at(0) {
	case 14:
		if a.at(1) != 2 {
			t.reply("\x1b[4;" + itoa(t.rows*t.opt.CellHeight) + ";" + itoa(t.cols*t.opt.CellWidth) + "t")
		}
	case 16:
		t.reply("\x1b[6;" + itoa(t.opt.CellHeight) + ";" + itoa(t.opt.CellWidth) + "t")
	case 18:
		t.reply("\x1b[8;" + itoa(t.rows) + ";" + itoa(t.cols) + "t")
	}
}

// dispatchDCS acts on a device control string.
func (t *Terminal) dispatchDCS(text []byte) {
	p := &t.p
	if p.ncol != 1 || p.collect[0] != '$' || p.final != 'q' {
		return
	}
	switch {
	case bytes.Equal(text, []byte(`"q`)):
		n := 0
		if t.pen.bg&bgProtected != 0 {
			n = 1
		}
		t.reply("\x1bP1$r" + itoa(n) + "\"q\x1b\\")
	case bytes.Equal(text, []byte(`"p`)):
		t.reply("\x1bP1$r61;1\"p\x1b\\")
	case bytes.Equal(text, []byte("r")):
		t.reply("\x1bP1$r" + itoa(t.s.top+1) + ";" + itoa(t.s.bottom+1) + "r\x1b\\")
	case bytes.Equal(text, []byte("m")):
		sgr := string(appendSGR(nil, t.pen))
		t.reply("\x1bP1$r" + sgr[2:] + "\x1b\\")
	case bytes.Equal(text, []byte(" q")):
		n := 2 * int(max(t.modes.style, 1))
		if t.modes.blink == 1 {
			n--
		}
		t.reply("\x1bP1$r" + itoa(n) + " q\x1b\\")
	default:
		t.reply("\x1bP0$r\x1b\\")
	}
}

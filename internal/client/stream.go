package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

const (
	// channel is the one channel of a stream's connection.
	channel = 1
	// inputWindow is how many input bytes may be unacknowledged; the daemon
	// accepts no more.
	inputWindow = 64 << 10
	// inputQueue is how many bytes of input wait here before Write waits: a
	// pasted file of ordinary size must not keep the detach key from being seen.
	inputQueue = 1 << 20
	// inputFrame is how much input one frame carries: small enough that an
	// acknowledgement comes back while the rest is under way.
	inputFrame = 16 << 10
	// outputQueue is how many bytes of output wait here before the connection
	// is read no further. The daemon's window is smaller, so that only one that
	// breaks its own rules gets here.
	outputQueue = 4 << 20
	// ackBytes and ackDelay are when to acknowledge: see the wire's DESIGN.md.
	ackBytes = 32 << 10
	ackDelay = 50 * time.Millisecond
)

// EventKind tells what an Event of a Stream is.
type EventKind int

// The kinds of events.
const (
	EventAttached  EventKind = iota // (again) attached: Attached tells how it goes on
	EventSnapshot                   // a piece of a snapshot: Data; Last on the last piece
	EventOutput                     // Data, which begins at Offset of the stream
	EventResync                     // too slow: Attached.Skipped bytes are never sent, a snapshot follows
	EventSize                       // the session's size is another one: Size
	EventExit                       // the process ended: Exit; nothing follows
	EventInputLost                  // Lost bytes of input may or may not have arrived, and are not sent again
)

// Event is something that arrived on a Stream.
type Event struct {
	Kind     EventKind
	Offset   uint64 // in the output; for EventSnapshot where output goes on after it
	Data     []byte
	Last     bool
	Resync   bool          // of EventSnapshot: it follows an EventResync
	Attached wire.Attached // of EventSnapshot too
	Size     wire.Size
	Exit     wire.Exit
	Lost     int

	generation int // of the output offsets, see Ack
}

// Position is a place in a session's output.
type Position struct {
	Epoch  wire.Epoch
	Offset uint64
}

// AttachOptions tell how to attach.
type AttachOptions struct {
	Session    string
	Kind       wire.Kind
	ReadOnly   bool
	Cols, Rows int       // of the viewer's window; 0 is none
	Tail       *uint64   // at most that much of the past
	From       *Position // go on from here, without a snapshot where possible
	// Reconnect is how long to try again once the connection is lost.
	Reconnect time.Duration
	// OnConnection, unless nil, is told of each loss and each return.
	OnConnection func(up bool, err error)
}

// frames is what a Stream needs of a connection; *ws.Client is one. It answers
// the peer's PINGs by itself.
type frames interface {
	Send(wire.Frame) error
	Next() (wire.Frame, error)
	Close() error
}

// Stream is one session attached, over as many connections as it takes. Events
// come in order, every output byte once, or a resync that says how many never
// come. Input arrives exactly once, or an event says that it may not have.
type Stream struct {
	opt      AttachOptions
	dial     func(context.Context, wire.Hello) (frames, error)
	hello    wire.Hello
	cancel   context.CancelFunc
	done     chan struct{} // closed when run has ended
	readable chan struct{} // 1 deep: there may be something in queue, or an end
	changed  chan struct{} // 1 deep: there may be something for send to do
	room     chan struct{} // 1 deep: the input got shorter, or the stream ended
	taken    chan struct{} // 1 deep: the output queue got shorter

	mu         sync.Mutex // guards what follows; never held over I/O
	queue      []Event
	queued     int           // bytes of Data in queue
	ended      error         // why no more events come, nil while they may
	position   Position      // after what is received or waits in queue
	placed     bool          // position is known: no snapshot is open
	generation int           // grows when offsets begin anew
	acked      uint64        // what the consumer is done with, in this generation
	input      []byte        // not acknowledged, the sent part first
	inputBase  uint64        // the count of input bytes before input
	inputSent  uint64        // the count of input bytes sent on this connection
	inputAcked uint64        // the last acknowledgement; the window begins here
	probe      bool          // ask for an acknowledgement that may have been lost
	latest     wire.Attached // how the daemon last answered
	view       wire.View     // the viewer's window
	viewSent   wire.View     // what this connection's daemon knows of it
	exit       *wire.Exit    // how the session ended
	lastLoss   time.Time     // since when there is no connection
	snap       Event         // of a snapshot that is open: what its pieces have in common
	open       bool          // a snapshot is open
}

// Attach attaches to a session. It returns once the daemon has accepted, or
// with the reason why it has not.
func (c *Client) Attach(ctx context.Context, o AttachOptions) (*Stream, error) {
	return attach(ctx, o, c.opt.Build, c.dialFrames)
}

func attach(ctx context.Context, o AttachOptions, build string, dial func(context.Context, wire.Hello) (frames, error)) (*Stream, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	if o.Kind == "" {
		o.Kind = wire.KindInteractive
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Stream{
		opt: o, dial: dial, cancel: cancel,
		hello: wire.Hello{
			Min: wire.Version, Max: wire.Version, ClientID: hex.EncodeToString(id[:]),
			Build: build, MaxFrame: wire.MaxPayload,
		},
		done:     make(chan struct{}),
		readable: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		room: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		view: wire.View{Cols: o.Cols, Rows: o.Rows, Visible: o.Cols > 0 && o.Rows > 0},
	}
	if o.From != nil {
		s.position, s.placed = *o.From, true
	}
	first := make(chan error, 1)
	go s.run(run, first)
	select {
	case err := <-first:
		if err != nil {
			s.Close()
			return nil, err
		}
		return s, nil
	case <-ctx.Done():
		s.Close()
		return nil, context.Cause(ctx)
	}
}

// Next waits for the next event. After the last it returns io.EOF when the
// session's exit was the last one, or why the stream ended.
func (s *Stream) Next(ctx context.Context) (Event, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			e := s.queue[0]
			s.queue[0] = Event{}
			s.queue = s.queue[1:]
			s.queued -= len(e.Data)
			s.mu.Unlock()
			poke(s.taken)
			return e, nil
		}
		err := s.ended
		s.mu.Unlock()
		if err != nil {
			return Event{}, err
		}
		select {
		case <-s.readable:
		case <-s.done: // ended was set before
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

// Ack tells that the consumer is done with e: its bytes are where they belong.
// The daemon sends more only for what was acknowledged.
func (s *Stream) Ack(e Event) {
	end := e.Offset
	switch e.Kind {
	case EventOutput:
		end += uint64(len(e.Data))
	case EventSnapshot:
		if !e.Last {
			return
		}
	default:
		return
	}
	s.mu.Lock()
	// An event of before a jump speaks of other offsets than the daemon does now.
	if e.generation == s.generation && end > s.acked {
		s.acked = end
	}
	s.mu.Unlock()
	poke(s.changed)
}

// Write queues input. It waits while more than a mebibyte is unacknowledged.
// On a read-only stream input goes nowhere. Write and Drain are for one
// goroutine at a time.
func (s *Stream) Write(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		s.mu.Lock()
		if s.ended != nil || s.exit != nil {
			s.mu.Unlock()
			return errEnded
		}
		if s.latest.ReadOnly {
			s.mu.Unlock()
			return nil
		}
		n := min(len(p), inputQueue-len(s.input))
		s.input = append(s.input, p[:n]...)
		p = p[n:]
		s.mu.Unlock()
		poke(s.changed)
		if len(p) == 0 {
			return nil
		}
		select {
		case <-s.room:
		case <-s.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// errEnded is what Write returns once nobody takes input any more.
var errEnded = problem.New(problem.SessionEnded, "the session has ended")

// Unsent is how many bytes of input are not acknowledged yet.
func (s *Stream) Unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.input)
}

// Drain waits until all input is in the session's terminal, or cannot get
// there any more, or ctx ends. It returns how much is left.
func (s *Stream) Drain(ctx context.Context) int {
	for {
		s.mu.Lock()
		left, over := len(s.input), s.ended != nil || s.exit != nil
		s.mu.Unlock()
		if left == 0 || over {
			return left
		}
		select {
		case <-s.room:
		case <-s.done:
		case <-ctx.Done():
			return left
		}
	}
}

// Attached is how the daemon answered, the last time it was asked.
func (s *Stream) Attached() wire.Attached {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

// Resize tells the size of the viewer's window.
func (s *Stream) Resize(cols, rows int) {
	s.mu.Lock()
	s.view = wire.View{Cols: cols, Rows: rows, Visible: cols > 0 && rows > 0}
	s.mu.Unlock()
	poke(s.changed)
}

// Close detaches and waits until everything of the stream has ended.
func (s *Stream) Close() {
	s.cancel()
	<-s.done
}

// poke makes the receiver of c look again; c is 1 deep, so a look that is
// still to come is enough.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// end closes the stream for good. Only the first reason counts.
func (s *Stream) end(err error) {
	if err == nil {
		err = io.EOF
	}
	s.mu.Lock()
	if s.ended == nil {
		s.ended = err
	}
	s.mu.Unlock()
	poke(s.readable)
	poke(s.room)
}

// final is an error after which the stream does not come back.
type final struct{ err error }

func (f *final) Error() string { return f.err.Error() }
func (f *final) Unwrap() error { return f.err }

func isFinal(err error) bool {
	_, ok := errors.AsType[*final](err)
	return ok
}

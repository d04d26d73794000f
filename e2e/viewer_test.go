package e2e

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ptyd/ptyd/internal/wire"
)

// ackEvery is how often a viewer acknowledges, in bytes, as the protocol asks.
const ackEvery = 32 << 10

// viewer is a client of one session that comes back after each cut, keeps a
// ledger of what it got, and sends typed bytes so that each arrives once. It
// follows the protocol's text, not the product's client.
type viewer struct {
	d        *Daemon
	session  string
	dialing  dialing
	attach   wire.Attach // template
	check    func(off uint64, data []byte) error
	patience time.Duration // how long the whole may take; 5 min
	slow     func()        // called before each read, for viewers that lag

	// The ledger; the running goroutine's own.
	started           bool
	epoch             wire.Epoch
	next              uint64 // offset of the next byte
	delivered         uint64 // bytes that came
	declared          uint64 // bytes that the daemon said will never come
	acked             uint64
	connects, resyncs int
	deltas, snapshots int
	text              []byte // what came, where keep is set
	keep              bool
	exit              *wire.Exit
	final             uint64 // final offset, from EXIT

	mu      sync.Mutex // guards what follows; held while INPUT is written, so that offsets go out in order
	conn    *conn      // the attached connection, nil while there is none
	live    net.Conn   // the socket in use from dialling on, for cut
	base    uint64     // input bytes that the daemon acknowledged
	pending []byte     // typed and not acknowledged, from base on
	room    *sync.Cond // pending became shorter
	stopped bool
	got     uint64 // copy of next for other goroutines
}

const channel = 1

func newViewer(d *Daemon, session, clientID string) *viewer {
	v := &viewer{d: d, session: session, dialing: dialing{ClientID: clientID}}
	v.attach = wire.Attach{Session: session, Cols: 80, Rows: 24, Visible: true, Kind: wire.KindInteractive}
	v.room = sync.NewCond(&v.mu)
	return v
}

// run follows the session until it has its end and every byte before it.
func (v *viewer) run() error {
	defer func() {
		v.mu.Lock()
		v.stopped = true
		v.room.Broadcast()
		v.mu.Unlock()
	}()
	if v.patience == 0 {
		v.patience = 5 * time.Minute
	}
	deadline := time.Now().Add(v.patience)
	for v.exit == nil {
		if time.Now().After(deadline) {
			return fmt.Errorf("no end after %v at offset %d, %d connections", v.patience, v.next, v.connects)
		}
		err := v.once()
		var fatal *ledgerError
		if errors.As(err, &fatal) {
			return err
		}
		var ce *closed
		if errors.As(err, &ce) && !wire.CloseCode(ce.Code).Retry() && ce.Code >= 4400 {
			return err
		}
	}
	if v.next != v.final {
		return fmt.Errorf("EXIT says the stream ends at %d, the viewer is at %d", v.final, v.next)
	}
	if v.delivered+v.declared != v.final {
		return fmt.Errorf("delivered %d + declared as lost %d != produced %d", v.delivered, v.declared, v.final)
	}
	return nil
}

// ledgerError is a broken promise of the stream: coming back does not mend it.
type ledgerError struct{ msg string }

func (e *ledgerError) Error() string { return e.msg }

func broken(format string, args ...any) error {
	return &ledgerError{"the stream is broken: " + fmt.Sprintf(format, args...)}
}

// once is one connection from dialling to its end.
func (v *viewer) once() error {
	c, _, err := v.d.dial(v.dialing)
	if err != nil {
		return err
	}
	defer c.close()
	v.connects++
	v.mu.Lock()
	v.live = c.raw
	at := v.base
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.conn, v.live = nil, nil
		v.mu.Unlock()
	}()
	a := v.attach
	a.InputOffset = at
	if v.started {
		a.Epoch, a.HaveOffset = &v.epoch, &v.next
	}
	if err := c.send(wire.Control(wire.TypeAttach, channel, 0, a)); err != nil {
		return err
	}
	for {
		if v.slow != nil {
			v.slow()
		}
		f, err := c.next()
		if err != nil {
			return err
		}
		if f.Channel != channel {
			continue
		}
		if done, err := v.frame(c, f); err != nil || done {
			return err
		}
	}
}

// frame handles one frame; done tells that the session has ended.
func (v *viewer) frame(c *conn, f wire.Frame) (done bool, err error) {
	switch f.Type {
	case wire.TypeAttached:
		a, err := wire.Parse[wire.Attached](f)
		if err != nil {
			return false, err
		}
		if err := v.attached(a, f.Offset); err != nil {
			return false, err
		}
		return false, v.resend(c, a)
	case wire.TypeResync:
		a, err := wire.Parse[wire.Attached](f)
		if err != nil {
			return false, err
		}
		v.resyncs++
		if a.Offset <= v.next || a.Skipped != a.Offset-v.next {
			return false, broken("RESYNC from %d to %d declares %d bytes", v.next, a.Offset, a.Skipped)
		}
		v.declared += a.Skipped
		v.next = a.Offset
	case wire.TypeSnapshot:
		if f.Flags&wire.FlagEnd != 0 {
			return false, v.ack(c)
		}
	case wire.TypeOutput:
		if f.Offset != v.next {
			return false, broken("OUTPUT at %d, expected %d (connection %d)", f.Offset, v.next, v.connects)
		}
		if v.check != nil {
			if err := v.check(f.Offset, f.Payload); err != nil {
				return false, broken("%v", err)
			}
		}
		if v.keep {
			v.text = append(v.text, f.Payload...)
		}
		v.next += uint64(len(f.Payload))
		v.delivered += uint64(len(f.Payload))
		v.mu.Lock()
		v.got = v.next
		v.mu.Unlock()
		if v.next-v.acked >= ackEvery {
			return false, v.ack(c)
		}
	case wire.TypeInputAck:
		v.inputAck(f.Offset)
	case wire.TypeExit:
		e, err := wire.Parse[wire.Exit](f)
		if err != nil {
			return false, err
		}
		v.exit, v.final = &e, f.Offset
		return true, v.ack(c)
	case wire.TypeDetached:
		return false, broken("DETACHED %s", f.Payload)
	}
	return false, nil
}

// attached enters the start of a stream into the ledger.
func (v *viewer) attached(a wire.Attached, header uint64) error {
	if a.Offset != header {
		return broken("ATTACHED says offset %d, its header %d", a.Offset, header)
	}
	switch {
	case !v.started:
		// What is no longer kept is declared by truncated_from; only the way
		// to the next safe point may be missing beyond it.
		if a.Offset > 0 && a.TruncatedFrom == 0 || a.Offset > a.TruncatedFrom+4096 {
			return broken("the first ATTACHED starts at %d, truncated_from %d", a.Offset, a.TruncatedFrom)
		}
		v.declared += a.Offset
		v.next = a.Offset
		v.snapshots++
	case a.Epoch != v.epoch:
		return broken("the epoch changed from %v to %v", v.epoch, a.Epoch)
	case a.Mode == wire.ModeDelta:
		if a.Offset != v.next {
			return broken("delta from %d, asked from %d", a.Offset, v.next)
		}
		v.deltas++
	default:
		if a.Offset < v.next {
			return broken("snapshot at %d repeats what the viewer at %d has", a.Offset, v.next)
		}
		if a.TruncatedFrom <= v.next && a.Offset > v.next {
			return broken("snapshot at %d though %d is still kept from %d on", a.Offset, v.next, a.TruncatedFrom)
		}
		v.declared += a.Offset - v.next
		v.next = a.Offset
		v.snapshots++
	}
	v.started, v.epoch, v.acked = true, a.Epoch, v.next
	return nil
}

func (v *viewer) ack(c *conn) error {
	v.acked = v.next
	return c.send(wire.Frame{Type: wire.TypeAck, Channel: channel, Offset: v.next})
}

// resend brings the input in line with what the daemon has, and opens the way
// for type.
func (v *viewer) resend(c *conn, a wire.Attached) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !a.ReadOnly {
		if a.InputOffset < 0 {
			return broken("the daemon does not know the client, %d bytes are unacknowledged", len(v.pending))
		}
		n := uint64(a.InputOffset)
		if n < v.base || n > v.base+uint64(len(v.pending)) {
			return broken("input_offset %d, the client has %d acknowledged and %d pending", n, v.base, len(v.pending))
		}
		v.trimLocked(n)
		if len(v.pending) > 0 {
			if err := c.send(wire.Frame{Type: wire.TypeInput, Channel: channel, Offset: v.base, Payload: v.pending}); err != nil {
				return err
			}
		}
	}
	v.conn = c
	return nil
}

func (v *viewer) trimLocked(n uint64) {
	v.pending = v.pending[n-v.base:]
	v.base = n
	v.room.Broadcast()
}

func (v *viewer) inputAck(n uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n > v.base {
		v.trimLocked(n)
	}
}

// typeIn queues input and sends it when there is a connection; it waits while
// 64 KiB are unacknowledged. It reports whether the viewer still runs.
func (v *viewer) typeIn(b []byte) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.pending)+len(b) > wire.MaxPayload && !v.stopped {
		v.room.Wait()
	}
	if v.stopped {
		return false
	}
	off := v.base + uint64(len(v.pending))
	v.pending = append(v.pending, b...)
	if v.conn != nil {
		// An error means that the connection is gone: the bytes go out with the next.
		_ = v.conn.send(wire.Frame{Type: wire.TypeInput, Channel: channel, Offset: off, Payload: b})
	}
	return true
}

// cut breaks the connection; it reports whether there was one.
func (v *viewer) cut() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live == nil {
		return false
	}
	_ = v.live.Close()
	v.live = nil
	return true
}

// position is the offset that the viewer has reached.
func (v *viewer) position() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.got
}

// pendingInput is how much input is not acknowledged yet.
func (v *viewer) pendingInput() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.pending)
}

// lockedText collects output for a test that looks at it meanwhile.
type lockedText struct {
	mu sync.Mutex // guards b
	b  []byte
}

func (l *lockedText) add(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, b...)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

package ws

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/wire"
)

const (
	windowInteractive = 256 << 10
	windowPreview     = 64 << 10
	// resyncFor is how much of a viewer's measured speed a jump may leave to catch up.
	resyncFor = 2 * time.Second
	resyncMin = 8 << 10
	// ackDelay is how long an INPUT_ACK waits for output that carries it.
	ackDelay = 5 * time.Millisecond
)

// channel is one viewer of one session on a connection.
type channel struct {
	c        *conn
	id       uint16
	s        *ptymgr.Session
	v        *ptymgr.Viewer
	readOnly bool
	window   uint64

	sent  atomic.Uint64 // written by the holder of the token
	acked atomic.Uint64 // written under conn.mu
	inAck atomic.Uint64 // input count to acknowledge + 1; 0: nothing new

	// Written by the holder of the token, under conn.mu where others read it.
	seq      uint64 // the last record shown; guarded by conn.mu
	live     bool   // guarded by conn.mu: ATTACHED is queued
	left     bool   // guarded by conn.mu: detached
	jumpFrom uint64 // guarded by conn.mu: the last jump left out [jumpFrom, jumpTo)
	jumpTo   uint64 // guarded by conn.mu
	exitSent bool   // of the token
	viewers  int    // of the token: the count last sent

	// Of the token: the viewer's speed, for a jump.
	rateAt    time.Time
	rateAcked uint64
}

// attach handles ATTACH.
func (c *conn) attach(f wire.Frame) error {
	if c.channel(f.Channel) != nil {
		return refuse(wire.CloseBadFrame, "channel %d is attached already", f.Channel)
	}
	a, err := wire.Parse[wire.Attach](f)
	if err != nil {
		return err
	}
	no := func(code wire.CloseCode, reason string) error {
		c.markDetached(f.Channel)
		c.send(wire.Control(wire.TypeDetached, f.Channel, 0, wire.Bye{Code: code, Reason: reason, Retry: code.Retry()}))
		return nil
	}
	c.mu.Lock()
	n := len(c.chans)
	c.mu.Unlock()
	if n >= maxChannels {
		return no(wire.CloseTooMany, "too many sessions on one connection")
	}
	if !auth.Allowed(c.p.Role, auth.SessionRead) {
		return no(wire.CloseForbidden, "the role "+string(c.p.Role)+" may not read sessions")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// One's own session of a name comes before another user's.
	info, err := c.srv.o.Manager.Resolve(ctx, c.p.UserID, a.Session)
	if problem.Is(err, problem.NotFound) && c.p.Role == auth.Admin {
		info, err = c.srv.o.Manager.Resolve(ctx, "", a.Session)
	}
	if err != nil {
		if problem.Is(err, problem.NotFound) {
			return no(wire.CloseNoSession, "there is no such session")
		}
		return err
	}
	s := c.srv.o.Manager.Session(info.ID)
	if s == nil {
		return no(wire.CloseNoSession, "the session's output is no longer kept: it is "+string(info.State))
	}
	switch a.Kind {
	case "":
		a.Kind = wire.KindInteractive
	case wire.KindInteractive, wire.KindPreview, wire.KindAgent:
	default:
		return refuse(wire.CloseBadFrame, "ATTACH kind %q", a.Kind)
	}
	ch := &channel{c: c, id: f.Channel, s: s, window: windowInteractive, viewers: -1,
		readOnly: a.ReadOnly || !auth.Allowed(c.p.Role, auth.SessionWrite)}
	if a.Kind == wire.KindPreview {
		ch.window = windowPreview
	}
	if a.Cols < 0 || a.Rows < 0 || a.Cols > ptymgr.MaxCols || a.Rows > ptymgr.MaxRows || (a.Cols == 0) != (a.Rows == 0) {
		return no(wire.CloseBadFrame, "size out of range")
	}
	ch.v, err = s.Attach(ch, ptymgr.ViewerOptions{Name: c.p.UserName, Sizes: a.Kind == wire.KindInteractive && !ch.readOnly,
		Visible: a.Visible, Cols: uint16(a.Cols), Rows: uint16(a.Rows)})
	if err != nil {
		return no(wire.CloseNoSession, "the session was removed")
	}
	at := ch.begin(a)
	failpoint.Hit("ws.attach.subscribed")
	if !ch.readOnly {
		at.InputOffset = s.Client(c.client, a.InputOffset, ch.inputAcked)
	}
	info = s.Info()
	at.State, at.Name = string(info.State), info.Name
	out := wire.Append(nil, wire.Control(wire.TypeAttached, ch.id, at.Offset, at))
	if at.Mode == wire.ModeSnapshot {
		out = wire.Append(out, wire.Frame{Type: wire.TypeSnapshot, Flags: wire.FlagEnd, Channel: ch.id, Payload: []byte("\x1bc")})
	}
	c.mu.Lock()
	c.control = append(c.control, out...)
	c.chans = append(c.chans[:len(c.chans):len(c.chans)], ch) // readers hold the old slice
	delete(c.detached, ch.id)
	ch.live = true
	wake := c.wantLocked()
	c.mu.Unlock()
	if wake {
		c.poke()
	}
	return nil
}

// begin settles where the channel's stream starts.
func (ch *channel) begin(a wire.Attach) wire.Attached {
	r := ch.s.Ring()
	head, oldest := r.Head(), r.Oldest()
	at := wire.Attached{Session: ch.s.ID(), Epoch: wire.Epoch(ch.s.Epoch()), Mode: wire.ModeDelta, Head: head, ReadOnly: ch.readOnly,
		TruncatedFrom: oldest, Window: int(ch.window)}
	if a.Epoch != nil && a.HaveOffset != nil && *a.Epoch == at.Epoch && *a.HaveOffset >= oldest && *a.HaveOffset <= head {
		at.Offset = *a.HaveOffset
	} else {
		from := oldest
		if a.Tail != nil && head-min(*a.Tail, head) > from {
			from = head - *a.Tail
		}
		at.Mode, at.Format = wire.ModeSnapshot, wire.FormatTail
		at.Offset, _ = r.SafeFrom(from)
	}
	size := ch.v.SizeAt(at.Offset)
	at.Cols, at.Rows, at.Owner, at.You = int(size.Cols), int(size.Rows), size.Owner, size.You
	ch.seq = size.Seq
	ch.sent.Store(at.Offset)
	ch.acked.Store(at.Offset)
	ch.rateAt, ch.rateAcked = time.Now(), at.Offset
	return at
}

// act handles a frame on the channel.
func (ch *channel) act(f wire.Frame) error {
	switch f.Type {
	case wire.TypeAck:
		if f.Offset > ch.sent.Load() {
			ch.detach(wire.CloseBadAck, "acknowledged what was never sent")
			return nil
		}
		ch.credit(f.Offset)
	case wire.TypeInput:
		if ch.readOnly {
			ch.detach(wire.CloseForbidden, "this viewer is read-only")
			return nil
		}
		ch.v.Use()
		err := ch.s.WriteInput(ch.c.client, f.Offset, f.Payload)
		var ie *ptymgr.InputError
		switch {
		case errors.As(err, &ie) && ie.Full:
			ch.detach(wire.CloseTooMany, ie.Error()) // the client comes back and sends it again
		case errors.As(err, &ie):
			ch.detach(wire.CloseBadInput, ie.Error())
		} // to a session that has ended nothing can be typed; EXIT says so
	case wire.TypeView:
		v, err := wire.Parse[wire.View](f)
		if err != nil {
			return err
		}
		if v.Cols < 0 || v.Rows < 0 || v.Cols > ptymgr.MaxCols || v.Rows > ptymgr.MaxRows || ch.v.SetView(uint16(v.Cols), uint16(v.Rows), v.Visible) != nil {
			ch.detach(wire.CloseBadFrame, "size out of range")
		}
	case wire.TypeClaim, wire.TypeSignal:
		if ch.readOnly {
			ch.detach(wire.CloseForbidden, "this viewer is read-only")
			return nil
		}
		if f.Type == wire.TypeClaim {
			ch.v.Claim()
			return nil
		}
		sg, err := wire.Parse[wire.Signal](f)
		if err != nil {
			return err
		}
		sig, err := ptymgr.ParseSignal(sg.Signal)
		if err != nil {
			ch.detach(wire.CloseBadFrame, "no such signal")
			return nil
		}
		ch.v.Use()
		_ = ch.s.Signal(sig) // it may have ended meanwhile; EXIT says so
	case wire.TypeDetach:
		ch.detach(wire.CloseNormal, "")
	default:
		return refuse(wire.CloseBadFrame, "%v is not for the client to send", f.Type)
	}
	return nil
}

// inputAcked is called by ptymgr when input reached the terminal's queue.
func (ch *channel) inputAcked(n uint64) {
	if ch.inAck.Swap(n+1) == 0 {
		ch.c.ackTimer.Reset(ackDelay)
	}
}

func (ch *channel) takeInputAck() (uint64, bool) {
	n := ch.inAck.Swap(0)
	return n - 1, n != 0
}

// credit takes an acknowledgement of everything below off.
func (ch *channel) credit(off uint64) {
	c := ch.c
	c.mu.Lock()
	if off < ch.jumpTo {
		// It was sent before a jump: what the jump left out counts as taken.
		off = ch.jumpTo - (ch.jumpFrom - min(off, ch.jumpFrom))
	}
	moved := off > ch.acked.Load()
	if moved {
		ch.acked.Store(off)
	}
	wake := moved && ch.sent.Load() < ch.s.Ring().Head() && c.wantLocked()
	c.mu.Unlock()
	if wake {
		c.poke()
	}
}

// jump moves the window over what is left out: the bytes in flight stay in flight.
func (ch *channel) jump(from, to uint64) {
	ch.c.mu.Lock()
	ch.acked.Store(ch.acked.Load() + (to - from))
	ch.jumpFrom, ch.jumpTo = from, to
	ch.c.mu.Unlock()
}

// Changed implements ptymgr.Follower.
func (ch *channel) Changed() {
	c := ch.c
	c.mu.Lock()
	wake := !ch.left && c.wantLocked()
	c.mu.Unlock()
	if wake {
		c.poke()
	}
}

// Position implements ptymgr.Follower.
func (ch *channel) Position() uint64 { return ch.sent.Load() }

// detach ends the channel from our side.
func (ch *channel) detach(code wire.CloseCode, reason string) {
	c := ch.c
	c.mu.Lock()
	if ch.left {
		c.mu.Unlock()
		return
	}
	chans := make([]*channel, 0, len(c.chans))
	for _, o := range c.chans {
		if o != ch {
			chans = append(chans, o)
		}
	}
	c.chans = chans
	c.mu.Unlock()
	ch.leave()
	c.markDetached(ch.id)
	c.send(wire.Control(wire.TypeDetached, ch.id, 0, wire.Bye{Code: code, Reason: reason, Retry: code.Retry()}))
}

func (ch *channel) leave() {
	ch.c.mu.Lock()
	was := ch.left
	ch.left = true
	ch.c.mu.Unlock()
	if !was {
		ch.v.Detach()
	}
}

// fill adds what the viewer lacks to the message, in the stream's order. The
// caller holds the token. It reports whether output moved.
func (ch *channel) fill(m *message) (moved bool) {
	if at, ok := ch.takeInputAck(); ok {
		m.frame(wire.Frame{Type: wire.TypeInputAck, Channel: ch.id, Offset: at})
	}
	ring := ch.s.Ring()
	for !m.full() {
		sent := ch.sent.Load()
		rec, more := ch.v.NextRecord(ch.seq)
		if more && rec.Offset <= sent {
			m.frame(wire.Control(wire.TypeSize, ch.id, rec.Offset, wire.Size{Cols: int(rec.Cols), Rows: int(rec.Rows), Owner: rec.Owner, You: rec.You}))
			ch.show(rec.Seq)
			continue
		}
		// The end is asked for before the head: what comes after it is all there is.
		ended := ring.Sealed()
		room := ch.window - min(sent-ch.acked.Load(), ch.window)
		n := min(uint64(m.room()), room, ring.Head()-min(sent, ring.Head()))
		if more {
			n = min(n, rec.Offset-sent)
		}
		if n == 0 {
			if ended && sent == ring.Head() {
				ch.exit(m)
			}
			break
		}
		k, err := m.output(ch.id, sent, int(n), func(p []byte) (int, error) { return ring.ReadAt(p, sent) })
		var ev *buffer.EvictedError
		switch {
		case errors.As(err, &ev):
			ch.resync(m)
		case err != nil, k == 0: // closed: the session was removed
			n = 0
		default:
			ch.sent.Store(sent + uint64(k))
			moved = true
		}
		if n == 0 {
			break
		}
	}
	if ch.s.Removed() {
		ch.detach(wire.CloseRemoved, "the session was removed")
	} else if n := ch.s.Viewers(); n != ch.viewers && !m.full() {
		ch.viewers = n
		f := wire.Control(wire.TypeViewers, ch.id, 0, wire.Viewers{Count: n})
		f.Flags = wire.FlagOptional
		m.frame(f)
	}
	return moved
}

func (ch *channel) show(seq uint64) {
	ch.c.mu.Lock()
	ch.seq = seq
	ch.c.mu.Unlock()
}

func (ch *channel) exit(m *message) {
	if ch.exitSent {
		return
	}
	info := ch.s.Info()
	if !info.State.Ended() {
		return // sealed a moment before the state: Changed comes
	}
	ch.exitSent = true
	e := wire.Exit{Code: info.ExitCode, State: string(info.State)}
	if info.Signal != "" {
		e.Signal = &info.Signal
	}
	m.frame(wire.Control(wire.TypeExit, ch.id, ch.sent.Load(), e))
}

// resync jumps: the ring has moved past what the viewer was sent.
func (ch *channel) resync(m *message) {
	ring := ch.s.Ring()
	sent, acked := ch.sent.Load(), ch.acked.Load()
	back := uint64(ch.window)
	if d := time.Since(ch.rateAt); d > 0 {
		rate := float64(acked-min(ch.rateAcked, acked)) / d.Seconds()
		back = min(max(uint64(rate*resyncFor.Seconds()), resyncMin), back)
	}
	head := ring.Head()
	at, _ := ring.SafeFrom(max(head-min(back, head), sent))
	size := ch.v.SizeAt(at)
	ch.c.srv.resyncs.Add(1)
	ch.c.srv.skipped.Add(at - sent)
	m.frame(wire.Control(wire.TypeResync, ch.id, at, wire.Attached{Session: ch.s.ID(), Epoch: wire.Epoch(ch.s.Epoch()), Mode: wire.ModeSnapshot,
		Offset: at, Head: head, Cols: int(size.Cols), Rows: int(size.Rows), Owner: size.Owner, You: size.You, State: string(ptymgr.Running),
		ReadOnly: ch.readOnly, TruncatedFrom: ring.Oldest(), Skipped: at - sent, Window: int(ch.window), Format: wire.FormatTail}))
	// CAN aborts a sequence that the jump has cut.
	m.frame(wire.Frame{Type: wire.TypeSnapshot, Flags: wire.FlagEnd, Channel: ch.id, Payload: []byte{0x18}})
	ch.show(size.Seq)
	ch.sent.Store(at)
	ch.jump(sent, at)
	ch.rateAt, ch.rateAcked = time.Now(), ch.acked.Load()
}

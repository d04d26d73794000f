package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

const (
	// firstRetry and lastRetry bound the pause between two tries: short at
	// first, because a daemon that restarts is back within a second.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// pingInterval is how often this side asks for life when the daemon names
	// no interval of its own; three silent ones mean that the peer is gone.
	pingInterval = 20 * time.Second
)

// run keeps the stream connected until it ends. first gets the outcome of the
// first try to attach.
func (s *Stream) run(ctx context.Context, first chan<- error) {
	defer close(s.done)
	pause := firstRetry
	for {
		attached, err := s.connect(ctx, first)
		if attached {
			first = nil
			pause = firstRetry
		}
		switch {
		case err == nil || ctx.Err() != nil:
			s.end(nil)
			return
		case isFinal(err) || first != nil:
			if f, ok := errors.AsType[*final](err); ok {
				err = f.err
			}
			s.end(err)
			if first != nil {
				first <- err
			}
			return
		}
		s.mu.Lock()
		if attached || s.lastLoss.IsZero() {
			s.lastLoss = time.Now()
		}
		away := time.Since(s.lastLoss)
		s.mu.Unlock()
		if attached && s.opt.OnConnection != nil {
			s.opt.OnConnection(false, err)
		}
		if away >= s.opt.Reconnect {
			s.end(problem.New(problem.Unavailable, "the connection to the daemon was lost").
				WithHint("the session may still be there: see ptyd ls").Because(err))
			return
		}
		// Half of the pause is chance, so that all viewers of a daemon that
		// restarts do not come at the same moment.
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, lastRetry)
	}
}

// connect dials, attaches and follows one connection to its end. attached tells
// whether the daemon accepted. A nil error means that the session has ended.
func (s *Stream) connect(ctx context.Context, first chan<- error) (attached bool, err error) {
	dctx, cancel := context.WithTimeoutCause(ctx, connectTimeout,
		problem.New(problem.Unavailable, "the daemon did not answer within %s", connectTimeout))
	defer cancel()
	conn, err := s.dial(dctx, s.hello)
	if err != nil {
		if !Lost(err) {
			err = &final{err}
		}
		return false, err
	}
	// Next ends by Close alone, so the end of ctx must close, and so must
	// silence. Both are stopped, and waited for, before this returns.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = conn.Close(); close(closed) })
	defer func() {
		if !stop() {
			<-closed
		}
		_ = conn.Close()
	}()
	watch := time.AfterFunc(connectTimeout, func() { _ = conn.Close() })
	defer watch.Stop()

	if err := conn.Send(s.attachFrame()); err != nil {
		return false, lost(err)
	}
	ping := pingInterval
	sending := make(chan struct{}) // closed when send has ended
	finish := make(chan struct{})
	defer func() {
		if attached {
			close(finish)
			_ = conn.Close() // send may be waiting for the peer to take a frame
			<-sending
		}
	}()
	for {
		f, err := conn.Next()
		if err != nil {
			return attached, lost(err)
		}
		watch.Reset(3 * ping)
		over, err := s.take(ctx, f)
		if err != nil || over {
			return attached, err
		}
		if f.Type == wire.TypeAttached && !attached {
			attached = true
			go func() {
				defer close(sending)
				s.send(conn, finish, ping)
			}()
			if first != nil {
				first <- nil
				first = nil
			} else if s.opt.OnConnection != nil {
				s.opt.OnConnection(true, nil)
			}
		}
	}
}

// ended is what a daemon's word of the end means.
func ended(b wire.Bye) error {
	if b.Retry {
		return closeError(b)
	}
	return &final{closeError(b)}
}

// lost is what the end of a connection means.
func lost(err error) error {
	if bye, ok := errors.AsType[*goodbye](err); ok {
		return ended(bye.Goodbye)
	}
	if bad, ok := errors.AsType[*wire.Error](err); ok {
		return &final{problem.New(problem.Internal, "the daemon broke the protocol: %s", bad.Reason).Because(err)}
	}
	return problem.New(problem.Unavailable, "the connection was lost").Because(err)
}

// attachFrame is the ATTACH that goes on where the stream is.
func (s *Stream) attachFrame() wire.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := wire.Attach{
		Session: s.opt.Session, Kind: s.opt.Kind, ReadOnly: s.opt.ReadOnly, Tail: s.opt.Tail,
		Cols: s.view.Cols, Rows: s.view.Rows, Visible: s.view.Visible, InputOffset: s.inputBase,
	}
	s.viewSent = s.view
	if s.placed {
		p := s.position
		a.Epoch, a.HaveOffset = &p.Epoch, &p.Offset
	}
	return wire.Control(wire.TypeAttach, channel, 0, a)
}

// take handles one frame. over means that the session has ended.
func (s *Stream) take(ctx context.Context, f wire.Frame) (over bool, err error) {
	switch f.Type {
	case wire.TypeAttached, wire.TypeResync:
		a, err := wire.Parse[wire.Attached](f)
		if err != nil {
			return false, &final{err}
		}
		return false, s.attached(ctx, f.Type, a)
	case wire.TypeSnapshot:
		return false, s.snapshot(ctx, f)
	case wire.TypeOutput:
		return false, s.output(ctx, f)
	case wire.TypeInputAck:
		return false, s.inputAck(f.Offset)
	case wire.TypeSize:
		v, err := wire.Parse[wire.Size](f)
		if err != nil {
			return false, &final{err}
		}
		return false, s.push(ctx, Event{Kind: EventSize, Offset: f.Offset, Size: v})
	case wire.TypeExit:
		v, err := wire.Parse[wire.Exit](f)
		if err != nil {
			return false, &final{err}
		}
		s.mu.Lock()
		s.exit = &v
		s.mu.Unlock()
		return true, s.push(ctx, Event{Kind: EventExit, Offset: f.Offset, Exit: v})
	case wire.TypeDetached:
		bye, err := wire.Parse[wire.Bye](f)
		if err != nil {
			return false, &final{err}
		}
		return false, ended(bye)
	}
	return false, nil // PONG, EVENT, VIEWERS and what a newer daemon adds
}

// attached begins, or goes on with, the stream of output.
func (s *Stream) attached(ctx context.Context, t wire.Type, a wire.Attached) error {
	kind := EventAttached
	if t == wire.TypeResync {
		kind = EventResync
	}
	s.mu.Lock()
	lost := 0
	if t == wire.TypeAttached {
		s.latest = a
		if a.ReadOnly {
			s.input, s.inputSent = nil, s.inputBase
		} else {
			lost = s.resumeInputLocked(a.InputOffset)
		}
	}
	switch {
	case a.Mode == wire.ModeSnapshot:
		if t == wire.TypeAttached && s.placed && s.position.Epoch == a.Epoch && a.Offset > s.position.Offset {
			a.Skipped = a.Offset - s.position.Offset // while there was no connection
		}
		s.generation++
		s.acked, s.placed, s.open = 0, false, true
		s.snap = Event{Kind: EventSnapshot, Offset: a.Offset, Attached: a, Resync: t == wire.TypeResync, generation: s.generation}
	case !s.placed || s.position != (Position{Epoch: a.Epoch, Offset: a.Offset}):
		s.mu.Unlock()
		return &final{problem.New(problem.Internal, "the daemon went on at offset %d of %s, which nobody asked for", a.Offset, a.Epoch)}
	}
	generation := s.generation
	s.mu.Unlock()
	if lost > 0 {
		if err := s.push(ctx, Event{Kind: EventInputLost, Lost: lost}); err != nil {
			return err
		}
	}
	return s.push(ctx, Event{Kind: kind, Offset: a.Offset, Attached: a, generation: generation})
}

// snapshot queues a piece of a snapshot; the last one settles the position.
func (s *Stream) snapshot(ctx context.Context, f wire.Frame) error {
	s.mu.Lock()
	e, open := s.snap, s.open
	e.Last = f.Flags&wire.FlagEnd != 0
	if open && e.Last {
		s.position, s.placed = Position{Epoch: e.Attached.Epoch, Offset: e.Offset}, true
		s.open = false
	}
	s.mu.Unlock()
	if !open {
		return &final{problem.New(problem.Internal, "the daemon sent a snapshot that it had not announced")}
	}
	e.Data = append([]byte(nil), f.Payload...)
	return s.push(ctx, e)
}

// output queues output, which must go on exactly where the stream is.
func (s *Stream) output(ctx context.Context, f wire.Frame) error {
	s.mu.Lock()
	if !s.placed || s.position.Offset != f.Offset {
		s.mu.Unlock()
		return &final{problem.New(problem.Internal, "the daemon sent output at offset %d, which does not follow", f.Offset)}
	}
	s.position.Offset += uint64(len(f.Payload))
	generation := s.generation
	s.mu.Unlock()
	return s.push(ctx, Event{
		Kind: EventOutput, Offset: f.Offset, generation: generation, Data: append([]byte(nil), f.Payload...),
	})
}

// push queues an event; it waits while too many bytes wait already.
func (s *Stream) push(ctx context.Context, e Event) error {
	for {
		s.mu.Lock()
		if s.queued == 0 || s.queued+len(e.Data) <= outputQueue {
			s.queue = append(s.queue, e)
			s.queued += len(e.Data)
			s.mu.Unlock()
			poke(s.readable)
			return nil
		}
		s.mu.Unlock()
		select {
		case <-s.taken:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

package ptymgr

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/failpoint"
)

// scribe writes the ends and the sizes of sessions to the store, off the
// reading thread. Memory is ahead of the rows by as much as one commit takes;
// a write that fails (a full disk) is tried again until it succeeds.
type scribe struct {
	m *Manager

	mu    sync.Mutex // guards all below
	ends  []*Session
	sizes map[*Session]struct{}
	doneC map[*Session]chan struct{} // who waits for an end to be written
	exits bool                       // many processes ended: the vault may forget some
	quit  bool

	wake chan struct{}
	wg   sync.WaitGroup
}

func newScribe(m *Manager) *scribe {
	sc := &scribe{m: m, sizes: map[*Session]struct{}{}, doneC: map[*Session]chan struct{}{}, wake: make(chan struct{}, 1)}
	sc.wg.Go(sc.run)
	return sc
}

func (sc *scribe) poke() {
	select {
	case sc.wake <- struct{}{}:
	default:
	}
}

// end queues the end of s.
func (sc *scribe) end(s *Session) {
	sc.mu.Lock()
	sc.ends = append(sc.ends, s)
	if sc.doneC[s] == nil {
		sc.doneC[s] = make(chan struct{})
	}
	sc.mu.Unlock()
	sc.poke()
}

// size queues the size of s; a storm of resizes is one write a second.
func (sc *scribe) size(s *Session) {
	sc.mu.Lock()
	first := len(sc.sizes) == 0
	sc.sizes[s] = struct{}{}
	sc.mu.Unlock()
	if first {
		sc.poke()
	}
}

// wait returns when the end of s, which has ended, is in the store.
func (sc *scribe) wait(ctx context.Context, s *Session) error {
	<-s.done
	sc.mu.Lock()
	c := sc.doneC[s]
	sc.mu.Unlock()
	if c == nil {
		return nil // written
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forget has the vault forget the ends of processes that nobody asks for: those
// of stages and orphans fill its record, whether sessions end or not.
func (sc *scribe) forget() {
	sc.mu.Lock()
	sc.exits = true
	sc.mu.Unlock()
	sc.poke()
}

func (sc *scribe) run() {
	const sizeEvery = time.Second
	var sizeAt, retry <-chan time.Time
	for {
		select {
		case <-sc.wake:
		case <-sizeAt:
			sizeAt = nil
			sc.writeSizes()
		case <-retry:
			retry = nil
		}
		failed := !sc.writeEnds()
		sc.mu.Lock()
		sizes, quit, exits := len(sc.sizes), sc.quit, sc.exits
		more := !failed && len(sc.ends) > 0 // they came while the others were written
		sc.exits = false
		sc.mu.Unlock()
		if exits {
			sc.m.forgetExits()
		}
		if quit && more {
			sc.poke()
			continue
		}
		if quit {
			sc.writeSizes()
			return
		}
		if failed && retry == nil {
			retry = time.After(time.Second)
		}
		if sizes > 0 && sizeAt == nil {
			sizeAt = time.After(sizeEvery)
		}
	}
}

// writeEnds reports whether all that was queued is written.
func (sc *scribe) writeEnds() bool {
	sc.mu.Lock()
	ends := sc.ends
	sc.ends = nil
	sc.mu.Unlock()
	for i, s := range ends {
		s.mu.Lock()
		r := s.rec
		s.mu.Unlock()
		_, err := sc.m.store.MarkEnded(context.Background(), s.id, r.State, r.ExitCode, r.Signal, r.EndedAt, r.FinalOffset, r.Error)
		if err == nil {
			failpoint.Hit("ptymgr.end.recorded")
			sc.m.putBy(s)
			sc.m.groups.drop(s.id) // last: its end may have been told by it
		}
		sc.mu.Lock()
		if err != nil {
			sc.ends = append(ends[i:len(ends):len(ends)], sc.ends...)
			sc.mu.Unlock()
			s.logger().Error("record the end of a session", zap.Error(err))
			return false
		}
		delete(sc.sizes, s)
		if c := sc.doneC[s]; c != nil {
			delete(sc.doneC, s)
			close(c)
		}
		sc.mu.Unlock()
	}
	return true
}

func (sc *scribe) writeSizes() {
	sc.mu.Lock()
	sizes := sc.sizes
	sc.sizes = map[*Session]struct{}{}
	sc.mu.Unlock()
	for s := range sizes {
		i := s.Info()
		if err := sc.m.store.ResizeSession(context.Background(), s.id, i.Cols, i.Rows); err != nil {
			s.logger().Warn("record a session's size", zap.Error(err))
		}
	}
}

// stop writes what is queued and ends the goroutine.
func (sc *scribe) stop() error {
	sc.mu.Lock()
	sc.quit = true
	sc.mu.Unlock()
	sc.poke()
	sc.wg.Wait()
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if n := len(sc.ends); n > 0 {
		sc.m.log.Error("ends of sessions could not be recorded; they will show as lost", zap.Int("count", n))
	}
	return nil
}

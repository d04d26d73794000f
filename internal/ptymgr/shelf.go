package ptymgr

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/buffer"
)

const (
	// shelfMost is how many sessions from the disk are held in memory while
	// nobody looks at them, and shelfTime for how long.
	shelfMost = 8
	shelfTime = time.Minute
)

// shelf holds ended sessions whose output was read from the disk again, so that
// they are read like any other. One load runs for each, however many ask.
type shelf struct {
	m *Manager

	mu    sync.Mutex // guards all below, and the fields of its cells
	cells map[string]*shelved
	shut  bool
}

// shelved is one session, or the load of one.
type shelved struct {
	done  chan struct{} // closed once s and err are set
	s     *Session      // nil where nothing is kept
	err   error
	users int
	used  time.Time
}

// get returns the session of a row that is only on the disk, nil where nothing
// of its output is kept. release must be called.
func (sh *shelf) get(ctx context.Context, row Record) (s *Session, release func(), err error) {
	release = func() {}
	if sh.m.archive == nil || !row.State.Ended() {
		return nil, release, nil
	}
	sh.mu.Lock()
	c := sh.cells[row.ID]
	if c == nil {
		if sh.shut {
			sh.mu.Unlock()
			return nil, release, nil
		}
		c = &shelved{done: make(chan struct{})}
		sh.cells[row.ID] = c
		c.users++
		sh.mu.Unlock()
		c.s, c.err = sh.load(row)
		close(c.done)
	} else {
		c.users++
		sh.mu.Unlock()
		select {
		case <-c.done:
		case <-ctx.Done():
			sh.release(row.ID, c)
			return nil, release, ctx.Err()
		}
	}
	if c.s == nil {
		sh.release(row.ID, c)
		return nil, release, c.err
	}
	return c.s, func() { sh.release(row.ID, c) }, nil
}

// release gives a use back; what is of no use goes.
func (sh *shelf) release(id string, c *shelved) {
	sh.mu.Lock()
	c.users--
	c.used = time.Now()
	if c.s == nil && sh.cells[id] == c {
		delete(sh.cells, id) // errors and absence are not kept
	}
	sh.mu.Unlock()
	sh.trim(shelfMost, 0)
}

// load reads a session from the disk.
func (sh *shelf) load(row Record) (*Session, error) {
	saved, err := sh.m.archive.dir.Find(row.ID, row.Epoch)
	if err != nil {
		return nil, nil // there is no directory: nothing is kept
	}
	for _, d := range saved.Damage {
		sh.m.log.Warn("a checkpoint is damaged", zap.String("session", row.ID), zap.Error(d))
	}
	if saved.Empty() {
		return nil, nil
	}
	limit := min(max(int64(saved.End-saved.Start), buffer.MinLimit), buffer.MaxLimit)
	ring, err := buffer.Restore(row.Epoch, limit, saved.Start, saved.Safe, func(give func([]byte) error) error { return saved.Each(give) })
	if err != nil {
		return nil, outOf(err)
	}
	s := sh.m.newSession(row, ring, ring.Limit(), "")
	s.in.closed = true
	close(s.done)
	return s, nil
}

// trim lets go of sessions that nobody uses: beyond most the one that was used
// longest ago, and all that were not used for age, if it is not 0.
func (sh *shelf) trim(most int, age time.Duration) {
	for {
		sh.mu.Lock()
		id, oldest := "", (*shelved)(nil)
		for i, c := range sh.cells {
			if c.users == 0 && c.s.Viewers() == 0 && (oldest == nil || c.used.Before(oldest.used)) {
				id, oldest = i, c
			}
		}
		if oldest == nil || len(sh.cells) <= most && (age == 0 || time.Since(oldest.used) < age) {
			sh.mu.Unlock()
			return
		}
		delete(sh.cells, id)
		sh.mu.Unlock()
		oldest.s.putAway()
	}
}

// drop forgets a session that was removed.
func (sh *shelf) drop(id string) {
	sh.mu.Lock()
	c := sh.cells[id]
	delete(sh.cells, id)
	sh.mu.Unlock()
	if c != nil {
		<-c.done
		if c.s != nil {
			c.s.putAway()
		}
	}
}

// peek is the session where it is in memory.
func (sh *shelf) peek(id string) *Session {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c := sh.cells[id]; c != nil && isClosed(c.done) {
		return c.s
	}
	return nil
}

// close lets go of all.
func (sh *shelf) close() {
	sh.mu.Lock()
	cells := sh.cells
	sh.cells, sh.shut = nil, true
	sh.mu.Unlock()
	for _, c := range cells {
		<-c.done
		if c.s != nil {
			c.s.putAway()
		}
	}
}

// putAway frees the memory of a session that is not in the map any more;
// viewers that it still has are told that it is gone.
func (s *Session) putAway() {
	s.mu.Lock()
	s.removed = true
	s.mu.Unlock()
	s.notify()
	if err := s.ring.Close(); err != nil {
		s.logger().Warn("free a session's memory", zap.Error(err))
	}
}

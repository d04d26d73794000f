package ptymgr

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// RefuseSignals lets the kernel refuse all signals until the returned function
// is called.
func RefuseSignals() (undo func()) {
	was := pidfdSignal
	pidfdSignal = func(int, unix.Signal) error { return unix.EPERM }
	return func() { pidfdSignal = was }
}

// Written returns when the end of an ended session is in the store.
func (m *Manager) Written(ctx context.Context, id string) error {
	return m.scribe.wait(ctx, m.Session(id))
}

// RemoveOld is one sweep.
func (m *Manager) RemoveOld(ctx context.Context, after time.Duration, batch int) error {
	return m.removeOld(ctx, after, batch)
}

// BirthOf is what tells a process that started at these clock ticks of this boot.
func BirthOf(start uint64) string { return birthOf(start) }

// StartOf is when a process started, in clock ticks since boot.
func StartOf(pid int) uint64 {
	p, _ := readStat(pid)
	return p.start
}

// Await has the reading thread look at a session again soon, as input that waits
// does, and returns when it has.
func (m *Manager) Await(id string) {
	s, seen := m.Session(id), make(chan struct{})
	m.loop.do(func() { m.loop.timed[s.rd] = struct{}{} })
	m.loop.do(func() { m.loop.do(func() { close(seen) }) })
	<-seen
}

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

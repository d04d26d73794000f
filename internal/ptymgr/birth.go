package ptymgr

import (
	"context"
	"sync"

	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/problem"
)

// birth writes a new session's row beside the making of its process: a commit
// waits for the disk, a start waits for other processes, and who creates a
// session would wait for both. Until the row is there the process waits at its
// gate; a daemon that dies before leaves descriptors without a row, which the
// next one drops, and a process that never ran anything.
type birth struct {
	m      *Manager
	invent bool // a name, and another one where it is taken

	inserted func() error // waits for insert; nil where the row is there
	row      Record       // as it is in the store; once inserted returned
	existing bool         // the row is an earlier one of the same key

	began bool       // mark was called
	done  chan error // of mark
}

// insert begins to write the row. inserted must be called.
func (b *birth) insert(ctx context.Context, key, digest string, limits Limits) {
	done := make(chan error, 1)
	b.inserted = sync.OnceValue(func() error { return <-done })
	go func() { done <- b.create(ctx, key, digest, limits) }()
}

func (b *birth) create(ctx context.Context, key, digest string, limits Limits) error {
	for try := 0; ; try++ {
		if b.invent {
			b.row.Name = inventName(b.row.Argv[0])
		}
		got, existing, err := b.m.store.CreateSession(ctx, b.row, key, digest, limits)
		if b.invent && problem.Is(err, problem.NameTaken) && try < 20 {
			continue
		}
		if err != nil {
			return err
		}
		b.row, b.existing = got, existing
		if !existing {
			failpoint.Hit("ptymgr.create.inserted")
		}
		return nil
	}
}

// alone tells that the row must be there before anything else is made: its key
// may be an earlier session's, which shall be met also after a crash, or a
// limit may be reached, and what is refused must cost little.
func (b *birth) alone(key string, l Limits) bool {
	n := int(b.m.running.Load())
	return key != "" || l.PerOwner > 0 && n >= l.PerOwner || l.Total > 0 && n >= l.Total
}

// of is the row that is in the store, with what is known since of the process.
func (b *birth) of(r Record) Record {
	row := b.row
	row.State, row.PID, row.StartedAt, row.Birth = r.State, r.PID, r.StartedAt, r.Birth
	return row
}

// mark begins to write that the process of r runs. marked must be called.
func (b *birth) mark(ctx context.Context, r Record) {
	b.began, b.done = true, make(chan error, 1)
	go func() { b.done <- b.m.store.MarkRunning(ctx, r.ID, r.PID, r.StartedAt, r.Birth) }()
}

// marked waits for mark, if that began.
func (b *birth) marked() error {
	if !b.began {
		return nil
	}
	return <-b.done
}

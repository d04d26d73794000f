package store

import (
	"context"
	"errors"
	"sync"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/problem"
)

// maxQueued bounds what waits for a commit. More waits only if the disk has
// stopped answering, and then telling callers is better than memory.
const maxQueued = 4096

// job is one write that shares a transaction with others.
type job struct {
	run  func(*txn) error
	done chan<- error // buffered; nil when nobody waits
	key  string       // "" or what makes it redundant with a queued one
}

// batcher commits jobs in groups: while one group is being written, the next
// one gathers. It owns one goroutine, which close ends.
type batcher struct {
	flush func([]job)
	wake  chan struct{} // holds a token while the queue may not be empty
	ended chan struct{} // closed when the goroutine has ended

	// mu guards all below.
	mu     sync.Mutex
	queue  []job
	keys   map[string]struct{}
	closed bool
}

func newBatcher(flush func([]job)) *batcher {
	b := &batcher{
		flush: flush,
		wake:  make(chan struct{}, 1),
		ended: make(chan struct{}),
		keys:  make(map[string]struct{}),
	}
	go b.loop()
	return b
}

// add queues j.
func (b *batcher) add(j job) error {
	if err := b.enqueue(j); err != nil {
		return err
	}
	b.poke()
	return nil
}

func (b *batcher) enqueue(j job) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return problem.New(problem.Unavailable, "the database is closed")
	}
	if len(b.queue) >= maxQueued {
		return problem.New(problem.Unavailable, "the database does not keep up")
	}
	if j.key != "" {
		if _, queued := b.keys[j.key]; queued {
			return nil
		}
		b.keys[j.key] = struct{}{}
	}
	b.queue = append(b.queue, j)
	return nil
}

func (b *batcher) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *batcher) loop() {
	defer close(b.ended)
	for range b.wake {
		jobs, closed := b.take()
		if len(jobs) > 0 {
			b.flush(jobs)
		}
		if closed {
			return // nothing was added after closed was set
		}
	}
}

func (b *batcher) take() (jobs []job, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs, b.queue = b.queue, nil
	clear(b.keys)
	return jobs, b.closed
}

// close flushes what is queued and waits for the goroutine's end.
func (b *batcher) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.poke()
	<-b.ended
}

// flush commits jobs in one transaction and tells their waiters. Should it
// fail for a reason of one job, the others must not suffer: they are written
// one by one.
func (s *Store) flush(jobs []job) {
	ctx := context.Background()
	err := s.write(ctx, "commit a group", func(tx *txn) error {
		for _, j := range jobs {
			if err := j.run(tx); err != nil {
				return err
			}
		}
		return nil
	})
	for _, j := range jobs {
		jobErr := err
		if err != nil && len(jobs) > 1 && s.d.kind(err) == errOther {
			jobErr = s.write(ctx, "commit one of a group", j.run)
		}
		if j.done != nil {
			j.done <- jobErr
		} else if jobErr != nil {
			s.log.Warn("a queued write failed", zap.Error(jobErr))
		}
	}
}

// commit queues run and waits until it is committed. A caller who gives up
// leaves it queued.
func (b *batcher) commit(ctx context.Context, run func(*txn) error) error {
	done := make(chan error, 1)
	if err := b.add(job{run: run, done: done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), errors.New("waiting for the commit; it will happen"))
	}
}

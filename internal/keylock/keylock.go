package keylock

import (
	"context"
	"sync"
)

// Locks is a set of locks by key. Its zero value is ready. It must not be
// copied after the first use.
type Locks struct {
	// mu guards entries and their users.
	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	held  chan struct{} // holds a token while the key is locked
	users int           // who holds it or waits for it; at 0 the entry goes
}

// Lock locks key, or returns the cause of ctx's end if that comes first.
// Waiters are served in the order they came. unlock must be called once; more
// calls do nothing.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	// With both ready, select picks either: an ended context must never win a
	// lock.
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	e := l.enter(key)
	select {
	case e.held <- struct{}{}:
		return sync.OnceFunc(func() {
			<-e.held
			l.leave(key, e)
		}), nil
	case <-ctx.Done():
		l.leave(key, e)
		return nil, context.Cause(ctx)
	}
}

// Len returns how many keys are locked or waited for.
func (l *Locks) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

func (l *Locks) enter(key string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil {
		if l.entries == nil {
			l.entries = make(map[string]*entry)
		}
		e = &entry{held: make(chan struct{}, 1)}
		l.entries[key] = e
	}
	e.users++
	return e
}

func (l *Locks) leave(key string, e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.users--
	if e.users == 0 {
		delete(l.entries, key)
	}
}

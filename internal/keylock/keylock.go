package keylock

import (
	"context"
	"sync"
)

// Locks is a set of mutual-exclusion locks named by strings. A lock exists as
// long as somebody holds it or waits for it, so the set does not grow with the
// keys that were ever used. The zero value is ready.
type Locks struct {
	mu    sync.Mutex // guards locks and the counts in it
	locks map[string]*lock
}

type lock struct {
	users int           // holders and waiters
	sem   chan struct{} // holds one element while the lock is held
}

// Lock waits for the lock named key, or for ctx. It returns the function that
// gives the lock back; calling that more than once is harmless.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[string]*lock{}
	}
	k := l.locks[key]
	if k == nil {
		k = &lock{sem: make(chan struct{}, 1)}
		l.locks[key] = k
	}
	k.users++
	l.mu.Unlock()
	select {
	case k.sem <- struct{}{}:
		return sync.OnceFunc(func() {
			<-k.sem
			l.leave(key, k)
		}), nil
	case <-ctx.Done():
		l.leave(key, k)
		return nil, ctx.Err()
	}
}

func (l *Locks) leave(key string, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.locks, key)
	}
}

// Len is the number of keys that are held or waited for.
func (l *Locks) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.locks)
}

package depcache

import (
	"context"
	"runtime/debug"
	"sync"
)

// cell is the place of one build and its value. It passes once through
// building → built → closed, and leaves the map before it is closed or when its
// build brought nothing.
type cell[K comparable, S, V any] struct {
	cache    *Cache[K, S, V]
	key      K
	settings S
	done     chan struct{} // closed when the build has ended

	// mu guards all below.
	mu      sync.Mutex
	cancel  context.CancelFunc // of the build; nil before it starts
	waiters int                // who waits for the build
	users   int                // handles that are out
	evicted bool               // the result is nobody's, or nobody's any more
	built   bool
	value   V
	err     error
}

func newCell[K comparable, S, V any](c *Cache[K, S, V], key K, settings S) *cell[K, S, V] {
	return &cell[K, S, V]{cache: c, key: key, settings: settings, done: make(chan struct{})}
}

// join counts a waiter in, unless the result is nobody's.
func (e *cell[K, S, V]) join() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.evicted {
		return false
	}
	e.waiters++
	return true
}

// leave counts out a waiter who gave up. With the last one the build loses its
// purpose.
func (e *cell[K, S, V]) leave() {
	e.mu.Lock()
	e.waiters--
	abandoned := e.waiters == 0 && !e.built && e.err == nil
	if abandoned {
		e.evicted = true
	}
	unused := e.unusedLocked()
	cancel := e.cancel
	e.mu.Unlock()
	if abandoned && cancel != nil {
		cancel()
	}
	if unused {
		e.close()
	}
}

// setCancel stores how to cancel the build, at once if that was asked for
// before the build had started.
func (e *cell[K, S, V]) setCancel(cancel context.CancelFunc) {
	e.mu.Lock()
	e.cancel = cancel
	evicted := e.evicted
	e.mu.Unlock()
	if evicted {
		cancel()
	}
}

// result turns a waiter into a user. again means that the result is nobody's.
func (e *cell[K, S, V]) result() (h *Handle[V], again bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiters--
	switch {
	case e.err != nil:
		return nil, false, e.err
	case e.evicted:
		return nil, true, nil
	}
	e.users++
	return &Handle[V]{value: e.value, release: sync.OnceFunc(e.release)}, false, nil
}

// finish stores the outcome of the build and wakes the waiters.
func (e *cell[K, S, V]) finish(v V, err error) {
	e.mu.Lock()
	discard := err == nil && e.evicted
	gone := err != nil || e.evicted
	switch {
	case e.evicted:
		// Nobody's: not even the error of a cancelled build is for those who
		// still wait.
	case err != nil:
		e.err = err
	default:
		e.value, e.built = v, true
	}
	e.mu.Unlock()
	// Out of the map first: whoever is woken and asks again must not meet this
	// cell. The discarded value is closed before that, so that its successor
	// never opens what is still open.
	if discard {
		e.cache.closeValue(v)
	}
	if gone {
		e.cache.drop(e)
	}
	close(e.done)
}

// evict makes the result nobody's from now on.
func (e *cell[K, S, V]) evict() {
	e.mu.Lock()
	if e.evicted {
		e.mu.Unlock()
		return
	}
	e.evicted = true
	built := e.built
	close := built && e.users == 0
	cancel := e.cancel
	e.mu.Unlock()
	if !built {
		if cancel != nil {
			cancel()
		}
		return // finish drops and discards
	}
	e.cache.drop(e)
	if close {
		e.cache.closeValue(e.value)
	}
}

// release counts a user out.
func (e *cell[K, S, V]) release() {
	e.mu.Lock()
	e.users--
	last := e.users == 0 && e.evicted
	unused := e.unusedLocked()
	e.mu.Unlock()
	switch {
	case last:
		e.cache.closeValue(e.value)
	case unused:
		e.close()
	}
}

// unusedLocked evicts a value that nobody uses or waits for, where the cache
// keeps none of those, and reports whether it did.
func (e *cell[K, S, V]) unusedLocked() bool {
	if !e.cache.o.CloseUnused || !e.built || e.evicted || e.users > 0 || e.waiters > 0 {
		return false
	}
	e.evicted = true
	return true
}

// close ends an evicted value that nobody uses.
func (e *cell[K, S, V]) close() {
	e.cache.drop(e)
	e.cache.closeValue(e.value)
}

func (c *Cache[K, S, V]) closeValue(v V) {
	if c.o.Close != nil {
		c.o.Close(v)
	}
}

// Handle is one user's hold on a value.
type Handle[V any] struct {
	value   V
	release func()
}

// Value returns the value, which is good until Release.
func (h *Handle[V]) Value() V { return h.value }

// Release gives the value back. More than one call does nothing.
func (h *Handle[V]) Release() { h.release() }

// run calls build and turns a panic into an error.
func run[V any](ctx context.Context, build func(context.Context) (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return build(ctx)
}

// buildKey carries the chain of builds in a context.
type buildKey struct{}

type chain struct {
	cell any
	up   *chain
}

func withBuild(ctx context.Context, cell any) context.Context {
	up, _ := ctx.Value(buildKey{}).(*chain)
	return context.WithValue(ctx, buildKey{}, &chain{cell: cell, up: up})
}

// building reports whether ctx belongs to the build of cell or to one that it
// waits for.
func building(ctx context.Context, cell any) bool {
	for c, _ := ctx.Value(buildKey{}).(*chain); c != nil; c = c.up {
		if c.cell == cell {
			return true
		}
	}
	return false
}

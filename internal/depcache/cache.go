package depcache

import (
	"context"
	"sync"

	"github.com/puzpuzpuz/xsync/v3"
)

// Options configures a Cache.
type Options[S, V any] struct {
	// Close ends a value that nobody can get any more; nil when there is
	// nothing to do. It runs outside every lock.
	Close func(V)
	// Equal tells whether two settings are the same; needed.
	Equal func(a, b S) bool
	// CloseUnused closes a value as soon as its last user releases it.
	// Otherwise it stays until Invalidate or Close.
	CloseUnused bool
}

// Cache holds values of type V, made with settings of type S, by key. It is
// safe for concurrent use.
type Cache[K comparable, S, V any] struct {
	o     Options[S, V]
	cells *xsync.MapOf[K, *cell[K, S, V]]

	// mu guards closed and orders it with builds.Add.
	mu     sync.Mutex
	closed bool
	builds sync.WaitGroup
}

// New returns an empty cache.
func New[K comparable, S, V any](o Options[S, V]) *Cache[K, S, V] {
	if o.Equal == nil {
		panic("depcache: Options.Equal is needed")
	}
	return &Cache[K, S, V]{o: o, cells: xsync.NewMapOf[K, *cell[K, S, V]]()}
}

// Get returns the value of key, building it if need be. build gets a context
// that carries ctx's values and ends when nobody waits for the result any more.
// The handle must be released.
func (c *Cache[K, S, V]) Get(ctx context.Context, key K, settings S, build func(context.Context) (V, error)) (*Handle[V], error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, again, err := c.try(ctx, key, settings, build)
		if !again {
			return h, err
		}
	}
}

// try joins or makes the cell of key once. again means that the cell's result
// is nobody's: it was invalidated, or all who had waited for it gave up.
func (c *Cache[K, S, V]) try(ctx context.Context, key K, settings S, build func(context.Context) (V, error)) (h *Handle[V], again bool, err error) {
	e, joined := c.cells.Load(key)
	if !joined {
		e, joined = c.cells.LoadOrStore(key, newCell(c, key, settings))
	}
	if joined && building(ctx, e) {
		return nil, false, ErrRecursive
	}
	// A cell whose result is nobody's is only waited for: the next build of the
	// key begins when this one has ended.
	waits := e.join()
	switch {
	case !joined:
		c.start(ctx, e, build)
	case waits && !c.o.Equal(e.settings, settings):
		e.leave()
		return nil, false, &ConflictError{Key: key, Have: e.settings, Requested: settings}
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		if waits {
			e.leave()
		}
		return nil, false, context.Cause(ctx)
	}
	if !waits {
		return nil, true, nil
	}
	return e.result()
}

// start runs the build of e on its own goroutine, so that whoever asked first
// may give up like everybody else.
func (c *Cache[K, S, V]) start(ctx context.Context, e *cell[K, S, V], build func(context.Context) (V, error)) {
	ctx, cancel := context.WithCancel(withBuild(context.WithoutCancel(ctx), e))
	e.setCancel(cancel)
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.builds.Add(1)
	}
	c.mu.Unlock()
	if closed {
		cancel()
		var none V
		e.finish(none, ErrClosed)
		return
	}
	go func() {
		defer c.builds.Done()
		defer cancel()
		var v V
		err := errGoexit // unless run returns
		defer func() { e.finish(v, err) }()
		v, err = run(ctx, build)
	}()
}

// Invalidate makes the cache forget key: the next Get builds anew. The value is
// closed when its last user releases it; a build in flight is cancelled and its
// result discarded.
func (c *Cache[K, S, V]) Invalidate(key K) {
	if e, ok := c.cells.Load(key); ok {
		e.evict()
	}
}

// Len returns how many keys are held or being built.
func (c *Cache[K, S, V]) Len() int { return c.cells.Size() }

// Close invalidates every key, refuses new ones and waits for the builds in
// flight. Values in use are closed when their users release them.
func (c *Cache[K, S, V]) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	// Whoever stores a cell from now on finds the cache closed in start.
	c.cells.Range(func(_ K, e *cell[K, S, V]) bool {
		e.evict()
		return true
	})
	c.builds.Wait()
}

// drop takes e out of the map, unless another cell has its place.
func (c *Cache[K, S, V]) drop(e *cell[K, S, V]) {
	// The function only compares: nothing runs under the bucket's lock.
	c.cells.Compute(e.key, func(have *cell[K, S, V], loaded bool) (*cell[K, S, V], bool) {
		return have, !loaded || have == e
	})
}

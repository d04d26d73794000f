package depcache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is a value that knows whether it is open.
type thing struct {
	n      int
	closed atomic.Int32
}

type cache = Cache[string, string, *thing]

func newCache(closeUnused bool) *cache {
	return New[string](Options[string, *thing]{
		Close:       func(t *thing) { t.closed.Add(1) },
		Equal:       func(a, b string) bool { return a == b },
		CloseUnused: closeUnused,
	})
}

// maker counts its builds.
type maker struct {
	runs  atomic.Int32
	made  []*thing
	mu    sync.Mutex // guards made
	block chan struct{}
}

func (m *maker) build(context.Context) (*thing, error) {
	n := m.runs.Add(1)
	if m.block != nil {
		<-m.block
	}
	t := &thing{n: int(n)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made = append(m.made, t)
	return t, nil
}

func TestOneBuildForManyCallers(t *testing.T) {
	c := newCache(false)
	defer c.Close()
	m := &maker{}
	const callers = 1000
	got := make([]*thing, callers)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-begin
			h, err := c.Get(t.Context(), "k", "s", m.build)
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = h.Value()
			h.Release()
		})
	}
	close(begin)
	wg.Wait()
	if n := m.runs.Load(); n != 1 {
		t.Fatalf("%d builds", n)
	}
	for _, v := range got {
		if v != got[0] {
			t.Fatal("two callers got different values")
		}
	}
	if got[0].closed.Load() != 0 {
		t.Fatal("closed while cached")
	}
	c.Invalidate("k")
	if n := got[0].closed.Load(); n != 1 {
		t.Fatalf("closed %d times", n)
	}
}

func TestEveryWaiterGetsTheErrorAndItIsNotKept(t *testing.T) {
	bad := errors.New("bad")
	panics := func(v any) func(context.Context) (*thing, error) {
		return func(context.Context) (*thing, error) { panic(v) }
	}
	for _, tc := range []struct {
		name  string
		build func(context.Context) (*thing, error)
		check func(error) bool
	}{
		{"error", func(context.Context) (*thing, error) { return nil, bad }, func(err error) bool { return err == bad }},
		{"panic", panics("boom"), func(err error) bool {
			p, ok := errors.AsType[*PanicError](err)
			return ok && p.Value == "boom" && strings.Contains(string(p.Stack), "cache_test.go")
		}},
		{"panic with an error", panics(bad), func(err error) bool { return errors.Is(err, bad) }},
		{"goexit", func(context.Context) (*thing, error) { runtime.Goexit(); return nil, nil }, func(err error) bool { return err == errGoexit }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(false)
				defer c.Close()
				gate := make(chan struct{})
				var runs atomic.Int32
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						_, err := c.Get(t.Context(), "k", "s", func(ctx context.Context) (*thing, error) {
							runs.Add(1)
							<-gate
							return tc.build(ctx)
						})
						if !tc.check(err) {
							t.Errorf("got %v", err)
						}
					})
				}
				synctest.Wait() // all wait for the one build
				close(gate)
				wg.Wait()
				if runs.Load() != 1 {
					t.Errorf("%d builds", runs.Load())
				}
				if c.Len() != 0 {
					t.Error("a failure was kept")
				}
				h, err := c.Get(t.Context(), "k", "other", (&maker{}).build)
				if err != nil {
					t.Fatal(err)
				}
				h.Release()
			})
		})
	}
}

func TestConflictNamesBothSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(false)
		defer c.Close()
		m := &maker{block: make(chan struct{})}
		var wg sync.WaitGroup
		wg.Go(func() {
			h, err := c.Get(t.Context(), "k", "old", m.build)
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Release()
		})
		synctest.Wait()
		ask := func() {
			t.Helper()
			_, err := c.Get(t.Context(), "k", "new", m.build)
			conflict, ok := errors.AsType[*ConflictError](err)
			if !ok || conflict.Have != "old" || conflict.Requested != "new" || conflict.Key != "k" {
				t.Fatalf("got %v", err)
			}
			for _, part := range []string{"old", "new", "k"} {
				if !strings.Contains(err.Error(), part) {
					t.Fatalf("%q does not name %q", err, part)
				}
			}
		}
		ask() // while it is being built
		close(m.block)
		wg.Wait()
		ask() // when it is there
		c.Invalidate("k")
		h, err := c.Get(t.Context(), "k", "new", m.build)
		if err != nil {
			t.Fatal("the settings outlived the value:", err)
		}
		h.Release()
	})
}

func TestAWaiterGivesUpAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(false)
		defer c.Close()
		m := &maker{block: make(chan struct{})}
		first, giveUp := context.WithCancelCause(t.Context())
		why := errors.New("no patience")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Get(first, "k", "s", m.build); err != why {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			h, err := c.Get(t.Context(), "k", "s", m.build)
			if err != nil {
				t.Error(err)
				return
			}
			h.Release()
		})
		synctest.Wait()
		giveUp(why) // the one whose build it is
		synctest.Wait()
		close(m.block)
		wg.Wait()
		if m.runs.Load() != 1 {
			t.Fatalf("%d builds", m.runs.Load())
		}
	})
}

// With the last waiter the build's context ends; whoever comes while it winds
// down waits for that and builds anew, and the late value is closed.
func TestAllWaitersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(false)
		defer c.Close()
		late := &thing{}
		windDown := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := c.Get(ctx, "k", "s", func(ctx context.Context) (*thing, error) {
					<-ctx.Done()
					<-windDown
					return late, nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		m := &maker{}
		wg.Go(func() {
			h, err := c.Get(t.Context(), "k", "other settings", m.build)
			if err != nil {
				t.Error(err)
				return
			}
			h.Release()
		})
		synctest.Wait()
		if m.runs.Load() != 0 {
			t.Error("two builds of one key at once")
		}
		close(windDown)
		wg.Wait()
		if m.runs.Load() != 1 || late.closed.Load() != 1 {
			t.Errorf("%d builds, late value closed %d times", m.runs.Load(), late.closed.Load())
		}
	})
}

func TestInvalidateInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(false)
		defer c.Close()
		first := &maker{block: make(chan struct{})}
		second := &maker{}
		var wg sync.WaitGroup
		for i := range 5 {
			m := first
			if i > 0 {
				m = second
			}
			wg.Go(func() {
				h, err := c.Get(t.Context(), "k", "s", func(ctx context.Context) (*thing, error) {
					if first.runs.Load() > 0 {
						m = second // the first caller's second build
					}
					return m.build(ctx)
				})
				if err != nil {
					t.Error(err)
					return
				}
				if h.Value() != second.made[0] {
					t.Error("got the value from before Invalidate")
				}
				h.Release()
			})
			synctest.Wait()
		}
		c.Invalidate("k")
		synctest.Wait()
		if second.runs.Load() != 0 {
			t.Error("two builds of one key at once")
		}
		close(first.block)
		wg.Wait()
		if second.runs.Load() != 1 {
			t.Errorf("%d builds after Invalidate", second.runs.Load())
		}
		if n := first.made[0].closed.Load(); n != 1 {
			t.Errorf("the late value was closed %d times", n)
		}
	})
}

func TestClosedAfterTheLastUser(t *testing.T) {
	for _, closeUnused := range []bool{false, true} {
		t.Run(fmt.Sprintf("CloseUnused=%v", closeUnused), func(t *testing.T) {
			c := newCache(closeUnused)
			defer c.Close()
			m := &maker{}
			get := func() *Handle[*thing] {
				t.Helper()
				h, err := c.Get(t.Context(), "k", "s", m.build)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			a, b := get(), get()
			v := a.Value()
			c.Invalidate("k")
			c.Invalidate("k")
			a.Release()
			a.Release() // counts once
			if v.closed.Load() != 0 {
				t.Fatal("closed under its last user")
			}
			fresh := get()
			if fresh.Value() == v {
				t.Fatal("got an invalidated value")
			}
			b.Release()
			if v.closed.Load() != 1 {
				t.Fatalf("closed %d times", v.closed.Load())
			}
			w := fresh.Value()
			fresh.Release()
			want := int32(0)
			if closeUnused {
				want = 1
			}
			if w.closed.Load() != want {
				t.Fatalf("unused value closed %d times, want %d", w.closed.Load(), want)
			}
		})
	}
}

func TestRecursion(t *testing.T) {
	c := newCache(false)
	defer c.Close()
	m := &maker{}
	h, err := c.Get(t.Context(), "a", "s", func(ctx context.Context) (*thing, error) {
		b, err := c.Get(ctx, "b", "s", m.build)
		if err != nil {
			return nil, err
		}
		defer b.Release()
		return &thing{n: b.Value().n + 1}, nil
	})
	if err != nil || h.Value().n != 2 {
		t.Fatalf("%v, %v", h, err)
	}
	h.Release()

	_, err = c.Get(t.Context(), "x", "s", func(ctx context.Context) (*thing, error) {
		_, err := c.Get(ctx, "y", "s", func(ctx context.Context) (*thing, error) {
			_, err := c.Get(ctx, "x", "s", m.build)
			return nil, err
		})
		return nil, err
	})
	if !errors.Is(err, ErrRecursive) {
		t.Fatalf("got %v", err)
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(false)
		m := &maker{}
		used, err := c.Get(t.Context(), "used", "s", m.build)
		if err != nil {
			t.Fatal(err)
		}
		idle, err := c.Get(t.Context(), "idle", "s", m.build)
		if err != nil {
			t.Fatal(err)
		}
		idle.Release()
		var wg sync.WaitGroup
		windDown := make(chan struct{})
		wg.Go(func() {
			_, err := c.Get(t.Context(), "building", "s", func(ctx context.Context) (*thing, error) {
				<-ctx.Done()
				<-windDown
				return nil, ctx.Err()
			})
			if !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			c.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for a build")
		default:
		}
		close(windDown)
		<-closed
		wg.Wait()
		if _, err := c.Get(t.Context(), "used", "s", m.build); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if n := idle.Value().closed.Load(); n != 1 {
			t.Errorf("idle value closed %d times", n)
		}
		if used.Value().closed.Load() != 0 {
			t.Error("closed under its user")
		}
		used.Release()
		if n := used.Value().closed.Load(); n != 1 {
			t.Errorf("used value closed %d times", n)
		}
		if c.Len() != 0 {
			t.Errorf("%d keys left", c.Len())
		}
	})
}

// Everything at once: whoever holds a handle holds an open value, and in the
// end each value was closed exactly once.
func TestStorm(t *testing.T) {
	for _, closeUnused := range []bool{false, true} {
		c := newCache(closeUnused)
		m := &maker{}
		var inFlight [3]atomic.Int32
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := range 300 {
					k := (w*7 + i*5) % 3
					key := fmt.Sprint(k)
					switch (w + i) % 5 {
					case 0:
						c.Invalidate(key)
						continue
					}
					ctx, cancel := context.WithCancel(t.Context())
					if (w+i)%7 == 0 {
						go cancel()
					}
					h, err := c.Get(ctx, key, "s", func(ctx context.Context) (*thing, error) {
						if n := inFlight[k].Add(1); n != 1 {
							t.Errorf("%d builds of one key at once", n)
						}
						defer inFlight[k].Add(-1)
						runtime.Gosched()
						return m.build(ctx)
					})
					if err == nil {
						if h.Value().closed.Load() != 0 {
							t.Error("got a closed value")
						}
						runtime.Gosched()
						if h.Value().closed.Load() != 0 {
							t.Error("closed under a user")
						}
						h.Release()
					} else if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		c.Close()
		for _, v := range m.made {
			if n := v.closed.Load(); n != 1 {
				t.Fatalf("a value was closed %d times", n)
			}
		}
	}
}

package keylock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMutualExclusion(t *testing.T) {
	var l Locks
	counts := make([]int, 5) // each guarded by its key: -race watches
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range 200 {
				k := (w + i) % len(counts)
				unlock, err := l.Lock(t.Context(), fmt.Sprint(k))
				if err != nil {
					t.Error(err)
					return
				}
				counts[k]++
				unlock()
			}
		})
	}
	wg.Wait()
	for k, n := range counts {
		if n != 20*200/len(counts) {
			t.Errorf("key %d: %d", k, n)
		}
	}
	if l.Len() != 0 {
		t.Errorf("%d keys left", l.Len())
	}
}

func TestWaitersComeInOrderAndOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks
		unlock, err := l.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := l.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		var order []int // guarded by the lock "a"
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				unlock, err := l.Lock(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				unlock()
			})
			synctest.Wait()
		}
		if l.Len() != 1 {
			t.Errorf("%d keys, want 1", l.Len())
		}
		unlock()
		unlock() // does not unlock for the next one
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
	})
}

func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks
		unlock, err := l.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		why := errors.New("no patience")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := l.Lock(ctx, "a"); err != why {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		cancel(why)
		wg.Wait()
		unlock()
		if l.Len() != 0 {
			t.Errorf("%d keys left", l.Len())
		}
		if _, err := l.Lock(ctx, "a"); err != why {
			t.Errorf("an ended context got a free lock: %v", err)
		}
		if l.Len() != 0 {
			t.Errorf("%d keys left", l.Len())
		}
	})
}

package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ptyd/ptyd/internal/problem"
)

// While one group is being written, the next one gathers.
func TestBatcherGathersWhileItWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int // written by the batcher's goroutine, read after close
		gate := make(chan struct{})
		b := newBatcher(func(jobs []job) {
			<-gate
			sizes = append(sizes, len(jobs))
			for _, j := range jobs {
				if j.done != nil {
					j.done <- nil
				}
			}
		})
		var wg sync.WaitGroup
		commit := func() {
			wg.Go(func() {
				if err := b.commit(t.Context(), nil); err != nil {
					t.Error(err)
				}
			})
		}
		commit()
		synctest.Wait()
		for range 10 {
			commit()
		}
		for range 5 {
			if err := b.add(job{key: "same"}); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		b.close()
		if fmt.Sprint(sizes) != "[1 11]" {
			t.Errorf("groups of %v", sizes)
		}
		if err := b.add(job{}); !problem.Is(err, problem.Unavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBatcherIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		flushed := 0
		b := newBatcher(func(jobs []job) {
			<-gate
			flushed += len(jobs)
		})
		if err := b.add(job{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the first one is being written
		for range maxQueued {
			if err := b.add(job{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.add(job{}); !problem.Is(err, problem.Unavailable) {
			t.Errorf("got %v", err)
		}
		close(gate)
		b.close()
		if flushed != maxQueued+1 {
			t.Errorf("%d flushed", flushed)
		}
	})
}

// Whoever gives up is told that the write will still happen.
func TestCommitGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		wrote := false
		b := newBatcher(func(jobs []job) {
			<-gate
			wrote = true
			jobs[0].done <- nil
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("no patience")
		result := make(chan error, 1)
		go func() { result <- b.commit(ctx, nil) }()
		synctest.Wait()
		cancel(why)
		if err := <-result; !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		close(gate)
		b.close()
		if !wrote {
			t.Error("the write was dropped")
		}
	})
}

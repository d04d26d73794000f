package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ptyd/ptyd/internal/bench/workload"
)

// reader receives a flood in a goroutine of its own until it is told to stop
// or its viewer is closed.
type reader struct {
	viewer
	got   collector // the goroutine's until done is closed
	count atomic.Uint64
	quit  atomic.Bool
	err   error
	done  chan struct{}
}

// read starts the goroutine; halt, or closing the viewer, ends it.
func (r *reader) read() {
	r.done = make(chan struct{})
	r.quit.Store(false)
	go func() {
		defer close(r.done)
		for !r.quit.Load() {
			at, p, err := r.next()
			if err != nil {
				r.err = err
				return
			}
			r.got.add(at, p)
			r.count.Store(r.got.bytes)
		}
	}()
}

// halt stops reading after what arrives next. It returns false when nothing
// arrives: the caller then closes the viewer.
func (r *reader) halt(wait time.Duration) bool {
	r.quit.Store(true)
	select {
	case <-r.done:
		return true
	case <-time.After(wait):
		return false
	}
}

// rate is the MB/s that arrive within d.
func (r *reader) rate(ctx context.Context, d time.Duration) (float64, error) {
	begin, n := time.Now(), r.count.Load()
	err := pause(ctx, d)
	return float64(r.count.Load()-n) / 1e6 / time.Since(begin).Seconds(), err
}

// measureStalled has two viewers of one endless flood; after a while one of
// them reads nothing for as long as hold.
func measureStalled(ctx context.Context, r *runner) error {
	p, err := r.pairs(ctx, r.size.stalledReps, r.stalled)
	if err != nil {
		return err
	}
	secs := r.size.hold.Seconds()
	r.add("stalled", fmt.Sprintf("A viewer reads nothing for %.0f s: memory, MB more", secs), p["growth"], atMost(4))
	r.add("stalled", "— what another viewer keeps of its rate", p["keeps"], atLeast(0.8))
	r.add("stalled", "— another viewer before, MB/s", p["before"], noBar())
	r.add("stalled", "— declared as skipped to the stalled one, MB", p["skipped"], noBar())
	return nil
}

func (r *runner) stalled(ctx context.Context, t target) (samples, error) {
	id, err := t.create(ctx, child(r.Self, workload.Flood(0)))
	if err != nil {
		return nil, err
	}
	var lazy, other reader
	if lazy.viewer, err = t.view(ctx, id, 0); err != nil {
		return nil, err
	}
	defer lazy.close()
	if err := awaitReady(lazy.viewer); err != nil {
		return nil, err
	}
	if other.viewer, err = t.view(ctx, id, floodStart); err != nil {
		return nil, err
	}
	defer other.close()
	if err := lazy.input([]byte("g")); err != nil {
		return nil, err
	}
	lazy.read()
	other.read()
	// By the end of this the session's memory for output is full on both
	// servers, and what grows later grows because of the stall.
	if err := pause(ctx, r.size.warm); err != nil {
		return nil, err
	}
	before, err := other.rate(ctx, 2*r.size.warm)
	if err != nil {
		return nil, err
	}
	if !lazy.halt(2 * time.Second) {
		return nil, fmt.Errorf("a viewer that reads got nothing for 2 s")
	}
	first := t.usage().Resident()
	peak := first
	begin, n := time.Now(), other.count.Load()
	for time.Since(begin) < r.size.hold {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
		peak = max(peak, t.usage().Resident())
	}
	during := float64(other.count.Load()-n) / 1e6 / time.Since(begin).Seconds()
	// The stalled one comes back: it must go on at the right place, or at one
	// that the server declares.
	held := lazy.count.Load()
	lazy.read()
	for end := time.Now().Add(3 * time.Second); lazy.count.Load() < held+2<<20; {
		if time.Now().After(end) {
			return nil, fmt.Errorf("the stalled viewer came back and got %d bytes in 3 s", lazy.count.Load()-held)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
	other.quit.Store(true) // before the other one is awaited: the baseline stops when one of them does
	for _, v := range []*reader{&lazy, &other} {
		if !v.halt(2 * time.Second) {
			return nil, fmt.Errorf("a viewer got nothing for 2 s")
		}
		if v.err != nil {
			return nil, v.err
		}
		if err := v.got.check(v.skipped()); err != nil {
			return nil, err
		}
	}
	return samples{
		"growth": float64(peak-first) / 1024, "keeps": during / before, "before": before,
		"skipped": float64(lazy.skipped()) / 1e6,
	}, nil
}

package bench

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/creack/pty"

	"github.com/ptyd/ptyd/internal/bench/stats"
)

const (
	// createBatch is how many creations make one pair: single ones vary with
	// what else the machine does.
	createBatch = 20
	// createPause lets what the creation before left to do be done.
	createPause = 5 * time.Millisecond
)

// measureCreate has the server start sessions, one at a time, in turn with
// what no server can do without: a terminal, a fork and an exec, in this
// process, without a request.
func measureCreate(ctx context.Context, r *runner) error {
	var pairs []stats.Pair
	peer := r.peers()[0]
	batch := func(ctx context.Context) error {
		if err := r.calm(ctx); err != nil {
			return err
		}
		var server, bare []float64
		do := [2]func() error{
			func() error { return timed(&server, func() error { _, err := peer.create(ctx, idler); return err }) },
			func() error { return createBare(&bare) },
		}
		for i := range createBatch {
			for k := range do {
				if err := pause(ctx, createPause); err != nil {
					return err
				}
				if err := do[k^i&1](); err != nil {
					return err
				}
			}
		}
		pairs = append(pairs, stats.Pair{Ptyd: stats.Median(server), Baseline: stats.Median(bare)})
		fmt.Fprint(r.Log, ".")
		return nil
	}
	err := r.started(ctx, peer, func(ctx context.Context) error {
		if err := r.warmUp(ctx, peer); err != nil {
			return err
		}
		for range r.size.creates {
			if err := batch(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.add("create", "Creation of a session, ms, beside a bare terminal, fork and exec", pairs, ratioAtMost(2.8))
	return nil
}

// idler is a program that does nothing.
var idler = []string{"sleep", "infinity"}

// warmUp creates a few sessions that are not measured: the first one also makes
// what all have in common.
func (r *runner) warmUp(ctx context.Context, t target) error {
	for range 3 {
		if _, err := t.create(ctx, idler); err != nil {
			return err
		}
	}
	return nil
}

// createBare starts a program in a terminal and ends it again; only the start
// counts.
func createBare(ms *[]float64) error {
	cmd := exec.Command(idler[0], idler[1:]...)
	err := timed(ms, func() error {
		tty, err := pty.Start(cmd)
		if err == nil {
			defer tty.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	_ = cmd.Process.Kill() // the hang-up may have been first
	_ = cmd.Wait()         // says that it was killed
	return nil
}

// timed appends to ms how long do took.
func timed(ms *[]float64, do func() error) error {
	begin := time.Now()
	if err := do(); err != nil {
		return err
	}
	*ms = append(*ms, float64(time.Since(begin))/float64(time.Millisecond))
	return nil
}

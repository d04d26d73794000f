package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ptyd/ptyd/internal/bench/procfs"
	"github.com/ptyd/ptyd/internal/bench/stats"
)

// tests are what can be measured, in the order of the report.
var tests []test

type test struct {
	name string
	run  func(context.Context, *runner) error
}

func init() { // not a literal: the functions refer to the list by way of Options
	tests = []test{
		{"one", measureOne},
		{"ten", measureTen},
		{"echo", measureEcho},
		{"flood", measureEchoUnderFloods},
		{"stalled", measureStalled},
		{"idle", measureIdle},
		{"start", measureStart},
		{"keeper", measureKeeper},
		{"create", measureCreate},
		{"kill", measureKill},
	}
}

// runner is one run of the bench.
type runner struct {
	Options
	size    sizes
	scratch string // a folder for the servers' files
	serial  int    // of folders in it
	version string
	others  []float64 // processors busy with other things before each pair
	rows    []Row
}

// Run measures and reports. Its error is that of a measurement that could not
// be made or whose content was wrong, joined to what was measured all the same.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Tests == nil {
		o.Tests = TestNames()
	}
	scratch, err := os.MkdirTemp("", "ptyd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	r := &runner{Options: o, size: o.sizes(), scratch: scratch}
	rep := &Report{Date: time.Now().UTC().Truncate(time.Second), Machine: procfs.ThisMachine(), Short: o.Short, SelfCheck: o.SelfCheck}
	var failed error
	for _, t := range tests {
		if !slices.Contains(o.Tests, t.name) {
			continue
		}
		begin := time.Now()
		fmt.Fprintf(o.Log, "%-8s", t.name)
		if err := t.run(ctx, r); err != nil {
			fmt.Fprintf(o.Log, "  failed: %v\n", err)
			r.rows = append(r.rows, Row{Test: t.name, Title: t.name + ": not measured", Error: err.Error()})
			failed = fmt.Errorf("test %s: %w", t.name, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		fmt.Fprintf(o.Log, "  %.0f s\n", time.Since(begin).Seconds())
	}
	rep.Version, rep.Rows = r.version, r.rows
	if len(r.others) > 0 {
		rep.Others = stats.Median(r.others)
	}
	return rep, failed
}

// peers are the two servers, the measured one first.
func (r *runner) peers() []target {
	base := &baselineTarget{label: "baseline", self: r.Self}
	if r.SelfCheck {
		return []target{&baselineTarget{label: "baseline again", self: r.Self}, base}
	}
	return []target{&ptydTarget{binary: r.Ptyd}, base}
}

// folder makes an empty folder for a server.
func (r *runner) folder() (string, error) {
	r.serial++
	dir := filepath.Join(r.scratch, fmt.Sprint(r.serial))
	return dir, os.Mkdir(dir, 0o700)
}

// started runs do with a fresh process of t.
func (r *runner) started(ctx context.Context, t target, do func(ctx context.Context) error) error {
	dir, err := r.folder()
	if err != nil {
		return err
	}
	if _, err := t.start(ctx, dir); err != nil {
		return err
	}
	defer t.stop()
	if p, ok := t.(*ptydTarget); ok {
		r.version = p.version
	}
	// Whatever hangs is ended: viewers hold this context.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return do(ctx)
}

// samples are named numbers of one measurement.
type samples map[string]float64

// pairs measures both servers n times, one right after the other, each time in
// fresh processes, and the other one first every second time.
func (r *runner) pairs(ctx context.Context, n int, measure func(context.Context, target) (samples, error)) (map[string][]stats.Pair, error) {
	out := map[string][]stats.Pair{}
	for i := range n {
		if err := r.calm(ctx); err != nil {
			return nil, err
		}
		peers := r.peers()
		var got [2]samples
		for k := range peers {
			k ^= i & 1
			if err := r.started(ctx, peers[k], func(ctx context.Context) (err error) {
				got[k], err = measure(ctx, peers[k])
				return err
			}); err != nil {
				return nil, fmt.Errorf("%s: %w", peers[k].name(), err)
			}
		}
		pair(out, got[0], got[1])
		fmt.Fprint(r.Log, ".")
	}
	return out, nil
}

// turns has both servers up at once and measures them in short turns, one right
// after the other: each turn is a pair. It suits what leaves a server at rest.
func (r *runner) turns(ctx context.Context, n int, measure func(context.Context, target) (samples, error)) (map[string][]stats.Pair, error) {
	return r.turnsOf(ctx, r.peers, n, measure)
}

// turnsOf is turns with other servers: each repetition gets new ones from fresh.
func (r *runner) turnsOf(ctx context.Context, fresh func() []target, n int, measure func(context.Context, target) (samples, error)) (map[string][]stats.Pair, error) {
	out := map[string][]stats.Pair{}
	for range n {
		peers := fresh()
		all := func(ctx context.Context) error {
			for i := range r.size.turns {
				if err := r.calm(ctx); err != nil {
					return err
				}
				var got [2]samples
				for k := range peers {
					k ^= i & 1
					var err error
					if got[k], err = measure(ctx, peers[k]); err != nil {
						return fmt.Errorf("%s: %w", peers[k].name(), err)
					}
				}
				pair(out, got[0], got[1])
			}
			return nil
		}
		if err := r.both(ctx, peers, all); err != nil {
			return nil, err
		}
		fmt.Fprint(r.Log, ".")
	}
	return out, nil
}

// both runs do with fresh processes of two servers.
func (r *runner) both(ctx context.Context, peers []target, do func(context.Context) error) error {
	return r.started(ctx, peers[0], func(ctx context.Context) error { return r.started(ctx, peers[1], do) })
}

// pair adds the numbers of one repetition.
func pair(out map[string][]stats.Pair, ptyd, baseline samples) {
	for name, v := range ptyd {
		out[name] = append(out[name], stats.Pair{Ptyd: v, Baseline: baseline[name]})
	}
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

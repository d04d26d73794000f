package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ptyd/ptyd/internal/bench/stats"
	"github.com/ptyd/ptyd/internal/bench/workload"
)

// burst is how many echoes one server gets before it is the other one's turn.
const burst = 20

// echoer types into a session that sends every byte back.
type echoer struct {
	viewer
	id string
	at uint64
	ms []float64
}

func (r *runner) echoer(ctx context.Context, t target) (*echoer, error) {
	id, err := t.create(ctx, child(r.Self, workload.Echo()))
	if err != nil {
		return nil, err
	}
	v, err := t.view(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	if err := awaitReady(v); err != nil {
		v.close()
		return nil, err
	}
	return &echoer{viewer: v, id: id, at: floodStart}, nil
}

// round types one byte and waits for it to come back.
func (e *echoer) round() error {
	typed := byte('a' + len(e.ms)%26)
	begin := time.Now()
	if err := e.input([]byte{typed}); err != nil {
		return err
	}
	at, p, err := e.next()
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if at != e.at || len(p) != 1 || p[0] != typed {
		return fmt.Errorf("typed %q at %d, got %q at %d", typed, e.at, p, at)
	}
	e.at++
	e.ms = append(e.ms, float64(took)/float64(time.Millisecond))
	return nil
}

// rounds types n bytes, as a fast typist's keys would come: never in step with
// a timer of the server.
func (e *echoer) rounds(ctx context.Context, n int) error {
	for range n {
		if err := pause(ctx, 3*time.Millisecond+rand.N(4*time.Millisecond)); err != nil {
			return err
		}
		if err := e.round(); err != nil {
			return err
		}
	}
	return nil
}

// measureEcho has both servers up at once, idle but for the typing, and types
// to them in turn: what disturbs the machine disturbs both.
func measureEcho(ctx context.Context, r *runner) error {
	var p50, p99 []stats.Pair
	for i := range r.size.reps {
		peers := r.peers()
		es := make([]*echoer, len(peers))
		measure := func(ctx context.Context) error {
			for k, t := range peers {
				var err error
				if es[k], err = r.echoer(ctx, t); err != nil {
					return err
				}
				defer es[k].close()
			}
			for n := 0; n < r.size.rounds; n += burst {
				if n%(5*burst) == 0 {
					if err := r.calm(ctx); err != nil {
						return err
					}
				}
				for k := range es {
					if err := es[k^i&1].rounds(ctx, burst); err != nil {
						return err
					}
				}
			}
			return nil
		}
		if err := r.both(ctx, peers, measure); err != nil {
			return err
		}
		p50 = append(p50, stats.Pair{Ptyd: stats.Median(es[0].ms), Baseline: stats.Median(es[1].ms)})
		p99 = append(p99, stats.Pair{Ptyd: stats.Quantile(es[0].ms, 0.99), Baseline: stats.Quantile(es[1].ms, 0.99)})
		fmt.Fprint(r.Log, ".")
	}
	r.add("echo", "Echo, idle, p50 ms", p50, ratioAtMost(1.1))
	r.add("echo", "Echo, idle, p99 ms", p99, ratioAtMost(1.25))
	return nil
}

// measureEchoUnderFloods types while eight other sessions write without end,
// viewed by another process.
func measureEchoUnderFloods(ctx context.Context, r *runner) error {
	p, err := r.pairs(ctx, r.size.reps, func(ctx context.Context, t target) (samples, error) {
		e, err := r.echoer(ctx, t)
		if err != nil {
			return nil, err
		}
		defer e.close()
		f, err := startFloods(ctx, t, r.Self, 8)
		if err != nil {
			return nil, err
		}
		err = e.rounds(ctx, r.size.rounds)
		rate, stopErr := f.stop()
		if err == nil {
			err = stopErr
		}
		if err != nil {
			return nil, err
		}
		return samples{"p50": stats.Median(e.ms), "p99": stats.Quantile(e.ms, 0.99), "rate": rate / 1e6}, nil
	})
	if err != nil {
		return err
	}
	r.add("flood", "Echo while 8 sessions flood, p50 ms", p["p50"], atMost(1))
	r.add("flood", "Echo while 8 sessions flood, p99 ms", p["p99"], atMost(5))
	r.add("flood", "— the floods meanwhile, MB/s in all", p["rate"], noBar())
	return nil
}

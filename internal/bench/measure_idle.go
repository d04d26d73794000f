package bench

import (
	"context"
	"fmt"
	"sync"

	"github.com/ptyd/ptyd/internal/bench/procfs"
	"github.com/ptyd/ptyd/internal/bench/stats"
)

// creators is how many sessions are asked for at a time.
const creators = 8

// measureIdle starts many sessions that do nothing, first without viewers,
// then with one connection and one viewer each.
func measureIdle(ctx context.Context, r *runner) error {
	n := r.size.idle
	p, err := r.pairs(ctx, 1, func(ctx context.Context, t target) (samples, error) { return r.idle(ctx, t, n) })
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d idle sessions: ", n)
	r.add("idle", what+"daemon KB each", p["own"], atMost(60))
	r.add("idle", "— with a viewer each, daemon KB each", p["own viewed"], atMost(60))
	r.add("idle", "— their kept output (shared memory), KB each", p["shared"], noBar())
	r.add("idle", "— threads", p["threads"], atMost(20))
	r.add("idle", "— threads, with a viewer each", p["threads viewed"], atMost(20))
	r.add("idle", "— CPU, % of a core", p["cpu"], atMost(1))
	r.add("idle", "— CPU, % of a core, with a viewer each", p["cpu viewed"], atMost(1))
	return nil
}

func (r *runner) idle(ctx context.Context, t target, n int) (samples, error) {
	if err := pause(ctx, r.size.settle); err != nil {
		return nil, err
	}
	empty := t.usage()
	ids := make([]string, n)
	if err := each(n, func(i int) (err error) {
		ids[i], err = t.create(ctx, []string{"sleep", "infinity"})
		return err
	}); err != nil {
		return nil, err
	}
	bare, cpu, err := r.rest(ctx, t)
	if err != nil {
		return nil, err
	}
	views := make([]viewer, n)
	var reading sync.WaitGroup
	defer func() {
		for _, v := range views {
			if v != nil {
				v.close()
			}
		}
		reading.Wait()
	}()
	if err := each(n, func(i int) (err error) {
		views[i], err = t.view(ctx, ids[i], 0)
		return err
	}); err != nil {
		return nil, err
	}
	for _, v := range views { // answers what the server asks, as a client does
		reading.Go(func() {
			for {
				if _, _, err := v.next(); err != nil {
					return
				}
			}
		})
	}
	viewed, cpuViewed, err := r.rest(ctx, t)
	if err != nil {
		return nil, err
	}
	per := func(a, b int64) float64 { return float64(b-a) / float64(n) }
	return samples{
		"own": per(empty.Own(), bare.Own()), "own viewed": per(empty.Own(), viewed.Own()),
		"shared":  per(empty.Shmem, bare.Shmem),
		"threads": float64(bare.Threads), "threads viewed": float64(viewed.Threads),
		"cpu": cpu, "cpu viewed": cpuViewed,
	}, nil
}

// rest lets the server settle and then looks at it twice: its usage, and the
// share of a core in per cent that it takes for doing nothing.
func (r *runner) rest(ctx context.Context, t target) (procfs.Usage, float64, error) {
	if err := pause(ctx, r.size.settle); err != nil {
		return procfs.Usage{}, 0, err
	}
	a := t.usage()
	if err := pause(ctx, r.size.idleCPU); err != nil {
		return procfs.Usage{}, 0, err
	}
	b := t.usage()
	return b, 100 * (b.CPU - a.CPU).Seconds() / r.size.idleCPU.Seconds(), nil
}

// each runs do for 0 ≤ i < n, a few at a time, and returns the first error.
func each(n int, do func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, creators)
	for k := range creators {
		wg.Go(func() {
			for i := k; i < n && errs[k] == nil; i += creators {
				errs[k] = do(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// measureStart starts each server again and again, with an empty folder the
// first time of each turn and with what the first start left the second time.
func measureStart(ctx context.Context, r *runner) error {
	var again, first []stats.Pair
	for i := range r.size.starts {
		if err := r.calm(ctx); err != nil {
			return err
		}
		peers := r.peers()
		var a, f stats.Pair
		for k := range peers {
			k ^= i & 1
			dir, err := r.folder()
			if err != nil {
				return err
			}
			for _, into := range []*stats.Pair{&f, &a} {
				took, err := peers[k].start(ctx, dir)
				if err != nil {
					return err
				}
				if p, ok := peers[k].(*ptydTarget); ok {
					r.version = p.version
				}
				peers[k].stop()
				ms := took.Seconds() * 1000
				if k == 0 {
					into.Ptyd = ms
				} else {
					into.Baseline = ms
				}
			}
		}
		again, first = append(again, a), append(first, f)
		fmt.Fprint(r.Log, ".")
	}
	r.add("start", "Start to first HTTP answer, ms", again, atMost(30))
	r.add("start", "— the very first start (empty state directory), ms", first, atMost(30))
	return nil
}

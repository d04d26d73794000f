package bench

import (
	"context"
	"sync"
	"time"

	"github.com/ptyd/ptyd/internal/bench/workload"
)

func measureOne(ctx context.Context, r *runner) error {
	p, err := r.turns(ctx, r.size.reps, func(ctx context.Context, t target) (samples, error) {
		return r.flood(ctx, t, r.size.oneBytes, 1)
	})
	if err != nil {
		return err
	}
	r.add("one", "One viewer, MB/s", p["rate"], ratioAtLeast(0.95))
	r.add("one", "— server CPU, s/GB", p["cpu"], noBar())
	return nil
}

func measureTen(ctx context.Context, r *runner) error {
	p, err := r.turns(ctx, r.size.reps, func(ctx context.Context, t target) (samples, error) {
		return r.flood(ctx, t, r.size.tenBytes, 10)
	})
	if err != nil {
		return err
	}
	r.add("ten", "Ten viewers of one session, MB/s delivered in all", p["rate"], ratioAtLeast(1.8))
	r.add("ten", "— server CPU, s/GB delivered", p["cpu"], noBar())
	r.add("ten", "— declared as skipped, MB", p["skipped"], noBar())
	return nil
}

// flood lets one session write n bytes and reads them with some viewers. The
// rate counts what all viewers received, until the last one is through.
func (r *runner) flood(ctx context.Context, t target, n uint64, viewers int) (samples, error) {
	id, err := t.create(ctx, child(r.Self, workload.Flood(n)))
	if err != nil {
		return nil, err
	}
	vs := make([]viewer, viewers)
	for i := range vs {
		from := floodStart
		if i == 0 {
			from = 0
		}
		if vs[i], err = t.view(ctx, id, from); err != nil {
			return nil, err
		}
		defer vs[i].close()
		if i == 0 {
			if err := awaitReady(vs[0]); err != nil {
				return nil, err
			}
		}
	}
	got := make([]collector, viewers)
	errs := make([]error, viewers)
	var wg sync.WaitGroup
	cpu, begin := t.usage().CPU, time.Now()
	if err := vs[0].input([]byte("g")); err != nil {
		return nil, err
	}
	for i := range vs {
		wg.Go(func() {
			for got[i].at() < floodStart+n && errs[i] == nil {
				var at uint64
				var p []byte
				if at, p, errs[i] = vs[i].next(); errs[i] == nil {
					got[i].add(at, p)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin).Seconds()
	cpu = t.usage().CPU - cpu
	var bytes, skipped float64
	for i, v := range vs {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if err := got[i].check(v.skipped()); err != nil {
			return nil, err
		}
		bytes += float64(got[i].bytes)
		skipped += float64(v.skipped())
	}
	return samples{"rate": bytes / 1e6 / took, "cpu": cpu.Seconds() / (bytes / 1e9), "skipped": skipped / 1e6}, nil
}

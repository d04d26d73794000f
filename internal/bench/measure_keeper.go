package bench

import "context"

// measureKeeper measures the daemon beside itself without a keeper: what it
// costs that output and sessions outlive the process that serves them.
func measureKeeper(ctx context.Context, r *runner) error {
	p, err := r.turnsOf(ctx, r.keeperPeers, r.size.reps, func(ctx context.Context, t target) (samples, error) {
		return r.flood(ctx, t, r.size.oneBytes, 1)
	})
	if err != nil {
		return err
	}
	r.add("keeper", "One viewer, MB/s, beside the daemon with --no-keeper", p["rate"], ratioAtLeast(0.95))
	r.add("keeper", "— server CPU, s/GB", p["cpu"], noBar())
	return nil
}

// keeperPeers are the daemon as it is and the daemon that runs alone.
func (r *runner) keeperPeers() []target {
	if r.SelfCheck {
		return r.peers()
	}
	return []target{&ptydTarget{binary: r.Ptyd}, &ptydTarget{binary: r.Ptyd, args: []string{"--no-keeper"}}}
}

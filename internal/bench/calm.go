package bench

import (
	"context"
	"time"

	"github.com/ptyd/ptyd/internal/bench/procfs"
)

const (
	// calmBelow is how many processors may be busy with other things when a
	// measurement begins. Two viewers and a server need the rest.
	calmBelow = 0.3
	// calmLook is how long one look takes.
	calmLook = 200 * time.Millisecond
)

// calm waits for a moment in which the machine does little else, but not
// longer than the run's patience, and remembers how busy it was in the end.
// It is called while the servers that are up are idle.
func (r *runner) calm(ctx context.Context) error {
	if r.size.patience == 0 {
		return ctx.Err()
	}
	end := time.Now().Add(r.size.patience)
	for {
		begin, before := time.Now(), procfs.Busy()
		if err := pause(ctx, calmLook); err != nil {
			return err
		}
		busy := float64(procfs.Busy()-before) / float64(time.Since(begin))
		if busy < calmBelow || time.Now().After(end) {
			r.others = append(r.others, busy)
			return nil
		}
	}
}

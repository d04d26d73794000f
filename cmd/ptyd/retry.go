package main

import (
	"context"
	"time"

	"github.com/ptyd/ptyd/internal/client"
)

// retryFor is how long commands that follow a session try again when the
// daemon, which had answered, is away: it may be restarting.
const retryFor = time.Minute

// retrier decides whether to try again.
type retrier struct {
	ok    bool // the daemon has answered before
	since time.Time
	pause time.Duration
}

// again waits and reports true where another try makes sense after err.
func (r *retrier) again(ctx context.Context, err error) bool {
	if !r.ok || !client.Lost(err) || ctx.Err() != nil {
		return false
	}
	if r.since.IsZero() {
		r.since, r.pause = time.Now(), 50*time.Millisecond
	}
	if time.Since(r.since) > retryFor {
		return false
	}
	t := time.NewTimer(r.pause)
	defer t.Stop()
	r.pause = min(2*r.pause, time.Second)
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package daemon

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/failpoint"
)

const (
	// firstSweep lets a start be over before anything is cleaned.
	firstSweep = 5 * time.Second
	sweepEvery = time.Minute
	// pruneEvery is coarse: retention is in days.
	pruneEvery = time.Hour
)

// housekeep removes what is old and looks at the disk until ctx ends.
func (d *Daemon) housekeep(ctx context.Context) {
	timer := time.NewTimer(firstSweep)
	defer timer.Stop()
	var pruned time.Time
	short := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(sweepEvery)
		if now := time.Now(); now.Sub(pruned) >= pruneEvery {
			pruned = now
			d.prune(ctx)
		}
		d.screens.Expire(time.Now())
		err := d.checkDisk()
		if (err != nil) != short {
			if short = err != nil; short {
				d.log.Error("new sessions are refused", zap.Error(err))
			} else {
				d.log.Info("the disk has room again; new sessions are taken")
			}
		}
	}
}

func (d *Daemon) prune(ctx context.Context) {
	c := d.config()
	now := failpoint.Now()
	if err := d.store.Prune(ctx, now); err != nil && ctx.Err() == nil {
		d.log.Warn("old rows not removed", zap.Error(err))
	}
	var before time.Time
	if c.AuditKeep > 0 {
		before = now.Add(-c.AuditKeep)
	}
	n, err := d.store.PruneAudit(ctx, before, c.AuditMaxRows)
	switch {
	case err != nil && ctx.Err() == nil:
		d.log.Warn("old audit rows not removed", zap.Error(err))
	case n > 0:
		d.log.Info("old audit rows removed", zap.Int64("rows", n))
	}
}

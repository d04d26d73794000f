package api

import (
	"context"

	"github.com/ptyd/ptyd/internal/ptymgr"
)

// CountSessions counts all sessions by state. Every state has an entry, so that
// a metric does not vanish when its last session does.
func CountSessions(ctx context.Context, mgr *ptymgr.Manager) (map[string]int, error) {
	n := map[string]int{}
	for _, s := range []ptymgr.State{ptymgr.Starting, ptymgr.Running, ptymgr.Exited, ptymgr.Lost} {
		n[string(s)] = 0
	}
	f := ptymgr.Filter{Limit: 500}
	for {
		infos, next, err := mgr.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, in := range infos {
			n[string(in.State)]++
		}
		if next == "" {
			return n, nil
		}
		f.After = next
	}
}

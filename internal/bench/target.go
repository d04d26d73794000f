package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ptyd/ptyd/internal/bench/procfs"
)

// target is one server under measurement. Between start and stop it runs as a
// fresh process.
type target interface {
	name() string
	// start returns the time from before the start to the first HTTP answer.
	// dir is an empty folder, or, to start again, one that the same target used.
	start(ctx context.Context, dir string) (time.Duration, error)
	stop()
	usage() procfs.Usage
	// create starts argv in a new session.
	create(ctx context.Context, argv []string) (id string, err error)
	// view attaches to a session. from is how much of its output came before:
	// ptyd says that itself, the baseline cannot.
	view(ctx context.Context, id string, from uint64) (viewer, error)
	// contact is what another process needs to view sessions.
	contact() contact
}

// contact travels to the process that views the flooding sessions.
type contact struct {
	Kind  string   `json:"kind"`
	Addr  string   `json:"addr"`
	Token string   `json:"token,omitempty"`
	IDs   []string `json:"ids"`
}

func (c contact) view(ctx context.Context, id string) (viewer, error) {
	switch c.Kind {
	case "ptyd":
		return dialPtyd(ctx, c.Addr, c.Token, id)
	case "baseline":
		return dialBaseline(ctx, c.Addr, id, 0)
	}
	return nil, fmt.Errorf("unknown kind of server %q", c.Kind)
}

package daemon

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/api"
	"github.com/ptyd/ptyd/internal/keeper"
	"github.com/ptyd/ptyd/internal/notifyproto"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/store"
)

// keeperTime is how long the keeper may take to answer: it never does anything
// that lasts, but the machine may be busy.
const keeperTime = 5 * time.Second

// status asks the keeper what it is; false where it does not say.
func (k *Keeper) status(ctx context.Context) (keeper.Status, bool) {
	ctx, cancel := context.WithTimeout(ctx, keeperTime)
	defer cancel()
	text, err := k.store.Ask(ctx, notifyproto.KeyStatus+"=1")
	if err != nil {
		return keeper.Status{}, false
	}
	return keeper.ParseStatus(text)
}

var errNoKeeper = problem.New(problem.Unsupported, "this daemon runs without a keeper: its sessions end with it").
	WithHint("end it and start the other binary; without --no-keeper next time")

// Upgrade implements api.Daemon. All that can be known beforehand is checked
// before anything stops.
func (d *Daemon) Upgrade(ctx context.Context, path string, oneWay bool) (u api.Upgrade, err error) {
	if d.keeper == nil {
		return u, errNoKeeper
	}
	if !d.upgrading.CompareAndSwap(false, true) {
		return u, problem.New(problem.Conflict, "another upgrade is being checked").WithHint("wait for it, and look at `ptyd status`")
	}
	defer d.upgrading.Store(false)
	if path == "" {
		st, ok := d.keeper.status(ctx)
		if !ok || st.Origin == "" {
			return u, problem.Field("path", "the keeper does not say which file it was started from").WithHint("name one")
		}
		path = st.Origin
	}
	real, err := trusted(path)
	if err != nil {
		return u, err
	}
	t, err := ask(ctx, real, d.args)
	if err != nil {
		return u, err
	}
	known, err := store.KnownSchema()
	if err != nil {
		return u, err
	}
	have, err := d.store.Schema(ctx)
	if err != nil {
		return u, err
	}
	if err := t.refusal(formats(), known.Known, have, oneWay); err != nil {
		return u, err
	}
	u = d.change(ctx)
	u.To = api.Binary{Version: t.Version, Build: t.Commit, Path: real}
	if t.Schema > have.Known {
		u.Migrates = &api.Migration{From: have.Known, To: t.Schema}
	}
	d.log.Info("upgrade", zap.String("path", real), zap.String("to", t.describe()), zap.Int("schema", t.Schema))
	return u, d.keeper.request(ctx, notifyproto.KeyUpgrade+"="+real)
}

// Restart implements api.Daemon.
func (d *Daemon) Restart(ctx context.Context) (u api.Upgrade, err error) {
	if d.keeper == nil {
		return u, errNoKeeper
	}
	u = d.change(ctx)
	u.To = u.From
	d.log.Info("restart")
	return u, d.keeper.request(ctx, notifyproto.KeyRestart+"=1")
}

// change is what stands before a change of the worker.
func (d *Daemon) change(ctx context.Context) api.Upgrade {
	st, _ := d.keeper.status(ctx)
	return api.Upgrade{
		From: api.Binary{Version: d.build.Version, Build: d.build.Commit, Path: st.Binary}, Generation: d.keeper.Generation,
		Sessions: d.mgr.Stats().Running, Upgrades: st.Upgrades,
	}
}

// request asks the keeper for a change. From its consent on this process has
// SIGTERM; what it answers to a client still goes out.
func (k *Keeper) request(ctx context.Context, what string) error {
	// Its consent comes with SIGTERM, which ends ctx where that is a request's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keeperTime)
	defer cancel()
	refused, err := k.store.Ask(ctx, what)
	if err != nil {
		return problem.New(problem.Unavailable, "the keeper does not answer").Because(err)
	}
	if refused != "" {
		return problem.New(problem.Conflict, "the keeper refuses: %s", refused)
	}
	return nil
}

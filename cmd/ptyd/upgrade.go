package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/problem"
)

const (
	// upgradeTime is how long a new worker may take, the rollback included: the
	// keeper gives up the one that goes after 30 s and the one that comes after
	// another 30.
	upgradeTime = 3 * time.Minute
	// upgradePoll is how often the command looks: a new worker answers after
	// some tens of milliseconds.
	upgradePoll = 20 * time.Millisecond
)

func newUpgrade(g *globals) *cobra.Command {
	var oneWay bool
	cmd := &cobra.Command{
		Use:   "upgrade [PATH]",
		Short: "Go on with another binary; sessions are kept",
		Long: `Go on with another binary: sessions are kept with their processes, output and
input, and viewers come back by themselves. PATH is the binary; without it, it is
the file that the daemon was started from, which a package or "make install" has
replaced by then.

The new binary is asked first whether it can take over: what it does not
understand (another version of what lies in memory, a setting that it does not
know, a migration of the database after which the present release could not come
back) is refused before anything stops. When its worker does not come up, the
old binary goes on; this command then says why and returns 125.

It takes an admin. To name a PATH it takes the daemon's own socket, without a
token; the file must belong to root or to the daemon's user, and nobody else may
be able to write or replace it.

With --json: {"from","to","migrates","generation","sessions","adopted","lost",
"keeper","worker"}.`,
		Example: `  make install && ptyd upgrade
  ptyd upgrade /opt/ptyd-1.4/ptyd
  ptyd upgrade --json | jq -r .to.version`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVar(&oneWay, "one-way", false, "also when the database is migrated so that the present release can't come back")
	cmd.RunE = action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
		path := ""
		if len(args) > 0 {
			if args[0] == "" {
				return problem.Field("path", "it is empty").WithHint("leave it out for the file that the daemon was started from")
			}
			if !c.Local() {
				return problem.Field("path", "a binary can only be named beside the daemon").WithHint("run this on the daemon's machine, without --url")
			}
			abs, err := filepath.Abs(args[0])
			if err != nil {
				return problem.Field("path", "%v", err)
			}
			path = abs
		}
		u, err := c.Upgrade(ctx, path, oneWay)
		if err != nil {
			return err
		}
		if u.Migrates != nil {
			note(cmd, "the database's schema goes from version %d to %d", u.Migrates.From, u.Migrates.To)
		}
		return changed(ctx, cmd, g, c, u, func(st client.State) bool { return st.Keeper != nil && st.Keeper.Upgrades > u.Upgrades })
	})
	return cmd
}

func newRestart(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "restart",
		Short: "Go on with a new worker; sessions are kept",
		Long: `Go on with a new worker of the same binary: settings that wait for a restart
hold then. Sessions are kept, and viewers come back by themselves. It takes an
admin.

With --json: {"from","to","migrates","generation","sessions","adopted","lost",
"keeper","worker"}.`,
		Example: `  ptyd restart
  ptyd restart --json | jq .generation`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			u, err := c.Restart(ctx)
			if err != nil {
				return err
			}
			return changed(ctx, cmd, g, c, u, func(client.State) bool { return true })
		}),
	}
}

// changeDone is what a change of the worker came to.
type changeDone struct {
	From       client.Binary     `json:"from"`
	To         client.Binary     `json:"to"`
	Migrates   *client.Migration `json:"migrates"`
	Generation int               `json:"generation"` // of the new worker
	Sessions   int               `json:"sessions"`   // that ran before
	Adopted    int               `json:"adopted"`    // that the new worker took over
	Lost       int               `json:"lost"`
	Keeper     int               `json:"keeper"`
	Worker     int               `json:"worker"`
}

// changed waits until u is done, which is when another worker answers and also
// says so, and tells of it.
func changed(ctx context.Context, cmd *cobra.Command, g *globals, c *client.Client, u client.Upgrade, also func(client.State) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, upgradeTime,
		problem.New(problem.Unavailable, "no new worker answers after %s", upgradeTime).WithHint("the daemon's log says what it waits for; see also `ptyd status`"))
	defer cancel()
	tick := time.NewTicker(upgradePoll)
	defer tick.Stop()
	for {
		st, err := c.State(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !client.Lost(err) && !errors.Is(err, context.DeadlineExceeded):
			return err
		case err != nil || st.Worker.Generation <= u.Generation: // on its way
		case st.UpgradeFailed != "":
			return problem.New(problem.Unsupported, "the upgrade failed: %s", st.UpgradeFailed).
				WithHint("ptyd %s goes on with all sessions; the daemon's log has what the other one said", st.Worker.Version)
		case also(st):
			return tellChange(cmd, g, u, st)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func tellChange(cmd *cobra.Command, g *globals, u client.Upgrade, st client.State) error {
	d := changeDone{
		From: u.From, To: u.To, Migrates: u.Migrates, Generation: st.Worker.Generation, Sessions: u.Sessions,
		Adopted: st.Worker.Adopted, Lost: st.Worker.Lost, Worker: st.Worker.PID,
	}
	if st.Keeper != nil {
		d.Keeper = st.Keeper.PID
	}
	if st.Worker.Lost > 0 {
		note(cmd, "%d sessions were lost; the daemon's log says why", st.Worker.Lost)
	}
	return show(cmd, g, d, func(w io.Writer) {
		kept := fmt.Sprintf("%d sessions go on", d.Adopted)
		if d.Adopted == 1 {
			kept = "1 session goes on"
		}
		fmt.Fprintf(w, "ptyd %s, it was %s; worker %d (generation %d); %s\n", st.Worker.Version, u.From.Version, d.Worker, d.Generation, kept)
	})
}

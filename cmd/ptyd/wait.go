package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/problem"
)

// statusTimeout is the exit status when the time is over.
const statusTimeout = 124

// waitPiece is how long one request waits; the daemon allows 50 seconds.
const waitPiece = 45 * time.Second

func newWait(g *globals) *cobra.Command {
	var cond client.Conditions
	var idle, timeout duration
	cmd := &cobra.Command{
		Use:   "wait NAME [--exit] [--text RE] [--idle DURATION]",
		Short: "Wait until a session ends, prints something, or is quiet",
		Long: `Wait until a condition holds; with several, until the first of them does. Without
any it is --exit.

The exit status is 0 when a condition holds, 124 when the time is over, and 125
when no condition can hold any more, because the session has ended, or on an
error of ptyd.

--text takes a regular expression (RE2) and looks at the raw output that is kept,
control sequences and all, from the oldest byte on: what was printed before
counts. The conditions hold as long as they are true, so that nothing is missed
between starting a session and waiting for it.

With --json the result is printed in every case: {"matched":"exit"|"text"|"idle"
|null,"impossible","timed_out","next","session","match"}.`,
		Example: `  ptyd wait build --exit
  ptyd wait web --text 'listening on .*:\d+' --timeout 30s
  ptyd wait repl --idle 2s --exit
  ptyd wait build && ptyd ls --json | jq '.[] | select(.name=="build").exit_code'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSessions(g, 1),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			f := cmd.Flags()
			if f.Changed("text") && cond.Text == "" {
				return problem.Field("text", "an empty text is in every output")
			}
			if f.Changed("idle") && idle < duration(time.Millisecond) {
				return problem.Field("idle", "must be at least 1ms")
			}
			if !cond.Exit && !f.Changed("text") && !f.Changed("idle") {
				cond.Exit = true
			}
			cond.Idle = time.Duration(idle)
			var deadline time.Time
			if f.Changed("timeout") {
				deadline = time.Now().Add(time.Duration(timeout))
			}
			return wait(ctx, cmd, g, c, args[0], cond, deadline)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&cond.Exit, "exit", false, "until the session has ended")
	f.StringVar(&cond.Text, "text", "", "until the output matches the regular expression `RE`")
	f.Var(&idle, "idle", "until nothing was printed for so long")
	f.Var(&timeout, "timeout", "give up after so long; 0 looks once")
	for _, name := range []string{"text", "idle", "timeout"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// wait asks again and again until there is an answer. A zero deadline is none.
func wait(ctx context.Context, cmd *cobra.Command, g *globals, c *client.Client, ref string, cond client.Conditions, deadline time.Time) error {
	var retry retrier
	name := ref
	for {
		piece := waitPiece
		if !deadline.IsZero() {
			piece = min(piece, max(time.Until(deadline), 0))
		}
		r, err := c.Wait(ctx, ref, cond, piece)
		if err != nil {
			if (deadline.IsZero() || time.Now().Before(deadline)) && retry.again(ctx, err) {
				continue
			}
			if retry.ok && client.Lost(err) && !deadline.IsZero() && !time.Now().Before(deadline) {
				return &exitError{Status: statusTimeout, Err: problem.New(problem.Unavailable, "the time is over, and the daemon is away")}
			}
			return err
		}
		// From now on by its id: another session may get the name meanwhile.
		ref, name = r.Session.ID, r.Session.String()
		retry = retrier{ok: true}
		cond.From = r.Next
		timedOut := r.Matched == nil && !r.Impossible && !deadline.IsZero() && !time.Now().Before(deadline)
		if r.Matched == nil && !r.Impossible && !timedOut {
			continue
		}
		if err := show(cmd, g, struct {
			client.WaitResult
			TimedOut bool `json:"timed_out"`
		}{r, timedOut}, nil); err != nil {
			return err
		}
		switch {
		case timedOut:
			return &exitError{Status: statusTimeout, Err: problem.New(problem.Unavailable, "%s: the time is over", name)}
		case r.Impossible:
			return problem.New(problem.SessionEnded, "%s is %s: what is waited for cannot come any more", name, state(r.Session))
		}
		return nil
	}
}

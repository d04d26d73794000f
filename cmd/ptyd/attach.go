package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/client/tty"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

const (
	// replayTail is how much of the past an attaching terminal is shown: many
	// screens, and little enough to be over at once.
	replayTail = 1 << 20
	// signalTimeout bounds passing a signal on.
	signalTimeout = 5 * time.Second
)

// viewing is how a session is shown in this terminal.
type viewing struct {
	detachKeys string
	readOnly   bool
	reconnect  duration
}

// flags adds the flags that run and attach share.
func (v *viewing) flags(cmd *cobra.Command) {
	keys := os.Getenv("PTYD_DETACH_KEYS")
	if keys == "" {
		keys = tty.DefaultDetachKeys
	}
	v.reconnect = duration(5 * time.Minute)
	f := cmd.Flags()
	f.StringVar(&v.detachKeys, "detach-keys", keys, "`KEYS` that leave the session running and give the terminal back, such as C-a,d; none for none (PTYD_DETACH_KEYS)")
	f.Var(&v.reconnect, "reconnect", "how long to try again when the connection is lost")
	_ = cmd.RegisterFlagCompletionFunc("detach-keys", cobra.NoFileCompletions)
}

func newAttach(g *globals) *cobra.Command {
	var v viewing
	cmd := &cobra.Command{
		Use:   "attach NAME",
		Short: "Show a session in this terminal",
		Long: `Show a session in this terminal and type into it. Pressing Ctrl-\ twice detaches:
the session goes on. A single Ctrl-\ reaches the session after half a second.
The terminal is left as it was: its settings, and every mode that the session
switched on.

When the connection is lost, attach comes back by itself and goes on where it
was; every byte is shown once, and every key arrives once.

Where standard input or output is no terminal, output is copied to standard
output and standard input is typed into the session; its end is passed on as
Ctrl-D.

The exit status is the session's, also when it has ended already: 128+N after a
signal, 125 when it is unknown. Detaching is 0. See: ptyd help exit-status.`,
		Example: `  ptyd attach build
  ptyd attach --read-only build
  ptyd attach --detach-keys C-a,d build
  ptyd attach build </dev/null >build.log`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSessions(g, 1),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			keys, err := v.keys()
			if err != nil {
				return err
			}
			// First by the API, whose errors say more.
			s, err := c.Session(ctx, args[0])
			if err != nil {
				return err
			}
			return v.view(ctx, cmd, g, c, s, keys, false)
		}),
	}
	v.flags(cmd)
	cmd.Flags().BoolVarP(&v.readOnly, "read-only", "r", false, "watch without typing, and without changing the size")
	return cmd
}

func (v *viewing) keys() ([]tty.Key, error) {
	keys, err := tty.ParseDetachKeys(v.detachKeys)
	if err != nil {
		return nil, problem.Field("detach-keys", "%v", err)
	}
	return keys, nil
}

// view shows a session until it ends or is left. fresh: it was started for
// this, so that signals meant for the command are passed on to it.
func (v *viewing) view(ctx context.Context, cmd *cobra.Command, g *globals, c *client.Client, s client.Session, keys []tty.Key, fresh bool) error {
	in, out := os.Stdin, os.Stdout
	raw := tty.IsTerminal(in) && tty.IsTerminal(out) && !stdinTaken(cmd, g)
	o := client.AttachOptions{
		Session: s.ID, Kind: wire.KindInteractive, ReadOnly: v.readOnly, Reconnect: time.Duration(v.reconnect),
	}
	var epoch wire.Epoch
	if err := epoch.UnmarshalText([]byte(s.Epoch)); err != nil {
		return problem.New(problem.Internal, "the daemon's answer is not understood: %v", err)
	}
	switch {
	case fresh: // nothing is kept from before: all of it is live
		o.From = &client.Position{Epoch: epoch}
	case raw:
		tail := uint64(replayTail)
		o.Tail = &tail
	default: // bytes as they are, without what prepares a screen
		o.From = &client.Position{Epoch: epoch, Offset: s.OldestOffset}
	}
	if raw {
		o.Cols, o.Rows = tty.Size(out)
	}
	stream, err := c.Attach(ctx, o)
	if err != nil {
		return err
	}
	defer stream.Close()

	readOnly := stream.Attached().ReadOnly
	if readOnly && !v.readOnly && raw {
		note(cmd, "your role lets you watch %s, not type into it", s)
	}
	asked := map[os.Signal]bool{}
	res, err := tty.Attach(ctx, stream, tty.Options{
		In: in, Out: out, Raw: raw, Keys: keys, NoInput: readOnly || stdinTaken(cmd, g),
		Signal: func(sig os.Signal) bool {
			// The first of its kind is meant for the command, as it would be
			// without ptyd in between; a second one ends the waiting.
			if !fresh || raw || asked[sig] || sig == unix.SIGHUP {
				return false
			}
			asked[sig] = true
			ctx, cancel := context.WithTimeout(ctx, signalTimeout)
			defer cancel()
			return c.Signal(ctx, s.ID, unix.SignalName(sig.(unix.Signal))) == nil
		},
	})
	stream.Close()
	if problem.Is(err, problem.NotFound) && res.Exit == nil {
		// Its output is gone, as after a restart of the daemon; how it ended
		// may still be known.
		if now, e := c.Session(ctx, s.ID); e == nil && now.Ended() {
			note(cmd, "the rest of the output of %s is lost: the daemon was restarted", s)
			res.Exit, err = &wire.Exit{Code: now.ExitCode, Signal: now.Signal, State: now.State}, nil
		}
	}
	return v.ended(cmd, g, s, res, err)
}

// ended tells how viewing a session ended, and returns the exit status.
func (v *viewing) ended(cmd *cobra.Command, g *globals, s client.Session, res tty.Result, err error) error {
	if res.MidLine {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr())
	}
	if res.Skipped > 0 {
		note(cmd, "%d bytes of output were skipped: they came faster than they could be shown, and are no longer kept", res.Skipped)
	}
	if res.InputLost > 0 {
		note(cmd, "%d bytes of input may not have reached the session", res.InputLost)
	}
	if err != nil {
		return err
	}
	status, known := 0, true
	switch {
	case res.Detached:
		if !g.JSON {
			note(cmd, "detached from %s", s)
		}
	case res.Signal != nil:
		status = 128 + int(res.Signal.(unix.Signal))
		note(cmd, "%s goes on", s)
	case res.OutGone:
		status = 128 + int(unix.SIGPIPE)
		note(cmd, "nobody reads the output any more; %s goes on", s)
	case res.Exit != nil:
		status, known = client.ExitStatus(*res.Exit)
	}
	if g.JSON {
		line := jsonLine(struct {
			Session  string     `json:"session"`
			Detached bool       `json:"detached"`
			Exit     *wire.Exit `json:"exit"`
		}{s.ID, res.Exit == nil, res.Exit})
		// Standard output holds what the session printed.
		_, _ = cmd.ErrOrStderr().Write(line)
	}
	if !known {
		return problem.New(problem.SessionEnded, "%s is %s: its exit status is unknown", s, res.Exit.State)
	}
	if status != 0 {
		return &exitError{Status: status}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/problem"
)

func newResize(g *globals) *cobra.Command {
	var cols, rows int
	cmd := &cobra.Command{
		Use:   "resize NAME [COLSxROWS]",
		Short: "Set the size of a session's terminal",
		Long: `Set the size of a session's terminal. Without both numbers the other one stays as
it is. Somebody who types into the session in a window of another size sets the
size again.`,
		Example: `  ptyd resize build 120x40
  ptyd resize build --cols 120 --rows 40`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeSessions(g, 1, "running"),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			flags := cmd.Flags().Changed("cols") || cmd.Flags().Changed("rows")
			switch {
			case len(args) == 2 && flags:
				return problem.Field("size", "give the size once: as COLSxROWS, or by --cols and --rows")
			case len(args) == 2:
				var err error
				if cols, rows, err = parseSize(args[1]); err != nil {
					return err
				}
			case !flags:
				return problem.Field("size", "no size is given").WithHint("such as: %s %s 120x40", cmd.CommandPath(), args[0])
			case cols == 0 || rows == 0:
				s, err := c.Session(ctx, args[0])
				if err != nil {
					return err
				}
				if !cmd.Flags().Changed("cols") {
					cols = s.Cols
				}
				if !cmd.Flags().Changed("rows") {
					rows = s.Rows
				}
			}
			s, err := c.Resize(ctx, args[0], cols, rows)
			if err != nil {
				return err
			}
			return show(cmd, g, s, nil)
		}),
	}
	cmd.Flags().IntVar(&cols, "cols", 0, "width")
	cmd.Flags().IntVar(&rows, "rows", 0, "height")
	return cmd
}

// parseSize reads COLSxROWS.
func parseSize(s string) (cols, rows int, err error) {
	c, r, ok := strings.Cut(strings.ToLower(s), "x")
	cols, e1 := strconv.Atoi(c)
	rows, e2 := strconv.Atoi(r)
	if !ok || e1 != nil || e2 != nil {
		return 0, 0, problem.Field("size", "%q is not COLSxROWS, such as 120x40", s)
	}
	return cols, rows, nil
}

func newRename(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "rename NAME NEW",
		Short: "Give a session another name",
		Long: `Give a session another name. Names are unique among the living sessions of a
user; the id of a session stays the same.`,
		Example: `  ptyd rename build build-old
  ptyd rename "$(ptyd run -d -- top)" monitor`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeSessions(g, 1),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := c.Rename(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return show(cmd, g, s, nil)
		}),
	}
}

func newKill(g *globals) *cobra.Command {
	var sig string
	var all bool
	var grace duration
	cmd := &cobra.Command{
		Use:   "kill NAME...",
		Short: "End sessions, or send them a signal",
		Long: `End sessions: the whole process tree gets SIGTERM, and after a grace SIGKILL. The
command returns when all have ended. They stay in ptyd ls, with their output,
until they are removed.

With --signal the signal goes to the foreground process group of the session's
terminal, and the command does not wait.

With --json, one NAME gives an object, several and --all give an array.`,
		Example: `  ptyd kill build
  ptyd kill --signal INT build
  ptyd kill --grace 30s db
  ptyd kill --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return errors.New("give the names of sessions, or --all")
			}
			return nil
		},
		ValidArgsFunction: completeSessions(g, 0, "running"),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			if all {
				list, err := c.Sessions(ctx, client.Filter{States: []string{"starting", "running"}})
				if err != nil {
					return err
				}
				for _, s := range list {
					args = append(args, s.ID)
				}
			}
			return eachSession(cmd, g, args, all, func(ref string) (any, error) {
				if sig != "" {
					if err := c.Signal(ctx, ref, sig); err != nil {
						return nil, err
					}
					return c.Session(ctx, ref)
				}
				var g *time.Duration
				if cmd.Flags().Changed("grace") {
					g = (*time.Duration)(&grace)
				}
				return c.CloseSession(ctx, ref, g)
			}, all)
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&sig, "signal", "s", "", "send `SIGNAL`, such as INT, SIGHUP or 9, instead of ending the session")
	f.BoolVar(&all, "all", false, "all living sessions that you may see")
	f.Var(&grace, "grace", "time between SIGTERM and SIGKILL; by default the daemon's")
	cmd.MarkFlagsMutuallyExclusive("signal", "grace")
	_ = cmd.RegisterFlagCompletionFunc("signal", completeFixed(client.SignalNames()...))
	return cmd
}

func newRm(g *globals) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "rm NAME...",
		Aliases: []string{"remove"},
		Short:   "Remove ended sessions and their output",
		Long: `Remove ended sessions: their output and exit status are gone after that. A session
that runs is not removed, unless --force ends it first.

With --json, one NAME gives an object, several give an array.`,
		Example: `  ptyd rm build
  ptyd rm --force build web
  ptyd ls -q --state exited | xargs -r ptyd rm`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeSessions(g, 0),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			return eachSession(cmd, g, args, false, func(ref string) (any, error) {
				return done{Session: ref, OK: true}, c.Remove(ctx, ref, force)
			}, false)
		}),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "end it first if it runs")
	return cmd
}

// eachSession does something to each session, goes on after an error, and
// fails if one failed. The result is an array where array is set or refs are
// several. gone: a session that is not there any more is as good as done.
func eachSession(cmd *cobra.Command, g *globals, refs []string, array bool, do func(ref string) (any, error), gone bool) error {
	results := []any{}
	var failed error
	for _, ref := range refs {
		res, err := do(ref)
		switch {
		case err == nil:
			results = append(results, res)
		case gone && (problem.Is(err, problem.NotFound) || problem.Is(err, problem.SessionEnded)):
		case len(refs) == 1:
			return err
		default:
			if failed != nil {
				_ = report(cmd, g, failed)
			}
			failed = err
			if client.Lost(err) {
				return failed // so will all others
			}
		}
	}
	var err error
	if array || len(refs) > 1 {
		err = show(cmd, g, results, func(w io.Writer) {
			if array {
				noun := "sessions"
				if len(results) == 1 {
					noun = "session"
				}
				fmt.Fprintln(w, len(results), noun)
			}
		})
	} else {
		err = show(cmd, g, results[0], nil)
	}
	if failed != nil {
		return failed
	}
	return err
}

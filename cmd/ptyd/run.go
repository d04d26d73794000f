package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/client/tty"
	"github.com/ptyd/ptyd/internal/problem"
)

func newRun(g *globals) *cobra.Command {
	var (
		v           viewing
		n           client.NewSession
		detach      bool
		env, labels []string
		key         string
		memory      byteSize
		pids        int
	)
	cmd := &cobra.Command{
		Use:   "run [flags] [--] [CMD [ARG]...]",
		Short: "Start a session, and show it in this terminal",
		Long: `Start a session: CMD with its arguments in a terminal of its own, or the user's
shell. The session belongs to the daemon and goes on when this command ends.

Without -d the session is shown in this terminal as by ptyd attach, and the exit
status is the session's. With -d its id is printed.

Over the socket the session starts in the current directory, otherwise in the
home directory of the daemon's user. It gets the daemon's clean environment and
what --env adds, not the environment of this command.

--memory and --pids bound all of the session's processes together. They need
cgroups with these controllers (see ptyd doctor) and are refused without them.

Where standard input or output is no terminal, SIGINT, SIGTERM and SIGQUIT are
passed on to the session; a second one ends this command and leaves the session.`,
		Example: `  ptyd run
  ptyd run --name build -- make -j4
  ptyd run -d --name web --cwd /srv/web --env PORT=8080 -- ./server
  ptyd run --memory 512M --pids 200 -- ./build.sh
  id=$(ptyd run -d -- bash -c 'sleep 5; exit 3'); ptyd wait "$id" --exit
  echo 'print(6*7)' | ptyd run -- python3`,
		Args: cobra.ArbitraryArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			keys, err := v.keys()
			if err != nil {
				return err
			}
			for name, size := range map[string]int{"cols": n.Cols, "rows": n.Rows} {
				if cmd.Flags().Changed(name) && size < 1 {
					return problem.Field(name, "must be at least 1")
				}
			}
			n.Argv, n.Shell = args, len(args) == 0
			if n.Env, err = pairs("env", env); err != nil {
				return err
			}
			if n.Labels, err = pairs("label", labels); err != nil {
				return err
			}
			if cmd.Flags().Changed("memory") {
				n.Memory = (*int64)(&memory)
			}
			if cmd.Flags().Changed("pids") {
				n.Pids = &pids
			}
			if n.Cwd, err = workDir(c, n.Cwd); err != nil {
				return err
			}
			if !detach && n.Cols == 0 && n.Rows == 0 && tty.IsTerminal(os.Stdin) && tty.IsTerminal(os.Stdout) {
				n.Cols, n.Rows = tty.Size(os.Stdout)
			}
			s, existing, err := c.Create(ctx, n, key)
			if err != nil {
				return err
			}
			if detach {
				return show(cmd, g, s, func(w io.Writer) { fmt.Fprintln(w, s.ID) })
			}
			return v.view(ctx, cmd, g, c, s, keys, !existing)
		}),
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows CMD is CMD's
	f.BoolVarP(&detach, "detach", "d", false, "do not show the session; print its id")
	f.StringVar(&n.Name, "name", "", "name of the session, unique among the living")
	f.StringVar(&n.Cwd, "cwd", "", "`DIR` to start in")
	f.StringArrayVarP(&env, "env", "e", nil, "add `KEY=VALUE` to the environment")
	f.StringArrayVarP(&labels, "label", "l", nil, "label the session with `KEY=VALUE`")
	f.IntVar(&n.Cols, "cols", 0, "width; by default this terminal's, or 80")
	f.IntVar(&n.Rows, "rows", 0, "height; by default this terminal's, or 24")
	f.Var(&memory, "memory", "memory that its processes together may use, such as 512M; 0 is no limit")
	f.IntVar(&pids, "pids", 0, "processes and threads that it may have; 0 is no limit")
	f.BoolVar(&n.NoCheckpoint, "no-checkpoint", false, "never write the output to the daemon's disk: after a reboot nobody can read it")
	f.StringVar(&key, "idempotency-key", "", "repeating the command with the same `KEY` gives the same session")
	v.flags(cmd)
	for _, name := range []string{"name", "env", "label", "cols", "rows", "memory", "pids", "idempotency-key", "reconnect"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	_ = cmd.MarkFlagDirname("cwd")
	return cmd
}

func newRerun(g *globals) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:     "rerun NAME",
		Aliases: []string{"run-again"},
		Short:   "Start an ended or lost session once more",
		Long: `Start a session that has ended, or was lost in a reboot, once more: the same
program and arguments, directory, additions to the environment, size, name and
labels, for the same owner. It is a new session, whose id is printed; in --json
rerun_of is the id of the old one, which stays as it is.

Nothing ever runs again by itself. Where something of a lost session still lives,
it is not run again.`,
		Example: `  ptyd ls --state lost
  ptyd rerun build
  ptyd attach "$(ptyd rerun web)"
  ptyd ls -q --state lost | xargs -r -n 1 ptyd rerun`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSessions(g, 1, "exited", "lost"),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			s, _, err := c.RunAgain(ctx, args[0], key)
			if err != nil {
				return err
			}
			return show(cmd, g, s, func(w io.Writer) { fmt.Fprintln(w, s.ID) })
		}),
	}
	cmd.Flags().StringVar(&key, "idempotency-key", "", "repeating the command with the same `KEY` gives the same session")
	_ = cmd.RegisterFlagCompletionFunc("idempotency-key", cobra.NoFileCompletions)
	return cmd
}

// workDir is where the session starts. Over the network a path of this machine
// means nothing, so none is made up there.
func workDir(c *client.Client, dir string) (string, error) {
	if !c.Local() {
		return dir, nil
	}
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", problem.Field("cwd", "the current directory is gone").WithHint("give --cwd")
		}
		return wd, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", problem.Field("cwd", "the current directory is gone")
	}
	return abs, nil
}

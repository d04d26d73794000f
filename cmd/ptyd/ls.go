package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/client/tty"
)

func newLs(g *globals) *cobra.Command {
	var f client.Filter
	var labels []string
	var quiet bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List sessions",
		Long: `List sessions, the oldest first. Ended ones are kept, with their output and exit
status, until they are removed. An admin sees everybody's.

STATE is starting, running, exited with the exit code or the signal, or lost:
then nobody saw the end. AGE counts from the creation, SIZE is COLSxROWS.`,
		Example: `  ptyd ls
  ptyd ls --state running
  ptyd ls --label job=build --json | jq -r '.[] | select(.exit_code != 0).name'
  ptyd ls -q --state exited | xargs -r ptyd rm`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			var err error
			if f.Labels, err = pairs("label", labels); err != nil {
				return err
			}
			list, err := c.Sessions(ctx, f)
			if err != nil {
				return err
			}
			return show(cmd, g, list, func(w io.Writer) {
				if quiet {
					for _, s := range list {
						fmt.Fprintln(w, s.ID)
					}
					return
				}
				listSessions(w, list)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.States, "state", nil, "only these states: starting, running, exited, lost")
	flags.StringVar(&f.Name, "name", "", "only sessions of this name")
	flags.StringArrayVar(&labels, "label", nil, "only sessions with the label `KEY=VALUE`; all given must match")
	flags.BoolVarP(&quiet, "quiet", "q", false, "print ids alone")
	_ = cmd.RegisterFlagCompletionFunc("state", completeFixed("starting", "running", "exited", "lost"))
	return cmd
}

// listSessions prints the table of ls.
func listSessions(w io.Writer, list []client.Session) {
	owners := map[string]bool{}
	for _, s := range list {
		owners[s.Owner] = true
	}
	head := []string{"NAME", "ID", "STATE", "PID", "AGE", "SIZE", "CMD"}
	const ownerColumn = 2
	if len(owners) > 1 {
		head = slices.Insert(head, ownerColumn, "OWNER")
	}
	rows := [][]string{head}
	now := time.Now()
	for _, s := range list {
		pid := "-"
		if s.PID > 0 && !s.Ended() {
			pid = strconv.Itoa(s.PID)
		}
		row := []string{s.Name, s.ID, state(s), pid, age(now, s.CreatedAt), fmt.Sprintf("%dx%d", s.Cols, s.Rows), quote(s.Argv)}
		if len(owners) > 1 {
			row = slices.Insert(row, ownerColumn, s.OwnerName)
		}
		rows = append(rows, row)
	}
	width := 0
	if tty.IsTerminal(os.Stdout) {
		width, _ = tty.Size(os.Stdout)
	}
	table(w, width, rows)
}

// state is a session's state for people.
func state(s client.Session) string {
	switch {
	case s.State != "exited":
		return s.State
	case s.Signal != nil && *s.Signal != "":
		return "exited " + strings.TrimPrefix(*s.Signal, "SIG")
	case s.ExitCode != nil:
		return "exited " + strconv.Itoa(*s.ExitCode)
	}
	return "exited ?"
}

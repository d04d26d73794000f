package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
)

func newScreen(g *globals) *cobra.Command {
	var ansi bool
	cmd := &cobra.Command{
		Use:   "screen NAME [--ansi]",
		Short: "Show a session's screen as a person sees it",
		Long: `Show what is on a session's screen now, or was when it ended: rows of text,
without the empty ones at the end. Nothing is attached, and the session does not
notice.

--ansi keeps the colours. --json gives all rows and more: rows, cursor (row, col
and visible), alt, title, cwd, cols, revision, approximate, counted from 0; with
--ansi also the member ansi. Approximate says that the beginning of the output is
no longer kept, or that the size the terminal had then is not known, so that the
screen may differ from what was shown.`,
		Example: `  ptyd screen build
  ptyd screen editor --ansi
  ptyd screen editor --json | jq '.rows[.cursor.row]'
  ptyd send repl 'print(6*7)' && ptyd wait repl --idle 1s && ptyd screen repl`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSessions(g, 1),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			format := "text"
			if ansi {
				format = "ansi"
			}
			s, err := c.Screen(ctx, args[0], format)
			if err != nil {
				return err
			}
			if g.JSON {
				return emit(cmd, jsonLine(s))
			}
			n := len(s.Rows)
			for n > 0 && s.Rows[n-1] == "" {
				n--
			}
			if ansi { // an empty row may still have a colour
				return emit(cmd, []byte(strings.TrimRight(s.ANSI, "\r\n")+"\x1b[m\n"))
			}
			if n == 0 {
				return nil
			}
			return emit(cmd, []byte(strings.Join(s.Rows[:n], "\n")+"\n"))
		}),
	}
	cmd.Flags().BoolVar(&ansi, "ansi", false, "keep colours, as control sequences")
	return cmd
}

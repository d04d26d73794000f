package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/problem"
)

// inputPiece is how much of standard input one request types: as much as the
// daemon takes from one client at a time.
const inputPiece = 32 << 10

func newSend(g *globals) *cobra.Command {
	var enter bool
	var keys []string
	cmd := &cobra.Command{
		Use:   "send NAME [TEXT]",
		Short: "Type into a session",
		Long: `Type TEXT into a session, and then the keys. The command ends when all of it is
in the session's terminal, whether or not a program has read it.

TEXT is typed as it is: nothing in it is special, and no line end is added but by
--enter. A single - stands for standard input.

Keys are named Enter, Tab, Esc, Space, Backspace, Up, Down, Left, Right, Home,
End, PageUp, PageDown, Insert, Delete and F1 to F12; C-x is Ctrl with x, M-x is
Alt with x, S-Tab is Shift with Tab; any other single character is itself.`,
		Example: `  ptyd send build 'make test' --enter
  ptyd send editor --keys Esc,:,w,q,Enter
  ptyd send build --keys C-c,Up,Enter
  ptyd send repl - <script.py`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeSessions(g, 1, "running"),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			names := splitKeys(keys)
			if len(args) < 2 && len(names) == 0 && !enter {
				return problem.New(problem.InvalidArgument, "there is nothing to send").WithHint("give TEXT, --keys or --enter")
			}
			if enter && (len(args) < 2 || args[1] == "-") {
				names = append([]string{"Enter"}, names...)
			}
			if len(args) == 2 {
				text := args[1]
				if enter && text != "-" {
					text += "\r" // in one piece: nobody types in between
				}
				if err := sendText(ctx, cmd, g, c, args[0], text); err != nil {
					return err
				}
			}
			if len(names) > 0 {
				if err := c.Input(ctx, args[0], client.Input{Keys: names}); err != nil {
					return err
				}
			}
			return show(cmd, g, done{Session: args[0], OK: true}, nil)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&enter, "enter", false, "press Enter after TEXT")
	f.StringArrayVar(&keys, "keys", nil, "press `KEYS`, separated by commas; a comma alone is itself")
	_ = cmd.RegisterFlagCompletionFunc("keys", cobra.NoFileCompletions)
	return cmd
}

// splitKeys splits lists of keys at their commas. A list that is a single
// comma is that key.
func splitKeys(lists []string) []string {
	var keys []string
	for _, l := range lists {
		if l == "," {
			keys = append(keys, l)
			continue
		}
		keys = append(keys, strings.Split(l, ",")...)
	}
	return keys
}

// sendText types text; "-" is standard input.
func sendText(ctx context.Context, cmd *cobra.Command, g *globals, c *client.Client, ref, text string) error {
	if text != "-" {
		if !utf8.ValidString(text) {
			return c.Input(ctx, ref, client.Input{Base64: []byte(text)})
		}
		if text == "" {
			return nil
		}
		return c.Input(ctx, ref, client.Input{Text: text})
	}
	if stdinTaken(cmd, g) {
		return problem.Field("token-file", "standard input holds the token already").WithHint("give the token by PTYD_TOKEN or a file")
	}
	buf := make([]byte, inputPiece)
	for {
		n, err := io.ReadFull(cmd.InOrStdin(), buf)
		if n > 0 {
			if err := c.Input(ctx, ref, client.Input{Base64: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return problem.New(problem.InvalidArgument, "read standard input: %v", err)
		}
	}
}

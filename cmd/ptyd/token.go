package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/client"
)

// roles are the names of all roles, for completion.
func roles() []string {
	var names []string
	for _, r := range auth.Roles() {
		names = append(names, string(r))
	}
	return names
}

func newToken(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens",
		Long: `Tokens let programs and other machines in. A token belongs to one user, has a
role of at most that user's, and expires. Whoever has it is let in: it is given by
PTYD_TOKEN or --token-file, never as an argument, because everybody on a machine
can see the arguments of its commands.`,
		Example: `  ptyd token create --name ci --role operator --for 30d >token
  ptyd --url https://host:7373 --token-file token ls
  ptyd token revoke ci`,
	}
	cmd.AddCommand(newTokenCreate(g), newTokenLs(g), newTokenRevoke(g))
	return cmd
}

func newTokenCreate(g *globals) *cobra.Command {
	var n client.NewToken
	var ttl duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it",
		Long: `Make a token and print it, alone, on standard output. It is shown this once: the
daemon keeps no copy.`,
		Example: `  ptyd token create --name ci --for 30d >token
  ptyd token create --name grafana --role viewer
  PTYD_TOKEN=$(ptyd token create --for 1h) ptyd --url http://127.0.0.1:7373 ls`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			n.TTLSec = int64(time.Duration(ttl).Round(time.Second) / time.Second)
			if ttl > 0 {
				n.TTLSec = max(n.TTLSec, 1) // 0 would be the daemon's choice
			}
			t, secret, err := c.CreateToken(ctx, n)
			if err != nil {
				return err
			}
			return show(cmd, g, map[string]any{"token": t, "secret": secret}, func(w io.Writer) { fmt.Fprintln(w, secret) })
		}),
	}
	f := cmd.Flags()
	f.StringVar(&n.Name, "name", "", "name of the token")
	f.StringVar(&n.Role, "role", "", "what it may do; by default all that its user may")
	f.StringVar(&n.User, "user", "", "whose it is; by default yours, for others you must be an admin")
	f.Var(&ttl, "for", "how long it is valid, such as 12h or 30d; by default 90 days")
	_ = cmd.RegisterFlagCompletionFunc("role", completeFixed(roles()...))
	_ = cmd.RegisterFlagCompletionFunc("user", completeUsers(g))
	return cmd
}

func newTokenLs(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List tokens",
		Long:    `List your tokens, without their secrets; an admin sees everybody's.`,
		Example: `  ptyd token ls
  ptyd token ls --json | jq -r '.[] | select(.revoked_at == null).name'`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			list, err := c.Tokens(ctx)
			if err != nil {
				return err
			}
			return show(cmd, g, list, func(w io.Writer) {
				rows := [][]string{{"NAME", "ID", "USER", "ROLE", "STATE", "EXPIRES", "LAST USED"}}
				now := time.Now()
				for _, t := range list {
					state := "valid"
					switch {
					case t.RevokedAt != nil:
						state = "revoked"
					case now.After(t.ExpiresAt):
						state = "expired"
					}
					rows = append(rows, []string{t.Name, t.ID, t.UserName, t.Role, state, when(&t.ExpiresAt), when(t.LastUsedAt)})
				}
				table(w, 0, rows)
			})
		}),
	}
}

func newTokenRevoke(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke TOKEN...",
		Short: "End tokens",
		Long: `End tokens, by id or name. Connections that were made with one end at once, and so
does what was made with it: further tokens, login links and web logins.
The secret itself is not an argument: see its id in ptyd token ls.`,
		Example: `  ptyd token revoke ci
  ptyd token revoke t_01jd8x6v8k2m4n6p8q0r2s4t6v`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeTokens(g),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			return eachSession(cmd, g, args, false, func(ref string) (any, error) {
				return done{Name: ref, OK: true}, c.RevokeToken(ctx, ref)
			}, false)
		}),
	}
}

func newLoginLink(g *globals) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "login-link",
		Short: "Print a link that logs a browser in, once",
		Long: `Print a link that logs a browser in. It works once and for a few minutes, and
whoever opens it is the user it was made for.`,
		Example: `  ptyd login-link
  xdg-open "$(ptyd login-link)"
  ptyd login-link --user anna`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			l, err := c.LoginLink(ctx, user)
			if err != nil {
				return err
			}
			return show(cmd, g, l, func(w io.Writer) { fmt.Fprintln(w, l.URL) })
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "whom it logs in; by default you, for others you must be an admin")
	_ = cmd.RegisterFlagCompletionFunc("user", completeUsers(g))
	return cmd
}

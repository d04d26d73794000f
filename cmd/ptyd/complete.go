package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
)

// completeWait bounds how long the shell waits for names after Tab.
const completeWait = time.Second

// completer completes arguments by asking the daemon; when it does not answer
// there is nothing to complete.
func completer(g *globals, most int, ask func(ctx context.Context, c *client.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := connect(cmd, g)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), completeWait)
		defer cancel()
		all, err := ask(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var fit []string
		for _, name := range all {
			if word, _, _ := strings.Cut(name, "\t"); strings.HasPrefix(word, prefix) {
				fit = append(fit, name)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSessions completes up to most names of sessions, 0 for any number.
func completeSessions(g *globals, most int, states ...string) cobra.CompletionFunc {
	return completer(g, most, func(ctx context.Context, c *client.Client) ([]string, error) {
		list, err := c.Sessions(ctx, client.Filter{States: states})
		var names []string
		for _, s := range list {
			names = append(names, s.String()+"\t"+clean(quote(s.Argv)))
		}
		return names, err
	})
}

func completeUsers(g *globals) cobra.CompletionFunc {
	return completer(g, 1, func(ctx context.Context, c *client.Client) ([]string, error) {
		list, err := c.Users(ctx)
		var names []string
		for _, u := range list {
			names = append(names, u.Name)
		}
		return names, err
	})
}

func completeTokens(g *globals) cobra.CompletionFunc {
	return completer(g, 0, func(ctx context.Context, c *client.Client) ([]string, error) {
		list, err := c.Tokens(ctx)
		var names []string
		for _, t := range list {
			if t.RevokedAt == nil {
				names = append(names, t.ID+"\t"+clean(t.Name))
			}
		}
		return names, err
	})
}

func completeGroups(g *globals) cobra.CompletionFunc {
	return completer(g, 1, func(ctx context.Context, c *client.Client) ([]string, error) {
		list, err := c.Groups(ctx)
		var names []string
		for _, gr := range list {
			names = append(names, gr.Name)
		}
		return names, err
	})
}

// completeFixed completes one of a few words.
func completeFixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// newCompletion prints the scripts that make a shell complete commands.
func newCompletion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that makes a shell complete ptyd's commands",
		Long: `Print a script that makes a shell complete ptyd's commands, flags and the names
of sessions, users, groups and tokens. Names come from the daemon that the
environment or the flags before the cursor name.`,
		Example: `  # bash, in ~/.bashrc:
  source <(ptyd completion bash)

  # zsh, in a directory of $fpath:
  ptyd completion zsh > "${fpath[1]}/_ptyd"

  # fish:
  ptyd completion fish > ~/.config/fish/completions/ptyd.fish`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch out := cmd.OutOrStdout(); args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(out)
			default:
				return cmd.Root().GenFishCompletion(out, true)
			}
		},
	}
	return cmd
}

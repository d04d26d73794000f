package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
)

func newGroup(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Add, list and fill groups of users",
		Long:  `Groups are named sets of users.`,
		Example: `  ptyd group add ops
  ptyd group member add ops anna
  ptyd group ls`,
	}
	member := &cobra.Command{
		Use:   "member",
		Short: "Put users into a group, or take them out",
		Long:  `Put users into a group, or take them out.`,
		Example: `  ptyd group member add ops anna
  ptyd group member rm ops anna`,
	}
	member.AddCommand(
		newMember(g, "add", "Put a user into a group", "Put a user into a group. Doing it twice is no error.", (*client.Client).AddMember),
		newMember(g, "rm", "Take a user out of a group", "Take a user out of a group.", (*client.Client).RemoveMember),
	)
	cmd.AddCommand(newGroupAdd(g), newGroupLs(g), newGroupRm(g), member)
	return cmd
}

func newGroupAdd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "add NAME",
		Short: "Add a group",
		Long:  `Add a group without members.`,
		Example: `  ptyd group add ops
  ptyd group add ops --json | jq -r .id`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			gr, err := c.AddGroup(ctx, args[0])
			if err != nil {
				return err
			}
			return show(cmd, g, gr, nil)
		}),
	}
}

func newGroupLs(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List groups and their members",
		Long:    `List groups and their members.`,
		Example: `  ptyd group ls
  ptyd group ls --json | jq -r '.[] | select(.name=="ops").members[]'`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			list, err := c.Groups(ctx)
			if err != nil {
				return err
			}
			return show(cmd, g, list, func(w io.Writer) {
				rows := [][]string{{"NAME", "ID", "MEMBERS"}}
				for _, gr := range list {
					rows = append(rows, []string{gr.Name, gr.ID, strings.Join(gr.Members, " ")})
				}
				table(w, 0, rows)
			})
		}),
	}
}

func newGroupRm(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Remove a group",
		Long:    `Remove a group. Its members stay users.`,
		Example: `  ptyd group rm ops
  ptyd group rm ops --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeGroups(g),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			if err := c.RemoveGroup(ctx, args[0]); err != nil {
				return err
			}
			return show(cmd, g, done{Name: args[0], OK: true}, nil)
		}),
	}
}

func newMember(g *globals, use, short, long string, change func(c *client.Client, ctx context.Context, group, user string) error) *cobra.Command {
	return &cobra.Command{
		Use:     use + " GROUP USER",
		Short:   short,
		Long:    long,
		Example: "  ptyd group member " + use + " ops anna\n  ptyd group member " + use + " ops anna --json",
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return completeGroups(g)(cmd, args, prefix)
			case 1:
				return completeUsers(g)(cmd, nil, prefix)
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			if err := change(c, ctx, args[0], args[1]); err != nil {
				return err
			}
			return show(cmd, g, done{Name: args[0], OK: true}, nil)
		}),
	}
}

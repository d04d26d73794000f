package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/client/tty"
	"github.com/ptyd/ptyd/internal/problem"
)

func newUser(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Add, list and change users",
		Long: `Users own sessions and tokens. Each has a role: a viewer reads, an operator works,
an approver also decides, an admin may do everything and sees everybody's. The
user who owns the state directory is the first admin.

All sessions run with the rights of the daemon's own Unix user, whoever owns
them: an operator's shell can do what the daemon can.`,
		Example: `  ptyd user add anna --role operator
  ptyd login-link --user anna
  ptyd user disable anna`,
	}
	cmd.AddCommand(newUserAdd(g), newUserLs(g), newUserDisable(g, true), newUserDisable(g, false), newUserPasswd(g), newUserRole(g))
	return cmd
}

func newUserAdd(g *globals) *cobra.Command {
	var n client.NewUser
	var uid int
	var passwordFile string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user",
		Long: `Add a user. Without a password the user logs in by a link (ptyd login-link --user)
or comes with a token (ptyd token create --user).`,
		Example: `  ptyd user add anna
  ptyd user add ben --role viewer --password-file ben.txt
  ptyd user add deploy --uid 1001`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			n.Name = args[0]
			if cmd.Flags().Changed("uid") {
				n.UID = &uid
			}
			if cmd.Flags().Changed("password-file") {
				p, err := password(cmd, g, passwordFile)
				if err != nil {
					return err
				}
				n.Password = p
			}
			u, err := c.AddUser(ctx, n)
			if err != nil {
				return err
			}
			return show(cmd, g, u, nil)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&n.Role, "role", "", "viewer, operator, approver or admin; by default operator")
	f.IntVar(&uid, "uid", 0, "the Unix user whose commands over the socket are this user's")
	f.StringVar(&passwordFile, "password-file", "", "`FILE` that holds a password; - is standard input")
	_ = cmd.RegisterFlagCompletionFunc("role", completeFixed(roles()...))
	return cmd
}

func newUserLs(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List users",
		Long:    `List users, with their roles and how they can log in.`,
		Example: `  ptyd user ls
  ptyd user ls --json | jq -r '.[] | select(.disabled).name'`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			list, err := c.Users(ctx)
			if err != nil {
				return err
			}
			return show(cmd, g, list, func(w io.Writer) {
				rows := [][]string{{"NAME", "ID", "ROLE", "UID", "PASSWORD", "STATE"}}
				for _, u := range list {
					uid, pass, state := "-", "no", "enabled"
					if u.UID != nil {
						uid = strconv.Itoa(*u.UID)
					}
					if u.HasPassword {
						pass = "yes"
					}
					if u.Disabled {
						state = "disabled"
					}
					rows = append(rows, []string{u.Name, u.ID, u.Role, uid, pass, state})
				}
				table(w, 0, rows)
			})
		}),
	}
}

func newUserDisable(g *globals, disable bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enable NAME",
		Short: "Let a disabled user in again",
		Long:  `Let a disabled user in again, with the tokens and the password of before.`,
		Example: `  ptyd user enable anna
  ptyd user enable anna --json`,
	}
	if disable {
		cmd = &cobra.Command{
			Use:   "disable NAME",
			Short: "Keep a user out",
			Long: `Keep a user out: logins, tokens and open connections end at once. The user's
sessions go on.`,
			Example: `  ptyd user disable anna
  ptyd user disable anna && ptyd ls --json | jq '.[] | select(.owner_name=="anna").id'`,
		}
	}
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = completeUsers(g)
	cmd.RunE = action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
		u, err := c.ChangeUser(ctx, args[0], client.UserChange{Disabled: &disable})
		if err != nil {
			return err
		}
		return show(cmd, g, u, nil)
	})
	return cmd
}

func newUserRole(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "role NAME ROLE",
		Short: "Give a user another role",
		Long: `Give a user another role. A token of the user keeps its own role, but never counts
for more than the user's.`,
		Example: `  ptyd user role anna admin
  ptyd user role ben viewer`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return roles(), cobra.ShellCompDirectiveNoFileComp
			}
			return completeUsers(g)(cmd, args, prefix)
		},
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			u, err := c.ChangeUser(ctx, args[0], client.UserChange{Role: &args[1]})
			if err != nil {
				return err
			}
			return show(cmd, g, u, nil)
		}),
	}
}

func newUserPasswd(g *globals) *cobra.Command {
	var file string
	var remove bool
	cmd := &cobra.Command{
		Use:   "passwd [NAME]",
		Short: "Set or remove a password",
		Long: `Set a password, your own or, as an admin, another user's. It is asked for twice at
a terminal; otherwise it is the first line of standard input. Web logins of the
user end.`,
		Example: `  ptyd user passwd
  ptyd user passwd anna
  ptyd user passwd anna --password-file anna.txt
  ptyd user passwd anna --remove`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeUsers(g),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			secret := ""
			if !remove {
				var err error
				if secret, err = password(cmd, g, file); err != nil {
					return err
				}
			}
			if len(args) == 0 {
				if err := c.SetOwnPassword(ctx, secret); err != nil {
					return err
				}
				return show(cmd, g, done{OK: true}, nil)
			}
			u, err := c.ChangeUser(ctx, args[0], client.UserChange{Password: &secret})
			if err != nil {
				return err
			}
			return show(cmd, g, u, nil)
		}),
	}
	cmd.Flags().StringVar(&file, "password-file", "", "`FILE` that holds the password; - is standard input")
	cmd.Flags().BoolVar(&remove, "remove", false, "no login by password any more")
	cmd.MarkFlagsMutuallyExclusive("password-file", "remove")
	return cmd
}

// password reads a new password: from a file, from standard input, or from
// whoever sits at the terminal, twice and unseen.
func password(cmd *cobra.Command, g *globals, file string) (string, error) {
	if (file == "" || file == "-") && stdinTaken(cmd, g) {
		return "", problem.Field("token-file", "standard input holds the token already").WithHint("give the password by --password-file FILE")
	}
	if file == "" && tty.IsTerminal(os.Stdin) {
		return askPassword(cmd)
	}
	if file == "" {
		file = "-"
	}
	b, err := readSecret(cmd, file)
	if err != nil {
		return "", problem.Field("password-file", "the password cannot be read: %v", err)
	}
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) == 0 {
		return "", problem.Field("password-file", "there is no password in it")
	}
	return string(line), nil
}

// askPassword asks at the terminal. An interrupt must not leave it without echo.
func askPassword(cmd *cobra.Command) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	stop := restoreOnSignal(fd, before)
	defer stop()
	defer func() { _ = term.Restore(fd, before) }()
	if err := hideInput(fd); err != nil {
		return "", err
	}
	var answers [2][]byte
	for i, question := range []string{"Password: ", "Again: "} {
		fmt.Fprint(cmd.ErrOrStderr(), question)
		answers[i], err = term.ReadPassword(fd)
		fmt.Fprintln(cmd.ErrOrStderr())
		if err != nil {
			return "", problem.New(problem.InvalidArgument, "no password was given")
		}
	}
	switch {
	case len(answers[0]) == 0:
		return "", problem.New(problem.InvalidArgument, "no password was given")
	case !bytes.Equal(answers[0], answers[1]):
		return "", problem.New(problem.InvalidArgument, "the two are not the same")
	}
	return string(answers[0]), nil
}

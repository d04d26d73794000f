package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/problem"
)

// The groups of commands in `ptyd help`.
const (
	groupSessions = "sessions"
	groupAccess   = "access"
	groupDaemon   = "daemon"
)

// addClientCommands registers the commands that talk to a running daemon, and
// those that explain the others.
func addClientCommands(root *cobra.Command, g *globals) {
	root.AddGroup(
		&cobra.Group{ID: groupSessions, Title: "Sessions:"},
		&cobra.Group{ID: groupAccess, Title: "Users and access:"},
		&cobra.Group{ID: groupDaemon, Title: "The daemon and this program:"},
	)
	for _, cmd := range root.Commands() { // serve and version
		cmd.GroupID = groupDaemon
	}
	for _, cmd := range []*cobra.Command{
		newRun(g), newAttach(g), newLs(g), newTail(g), newScreen(g), newSend(g), newWait(g),
		newResize(g), newRename(g), newKill(g), newRm(g), newRerun(g),
	} {
		cmd.GroupID = groupSessions
		root.AddCommand(reporting(cmd, g))
	}
	for _, cmd := range []*cobra.Command{newToken(g), newUser(g), newGroup(g), newLoginLink(g)} {
		cmd.GroupID = groupAccess
		root.AddCommand(reporting(cmd, g))
	}
	root.CompletionOptions.DisableDefaultCmd = true
	for _, cmd := range []*cobra.Command{newStatus(g), newUpgrade(g), newRestart(g), newDoctor(g), newService(g), newCompletion()} {
		cmd.GroupID = groupDaemon
		root.AddCommand(reporting(cmd, g))
	}
	root.SetHelpCommandGroupID(groupDaemon)
	_ = root.MarkPersistentFlagDirname("state-dir")
	_ = root.MarkPersistentFlagFilename("token-file")
	root.AddCommand(newExitStatusHelp(), reporting(newGenDocs(), g))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// Flags after the one that is wrong were not looked at.
		g.JSON = g.JSON || slices.Contains(os.Args, "--json")
		return report(cmd, g, usageError(cmd, err))
	})
}

// usageError is a mistake in how a command was written.
func usageError(cmd *cobra.Command, err error) error {
	return problem.New(problem.InvalidArgument, "%v", err).WithHint("see %s --help", cmd.CommandPath())
}

// reporting makes cmd and the commands below it tell their errors as report does.
func reporting(cmd *cobra.Command, g *globals) *cobra.Command {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return report(cmd, g, run(cmd, args)) }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return report(cmd, g, usageError(cmd, err))
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		reporting(sub, g)
	}
	return cmd
}

// connect returns a client for the daemon that the flags and the environment
// name. It does not connect yet.
func connect(cmd *cobra.Command, g *globals) (*client.Client, error) {
	o := client.Options{StateDir: g.StateDir, URL: g.URL, Build: config.ReadBuild().Version}
	if flags := cmd.Flags(); flags.Changed("state-dir") {
		if flags.Changed("url") {
			return nil, problem.Field("url", "--url and --state-dir name two daemons").WithHint("give one of them")
		}
		o.URL = "" // it came from the environment, and a flag wins
	}
	var err error
	if o.Token, err = token(cmd, g); err != nil {
		return nil, err
	}
	if o.URL != "" && o.Token == "" {
		return nil, problem.New(problem.Unauthenticated, "a daemon that is reached by --url needs a token").
			WithHint("make one beside the daemon: ptyd token create; give it here by PTYD_TOKEN or --token-file")
	}
	c, err := client.New(o)
	if err == nil && o.Token != "" && c.Exposed() {
		note(cmd, "the token goes over the network unencrypted; use https")
	}
	return c, err
}

// token reads the token that decides who calls, "" where none was given. One
// that was given and is empty is a mistake, and must not become the rights of
// whoever runs the command.
func token(cmd *cobra.Command, g *globals) (string, error) {
	var secret, from string
	env, inEnv := os.LookupEnv("PTYD_TOKEN")
	switch {
	case inEnv && !cmd.Flags().Changed("token-file"):
		secret, from = env, "PTYD_TOKEN"
	case g.TokenFile == "":
		return "", nil
	default:
		from = g.TokenFile
		b, err := readSecret(cmd, g.TokenFile)
		if err != nil {
			return "", problem.Field("token-file", "the token cannot be read: %v", err)
		}
		secret = string(b)
	}
	secret = strings.TrimSpace(secret)
	if secret == "" {
		return "", problem.New(problem.Unauthenticated, "%s holds no token", from).
			WithHint("unset it to call as the user who runs the command, or make one: ptyd token create")
	}
	if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", problem.New(problem.Unauthenticated, "%s holds something else than one token", from)
	}
	return secret, nil
}

// maxSecret bounds the file of a token or password.
const maxSecret = 64 << 10

// readSecret reads a small file; "-" is standard input.
func readSecret(cmd *cobra.Command, name string) ([]byte, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSecret+1))
	if err == nil && len(b) > maxSecret {
		err = errors.New("it is too long")
	}
	return b, err
}

// stdinTaken reports whether standard input holds the token.
func stdinTaken(cmd *cobra.Command, g *globals) bool {
	_, inEnv := os.LookupEnv("PTYD_TOKEN")
	return g.TokenFile == "-" && (!inEnv || cmd.Flags().Changed("token-file"))
}

// action is what most commands are: something done with a client.
func action(g *globals, do func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect(cmd, g)
		if err != nil {
			return err
		}
		defer c.Close()
		return do(cmd.Context(), cmd, c, args)
	}
}

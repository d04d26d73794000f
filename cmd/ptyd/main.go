// Command ptyd keeps terminals alive: `ptyd serve` is the daemon, everything
// else talks to one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	_ "github.com/ptyd/ptyd/internal/ptymgr/stage" // first: its init may be all that this process is for
)

// exitError lets a command choose the process's exit status. Commands that
// have already said what is wrong return one with a nil Err.
type exitError struct {
	Status int
	Err    error
}

func (e *exitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *exitError) Unwrap() error { return e.Err }

// statusError is the exit status of an error of ptyd itself, chosen so that it
// cannot be mistaken for the status of an ordinary command.
const statusError = 125

func newRoot() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:           "ptyd",
		Short:         "Terminals that stay: in the browser and on the command line",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addGlobalFlags(root, g)
	root.AddCommand(newServe(g), newVersion(g))
	addClientCommands(root, g)
	return root
}

func main() {
	err := newRoot().ExecuteContext(context.Background())
	if err == nil {
		return
	}
	status := statusError
	if e, ok := errors.AsType[*exitError](err); ok {
		status = e.Status
		err = e.Err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ptyd:", err)
	}
	os.Exit(status)
}

package main

import "github.com/spf13/cobra"

// newExitStatusHelp is the help topic about exit statuses.
func newExitStatusHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-status",
		Short: "What the exit statuses of ptyd mean",
		Long: `ptyd run and ptyd attach return the exit status of the session: its exit code, or
128+N where signal N ended it. All other commands return 0 when they did what they
were asked to.

ptyd's own are:

  0     done; also: detached from a session that goes on
  124   the time was over (ptyd wait --timeout)
  125   an error of ptyd: a mistake in the command, no daemon, no such session;
        the exit status of a session is unknown; ptyd wait: what is waited for
        cannot come any more; ptyd tail --strict: output is no longer kept
  128+N signal N ended this command, and the session goes on

These are reserved for approvals:

  122   pending: the request is not decided yet
  123   expired, or what was approved is no longer what would run
  126   denied

A session may itself exit with one of these. Where that matters, use ptyd run -d,
ptyd wait --exit and exit_code in ptyd ls --json, which are never mixed up.`,
	}
}

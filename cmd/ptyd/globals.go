package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/config"
)

// globals are the flags every command takes, before or after its name.
type globals struct {
	StateDir  string // whose daemon: its Unix socket lies in here
	URL       string // a daemon over the network instead of the socket
	TokenFile string // where the token is read from; "-" is standard input
	JSON      bool   // machine-readable output, one line in one write
}

// addGlobalFlags registers the global flags on root. The environment only
// supplies their defaults, so a flag always wins.
func addGlobalFlags(root *cobra.Command, g *globals) {
	stateDir := os.Getenv("PTYD_STATE_DIR")
	if stateDir == "" {
		stateDir = config.DefaultStateDir()
	}
	f := root.PersistentFlags()
	f.StringVar(&g.StateDir, "state-dir", stateDir, "state directory of the daemon (PTYD_STATE_DIR)")
	f.StringVar(&g.URL, "url", os.Getenv("PTYD_URL"), "address of a daemon, instead of the socket in the state directory (PTYD_URL)")
	f.StringVar(&g.TokenFile, "token-file", os.Getenv("PTYD_TOKEN_FILE"), "file that holds the token; - is standard input (PTYD_TOKEN_FILE; PTYD_TOKEN is the token itself)")
	f.BoolVar(&g.JSON, "json", false, "print JSON, one line in one write")
}

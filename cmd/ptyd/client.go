package main

import "github.com/spf13/cobra"

// addClientCommands registers the commands that talk to a running daemon.
func addClientCommands(root *cobra.Command, g *globals) {}

package main

import "github.com/spf13/cobra"

func newServe(g *globals) *cobra.Command {
	return &cobra.Command{Use: "serve", Short: "Run the daemon", Args: cobra.NoArgs}
}

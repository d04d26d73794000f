package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/config"
)

func newVersion(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Example: `  ptyd version
  ptyd version --json | jq -r .version`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := config.ReadBuild()
			if g.JSON {
				line, err := json.Marshal(b)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "ptyd %s (%s, %s)\n", b.Version, b.Commit, b.Go)
			return err
		},
	}
}

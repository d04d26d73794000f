package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/service"
)

func newServiceUninstall(g *globals) *cobra.Command {
	var own, force, purge bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service and remove its units",
		Long: `Stop the service, which ends its sessions, and remove the units that "install" has
written. While sessions run it refuses, unless --force is given. The state stays
(database, kept output) unless --purge is given; units of a package stay too.`,
		Example: `  sudo ptyd service uninstall
  ptyd service uninstall --user --force
  sudo ptyd service uninstall --purge`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.BoolVar(&own, "user", false, "the service of your own, not of the machine")
	f.BoolVar(&force, "force", false, "also while sessions run: they end")
	f.BoolVar(&purge, "purge", false, "remove the state directory too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s := service.New(own)
		if err := s.Ready(); err != nil {
			return err
		}
		st, err := s.State(cmd.Context())
		if err != nil {
			return err
		}
		there, err := s.Installed()
		if err != nil {
			return err
		}
		if !st.Loaded() && len(there) == 0 && !purge {
			return problem.New(problem.NotFound, "the service is not installed").WithHint("see ptyd service status%s", userFlag(s))
		}
		dir := stateDirOf(s)
		if st.Running() && !force {
			d, err := ask(cmd.Context(), dir)
			if err != nil {
				return problem.New(problem.Unavailable, "the service runs, and does not say whether it has sessions: %v", err).WithHint("--force removes it all the same")
			}
			if n := d.Sessions["running"] + d.Sessions["starting"]; n > 0 {
				return problem.New(problem.SessionRunning, "%d sessions run and would end", n).
					WithHint("ptyd --state-dir %s ls shows them; --force ends them", dir)
			}
		}
		removed, err := s.Uninstall(cmd.Context(), st)
		if err != nil {
			return err
		}
		result := struct {
			Scope   string   `json:"scope"`
			Removed []string `json:"removed"`
			State   string   `json:"state_dir"`
			Purged  bool     `json:"purged"`
			Left    string   `json:"left,omitempty"`
		}{scope(s), removed, dir, false, ""}
		if purge {
			if err := service.Purge(dir); err != nil {
				return err
			}
			result.Purged = true
		}
		if after, err := s.State(cmd.Context()); err == nil && after.Loaded() {
			result.Left = after.Path
		}
		return show(cmd, g, result, func(w io.Writer) {
			for _, path := range removed {
				fmt.Fprintf(w, "removed  %s\n", path)
			}
			switch {
			case purge:
				fmt.Fprintf(w, "removed  %s\n", dir)
			default:
				fmt.Fprintf(w, "kept     %s (the state; --purge removes it)\n", dir)
			}
			if result.Left != "" {
				fmt.Fprintf(w, "kept     %s (of a package, stopped and disabled)\n", result.Left)
			}
		})
	}
	return cmd
}

// notActive is the exit status of systemctl for a service that does not run.
const notActive = 3

func newServiceStatus(g *globals) *cobra.Command {
	var own bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the service is",
		Long: `Show how the service is: its unit, whether it runs and is enabled, and how many
descriptors of sessions systemd keeps for it. "ptyd status" shows the daemon
itself. The exit status is 0 while the service runs, 3 otherwise.`,
		Example: `  ptyd service status
  ptyd service status --user --json | jq .active`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&own, "user", false, "the service of your own, not of the machine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s := service.New(own)
		version, err := s.Version(cmd.Context())
		if err != nil {
			return err
		}
		st, err := s.State(cmd.Context())
		if err != nil {
			return err
		}
		result := struct {
			Scope     string   `json:"scope"`
			Systemd   int      `json:"systemd"`
			Installed bool     `json:"installed"`
			Active    string   `json:"active"`
			Sub       string   `json:"sub"`
			Enabled   string   `json:"enabled"`
			Unit      string   `json:"unit"`
			DropIns   []string `json:"drop_ins"`
			PID       int      `json:"pid"`
			Stored    int      `json:"stored_descriptors"`
			Restarts  int      `json:"restarts"`
			State     string   `json:"state_dir"`
			Notes     []string `json:"notes,omitempty"`
		}{scope(s), version, st.Loaded(), st.Active, st.Sub, st.Enabled, st.Path, st.DropIns, st.MainPID, st.Stored, st.Restarts, stateDirOf(s), nil}
		if result.DropIns == nil {
			result.DropIns = []string{}
		}
		if st.NeedReload {
			result.Notes = append(result.Notes, "the unit's file is newer than what systemd knows: "+strings.TrimSuffix(ctl(s, "daemon-reload"), " ptyd"))
		}
		if !st.Loaded() {
			result.Notes = append(result.Notes, "not installed: ptyd service install"+userFlag(s))
		}
		if st.Running() {
			if _, err := ask(cmd.Context(), result.State); err != nil {
				result.Notes = append(result.Notes, "the daemon does not answer you: "+err.Error())
			}
		}
		err = show(cmd, g, result, func(w io.Writer) {
			rows := [][]string{{"service", result.Scope + ", systemd " + fmt.Sprint(version)}}
			if st.Loaded() {
				rows = append(rows,
					[]string{"state", fmt.Sprintf("%s (%s), %s", st.Active, st.Sub, st.Enabled)},
					[]string{"unit", strings.Join(append([]string{st.Path}, st.DropIns...), " ")},
					[]string{"keeper", fmt.Sprintf("pid %d, %d restarts by systemd", st.MainPID, st.Restarts)},
					[]string{"stored", fmt.Sprintf("%d descriptors", st.Stored)},
					[]string{"state directory", result.State})
			}
			for _, n := range result.Notes {
				rows = append(rows, []string{"note", n})
			}
			table(w, 0, rows)
		})
		if err == nil && !st.Running() {
			err = &exitError{Status: notActive}
		}
		return err
	}
	return cmd
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/doctor"
	"github.com/ptyd/ptyd/internal/problem"
)

// doctorAnswer is how long the daemon may take to tell how it is.
const doctorAnswer = 10 * time.Second

func newDoctor(g *globals) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what the daemon needs to work well",
		Long: `Check what the daemon needs to work well: its configuration, state directory and
database, who keeps the sessions and what survives what, limits of descriptors and
terminals, who can reach it, what the kernel can do, cgroups, the clock.

It works beside a running daemon and without one, and changes nothing. Run it as
the daemon's user, with the daemon's --config.

Each line is ok, warn or fail; with the last two it says why that matters and what
to do. The exit status is 1 when something fails, 0 otherwise.`,
		Example: `  ptyd doctor
  sudo -u ptyd ptyd doctor --state-dir /var/lib/ptyd --config /etc/ptyd/config.toml
  ptyd doctor --json | jq -r '.findings[] | select(.level != "ok").do'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("url") {
				return problem.Field("url", "the doctor looks at this machine").WithHint("run it beside the daemon")
			}
			o := doctor.Options{StateDir: g.StateDir, Version: config.ReadBuild().Version}
			o.Config, o.ConfigErr = config.Load(config.Sources{File: file, Environ: os.Environ(), Flags: map[string]string{"state_dir": g.StateDir}})
			o.Status, o.StatusErr = doctorStatus(cmd.Context(), g)
			r := doctor.Run(cmd.Context(), o)
			if err := show(cmd, g, r, func(w io.Writer) { showFindings(w, r) }); err != nil {
				return err
			}
			if !r.OK {
				return &exitError{Status: 1}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("PTYD_CONFIG"), "TOML file with the daemon's settings (PTYD_CONFIG; default "+config.DefaultFile()+", if it exists)")
	return cmd
}

// doctorStatus asks the daemon of the state directory, if there is one.
func doctorStatus(ctx context.Context, g *globals) (*doctor.Status, error) {
	c, err := client.New(client.Options{StateDir: g.StateDir, Build: config.ReadBuild().Version})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, stop := context.WithTimeout(ctx, doctorAnswer)
	defer stop()
	raw, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	var st struct {
		Version string
		PID     int
		Keeper  *struct{ PID int }
		Cgroups struct {
			Path    *string
			Reason  string
			Missing map[string]string
		}
	}
	if err := json.Unmarshal(raw, &st); err != nil {
		return nil, err
	}
	out := &doctor.Status{Version: st.Version, Worker: st.PID, NoCgroup: st.Cgroups.Reason, Missing: st.Cgroups.Missing}
	if st.Keeper != nil {
		out.Keeper = st.Keeper.PID
	}
	if st.Cgroups.Path != nil {
		out.Cgroup = *st.Cgroups.Path
	}
	return out, nil
}

// showFindings prints a line for each thing, and below it what to do.
func showFindings(w io.Writer, r doctor.Report) {
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Check))
	}
	counts := map[doctor.Level]int{}
	for _, f := range r.Findings {
		counts[f.Level]++
		fmt.Fprintf(w, "%-4s  %-*s  %s\n", f.Level, width, f.Check, clean(f.What))
		for _, line := range []struct{ word, text string }{{"why", f.Why}, {"do", f.Do}} {
			if line.text != "" {
				fmt.Fprintf(w, "%*s  %-3s %s\n", width+6, "", line.word, clean(line.text))
			}
		}
	}
	fmt.Fprintf(w, "%d ok, %d warn, %d fail\n", counts[doctor.OK], counts[doctor.Warn], counts[doctor.Fail])
}

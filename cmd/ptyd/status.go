package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
)

// daemonStatus are the members of the daemon's status that are shown to people.
type daemonStatus struct {
	Version   string         `json:"version"`
	PID       int            `json:"pid"`
	UptimeS   int64          `json:"uptime_s"`
	Listen    []string       `json:"listen"`
	StateDir  string         `json:"state_dir"`
	Sessions  map[string]int `json:"sessions"`
	Viewers   int            `json:"viewers"`
	StartedAt time.Time      `json:"started_at"`
	client.State
	Disk struct {
		Free uint64 `json:"free_bytes"`
		Min  uint64 `json:"min_free_bytes"`
		OK   bool   `json:"ok"`
	} `json:"disk"`
	Notes []string `json:"notes"`
}

func newStatus(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how the daemon is",
		Long: `Show how the daemon is: its processes and what sessions survive of them, where it
listens, its sessions, the disk, what an operator should know, and who you are to
it. With --json there is more, such as its limits.`,
		Example: `  ptyd status
  ptyd status --json | jq .limits
  ptyd status --json | jq '{keeper, worker, survives, upgrade_failed}'
  ptyd --url https://host:7373 --token-file token status`,
		Args: cobra.NoArgs,
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, _ []string) error {
			raw, err := c.Status(ctx)
			if err != nil {
				return err
			}
			var st daemonStatus
			if err := json.Unmarshal(raw, &st); err != nil {
				return err
			}
			me, err := c.Me(ctx)
			if err != nil {
				return err
			}
			return show(cmd, g, raw, func(w io.Writer) { showStatus(w, st, me) })
		}),
	}
}

func showStatus(w io.Writer, st daemonStatus, me client.Me) {
	var sessions []string
	for _, name := range slices.Sorted(maps.Keys(st.Sessions)) {
		if n := st.Sessions[name]; n > 0 {
			sessions = append(sessions, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(sessions) == 0 {
		sessions = []string{"none"}
	}
	disk := fmt.Sprintf("%s free", size(st.Disk.Free))
	if !st.Disk.OK {
		disk += fmt.Sprintf(", less than the %s that new sessions need", size(st.Disk.Min))
	}
	rows := [][]string{{"daemon", fmt.Sprintf("ptyd %s", st.Version)}}
	rows = append(rows, processes(st.State)...)
	rows = append(rows, [][]string{
		{"state", st.StateDir},
		{"listens", strings.Join(st.Listen, " ")},
		{"sessions", strings.Join(sessions, ", ")},
		{"viewers", fmt.Sprint(st.Viewers)},
		{"disk", disk},
		{"you", fmt.Sprintf("%s, %s, by %s", me.User.Name, me.User.Role, me.Via)},
	}...)
	for _, n := range st.Notes {
		rows = append(rows, []string{"note", n})
	}
	table(w, 0, rows)
}

// processes tells who keeps the sessions, who serves them, and what they outlive.
func processes(st client.State) [][]string {
	up := func(s int64) time.Duration { return time.Duration(s) * time.Second }
	w := st.Worker
	if st.Keeper == nil {
		return [][]string{
			{"worker", fmt.Sprintf("pid %d, up %s, without a keeper", w.PID, up(w.UptimeS))},
			{"survives", "nothing: sessions end with this process"},
		}
	}
	k := fmt.Sprintf("pid %d", st.Keeper.PID)
	if st.Keeper.Version != "" {
		k += fmt.Sprintf(", ptyd %s, up %s, %s", st.Keeper.Version, up(st.Keeper.UptimeS), count(st.Keeper.Upgrades, "upgrade"))
	}
	rows := [][]string{
		{"keeper", k},
		{"worker", fmt.Sprintf("pid %d, ptyd %s, up %s, generation %d, %s", w.PID, w.Version, up(w.UptimeS), w.Generation, count(w.Restarts, "unasked restart"))},
	}
	if w.Adopted+w.Ended+w.Lost > 0 {
		rows = append(rows, []string{"took over", fmt.Sprintf("%s, %d ended, %d lost; %s in flight", count(w.Adopted, "session"), w.Ended, w.Lost, count(int(w.Recovered), "byte"))})
	}
	survives := "the worker's death, upgrades and restarts; not the keeper's death, nor a reboot"
	if st.Survives.Keeper {
		survives = "the worker's and the keeper's death, upgrades and restarts of the service; not a reboot"
	}
	rows = append(rows, []string{"survives", survives})
	if st.UpgradeFailed != "" {
		rows = append(rows, []string{"upgrade", "failed: " + st.UpgradeFailed})
	}
	return rows
}

// count is a number with its word.
func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// size is a number of bytes for people.
func size(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

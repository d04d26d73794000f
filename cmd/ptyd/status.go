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
	Keeper    *struct {
		PID int `json:"pid"`
	} `json:"keeper"`
	Worker struct {
		PID        int   `json:"pid"`
		Generation int   `json:"generation"`
		Restarts   int   `json:"restarts"`
		Adopted    int   `json:"adopted"`
		Recovered  int64 `json:"bytes_recovered"`
	} `json:"worker"`
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
		Long: `Show how the daemon is: where it listens, its sessions, the disk, what an operator
should know, and who you are to it. With --json there is more, such as its limits.`,
		Example: `  ptyd status
  ptyd status --json | jq .limits
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
	rows := [][]string{
		{"daemon", fmt.Sprintf("ptyd %s, pid %d, up %s", st.Version, st.PID, time.Duration(st.UptimeS)*time.Second)},
		{"processes", processes(st)},
		{"state", st.StateDir},
		{"listens", strings.Join(st.Listen, " ")},
		{"sessions", strings.Join(sessions, ", ")},
		{"viewers", fmt.Sprint(st.Viewers)},
		{"disk", disk},
		{"you", fmt.Sprintf("%s, %s, by %s", me.User.Name, me.User.Role, me.Via)},
	}
	for _, n := range st.Notes {
		rows = append(rows, []string{"note", n})
	}
	table(w, 0, rows)
}

// processes tells who keeps the sessions and who serves them.
func processes(st daemonStatus) string {
	if st.Keeper == nil {
		return fmt.Sprintf("worker %d without a keeper: sessions end with it", st.Worker.PID)
	}
	s := fmt.Sprintf("keeper %d, worker %d (generation %d, %d restarts)", st.Keeper.PID, st.Worker.PID, st.Worker.Generation, st.Worker.Restarts)
	if st.Worker.Adopted > 0 {
		s += fmt.Sprintf(", took over %d sessions and %d bytes in flight", st.Worker.Adopted, st.Worker.Recovered)
	}
	return s
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

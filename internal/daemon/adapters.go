package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/api"
	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/ws"
)

// socketAdapter lets api hand upgrades to ws.
type socketAdapter struct{ s *ws.Server }

// Serve implements api.WebSocket.
func (a socketAdapter) Serve(w http.ResponseWriter, r *http.Request, p *auth.Principal, cookie string) {
	a.s.Serve(w, r, ws.Identity{Principal: p, Cookie: cookie, AllowTicket: p == nil})
}

// sessionConfig is what the configuration says about sessions.
func (d *Daemon) sessionConfig(c *config.Config) ptymgr.Config {
	// Zero would mean the default there; here it means KILL at once.
	grace := max(c.Grace, 1)
	return ptymgr.Config{
		MaxPerOwner: c.SessionsPerOwner, MaxTotal: c.SessionsTotal, OutputLimit: c.OutputLimit, OutputTotal: c.OutputTotal,
		RemoveAfter: c.RemoveAfter, Grace: grace, Shell: c.Shell, MinFree: d.checkDisk, EndedPerOwner: c.EndedPerOwner,
		MemoryLimit: c.SessionMemory, PidsLimit: c.SessionPids, Cgroups: d.cgroups, NoCgroups: d.noCgroups,
		CheckpointDir: filepath.Join(d.stateDir, "checkpoints"), CheckpointEvery: c.CheckpointInterval, CheckpointTotal: c.CheckpointTotal,
	}
}

// Cgroups implements api.Daemon.
func (d *Daemon) Cgroups() api.Cgroups {
	c := d.mgr.Cgroups()
	out := api.Cgroups{Reason: c.Why, Missing: c.Missing}
	if c.Path != "" {
		out.Path = &c.Path
	}
	return out
}

// Limits implements api.Daemon.
func (d *Daemon) Limits() api.Limits {
	c := d.config()
	return api.Limits{
		SessionsPerOwner: c.SessionsPerOwner, SessionsTotal: c.SessionsTotal, EndedPerOwner: c.EndedPerOwner,
		OutputLimit: c.OutputLimit, OutputTotal: c.OutputTotal, CheckpointTotal: c.CheckpointTotal,
		RemoveAfterS: int64(c.RemoveAfter / time.Second), GraceMS: int64(c.Grace / time.Millisecond),
		SessionMemory: c.SessionMemory, SessionPids: c.SessionPids,
	}
}

// Processes implements api.Daemon.
func (d *Daemon) Processes(ctx context.Context) (p api.Processes) {
	p.Worker = api.Worker{PID: os.Getpid(), Version: d.build.Version}
	if d.keeper == nil {
		return p
	}
	a := d.mgr.Adopted()
	p.Worker.Generation, p.Worker.Restarts = d.keeper.Generation, d.keeper.Restarts
	p.Worker.Adopted, p.Worker.Ended, p.Worker.Lost, p.Worker.Dropped, p.Worker.BytesRecovered = a.Sessions, a.Ended, a.Lost, a.Dropped, a.BytesSaved
	p.Survives = api.Survives{Worker: true, Upgrade: true, Keeper: supervised()}
	p.Keeper = &api.Keeper{PID: d.keeper.Keeper}
	st, ok := d.keeper.status(ctx)
	if !ok { // of a release that does not say, or stopped
		p.UpgradeFailed = os.Getenv("PTYD_UPGRADE_FAILED")
		return p
	}
	p.Keeper.Version, p.Keeper.Path, p.Keeper.Upgrades = st.Version, st.Binary, st.Upgrades
	p.Keeper.Began(st.Started)
	p.UpgradeFailed = st.Failed
	return p
}

// Disk implements api.Daemon.
func (d *Daemon) Disk() api.Disk {
	c := d.config()
	free, err := freeBytes(d.stateDir)
	least := uint64(c.MinFree)
	return api.Disk{FreeBytes: free, MinFreeBytes: least, OK: err == nil && free >= least}
}

// Checkpoints implements api.Daemon.
func (d *Daemon) Checkpoints() api.Checkpoints {
	c, a := d.config(), d.mgr.Stats().Archive
	return api.Checkpoints{
		On: a.On, IntervalMS: c.CheckpointInterval.Milliseconds(), MaxBytesPerSecond: ptymgr.CheckpointRate,
		Sessions: a.Sessions, Bytes: a.Bytes, OK: a.Error == "", Error: a.Error,
	}
}

// Notes implements api.Daemon.
func (d *Daemon) Notes() []string {
	c := d.config()
	notes := []string{fmt.Sprintf("an operator's shell has the rights of the daemon's user (uid %d)", os.Geteuid())}
	if os.Geteuid() == 0 {
		notes = append(notes, "the daemon runs as root, and so does every session")
	}
	if c.Insecure && !c.TLS() && !config.IsLoopback(c.Listen) {
		notes = append(notes, "passwords, tokens and terminals are readable on the network: there is no TLS")
	}
	if g := d.mgr.Cgroups(); g.Why != "" {
		notes = append(notes, "a program that leaves its session and clears its environment survives the session's end: "+g.Why)
	}
	if why := d.mgr.Stats().Archive.Error; why != "" {
		notes = append(notes, "no checkpoints are written, so a reboot would lose what sessions print: "+why)
	}
	return notes
}

// Ready implements api.Daemon.
func (d *Daemon) Ready() error {
	if !d.ready.Load() {
		return errors.New("starting or stopping")
	}
	return nil
}

// checkDisk refuses new sessions where the disk is short.
func (d *Daemon) checkDisk() error {
	c := d.config()
	if c.MinFree == 0 {
		return nil
	}
	free, err := freeBytes(d.stateDir)
	if err != nil {
		return fmt.Errorf("look at the disk: %w", err)
	}
	if free >= uint64(c.MinFree) {
		return nil
	}
	return problem.New(problem.DiskFull, "the disk of the state directory has %s left, and %s must stay free",
		about(free), config.FormatSize(c.MinFree)).
		WithHint("free some space, or lower min_free; running sessions go on")
}

// about is a number of bytes for people, rounded down to a tenth.
func about(n uint64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}
	tenths, i := n*10, 0
	for ; tenths >= 10240 && i < len(units)-1; i++ {
		tenths /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d.%d %s", tenths/10, tenths%10, units[i])
}

// freeBytes is what a process without special rights can still write.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Frsize), nil
}

// gauges are the numbers behind /metrics.
func (d *Daemon) gauges() api.Gauges {
	m, s := d.mgr.Stats(), d.ws.Stats()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	counts, err := api.CountSessions(ctx, d.mgr)
	if err != nil {
		d.log.Warn("sessions not counted", zap.Error(err))
	}
	return api.Gauges{
		Sessions: counts, Viewers: m.Viewers, Connections: s.Connections, MaxLag: m.MaxLag,
		BytesIn: m.BytesIn, BytesOut: m.BytesOut, Resyncs: s.Resyncs, WriteErrors: s.WriteErrors,
		ReadErrors: m.ReadErrors, MemoryShort: m.RingLost, DiskFree: d.Disk().FreeBytes, Checkpoints: m.Archive,
	}
}

package daemon

import (
	"os"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/cgroup"
)

// openCgroups makes the daemon's part of the cgroup tree, or says once why
// there is none: sessions go on without.
func (d *Daemon) openCgroups() {
	own := []int{os.Getpid()}
	if d.keeper != nil {
		own = append(own, d.keeper.Keeper)
	}
	t, err := cgroup.Open(cgroup.Options{StateDir: d.stateDir, Own: own, Supervised: os.Getenv("PTYD_SUPERVISED") != "" || os.Getenv("INVOCATION_ID") != ""})
	if err != nil {
		d.noCgroups = err.Error()
		d.log.Info("sessions have no cgroups: a program that leaves its session and clears its environment survives the session's end; limits are refused", zap.Error(err))
		return
	}
	d.cgroups = t
	missing := map[string]string{}
	for _, c := range []string{cgroup.Memory, cgroup.Pids} {
		if why := t.Missing(c); why != "" {
			missing[c] = why
		}
	}
	d.log.Info("each session has a cgroup", zap.String("below", t.Path()), zap.Any("limits_refused", missing))
	d.onClose(t.Close)
}

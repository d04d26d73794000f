package keeper

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// sweepAgain is how long the keeper waits for those that it killed before it
// looks for their children, which are its own then.
const sweepAgain = 20 * time.Millisecond

// sweep ends what is left when all sessions shall end and the worker is gone:
// nothing, unless the worker crashed on the way or a program hid from it. All
// of it are the keeper's children or become so, because orphans do.
func (k *keeper) sweep() {
	if k.sweeping {
		return
	}
	k.sweeping = true
	kids := children()
	if len(kids) > 0 {
		k.log.Warn("processes of sessions are left and get ended", zap.Int("processes", len(kids)))
	}
	for _, pid := range kids {
		_ = unix.Kill(pid, unix.SIGTERM)
		_ = unix.Kill(pid, unix.SIGHUP)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
	wait := k.t.sweep
	if k.hurried > 0 {
		wait = 0
	}
	k.due.in(dueSweep, wait)
	k.due.in(dueGiveUp, k.t.sweepMost)
}

// sweepKill kills all children, again and again until there are none.
func (k *keeper) sweepKill() {
	for _, pid := range children() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	k.due.in(dueSweep, sweepAgain)
}

// sweepDone ends the keeper when it has no child any more.
func (k *keeper) sweepDone() {
	if !k.sweeping {
		return
	}
	if _, _, any := peek(unix.P_ALL, 0); !any {
		k.done = true
	}
}

// children are the process's children, of all its threads. None of their ids
// can be anybody else's: only this goroutine buries them.
func children() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, t := range tasks {
		list, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue // a thread that has ended
		}
		for _, f := range bytes.Fields(list) {
			if pid, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

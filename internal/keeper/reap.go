package keeper

import (
	"encoding/binary"
	"errors"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// reap records and buries all children that have ended: processes of sessions,
// which are the keeper's own children from their first instant, and orphans.
//
// A process is recorded before it is buried, so that a keeper that is executed
// anew in between sees the zombie again. The keeper's own helpers are looked at
// first and by their ids: a record that is full must not hide the worker's end.
func (k *keeper) reap() {
	k.reapOwn()
	for {
		e, ok, _ := peek(unix.P_ALL, 0)
		if !ok {
			k.crowded = false
			k.due.clear(dueReap)
			return
		}
		if k.own(e.pid) {
			k.buryOwn(e)
			continue
		}
		r := notifyproto.ExitRecord{PID: e.pid, Code: e.code, Status: e.status, At: bootNow()}
		if !k.exits.Append(r) && k.goal != goalEnd { // at the end nobody will read it any more
			if !k.crowded {
				k.crowded = true
				k.log.Warn("the record of ended processes is full: they stay until the worker has read it")
			}
			k.due.in(dueReap, k.t.full)
			return
		}
		k.tellExit()
		bury(e.pid)
	}
}

// tellExit wakes the worker. The counter can't be full: it holds 2^64.
func (k *keeper) tellExit() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	if _, err := unix.Write(k.event, one[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		k.log.Error("the worker can't be told of an ended process", zap.Error(err))
	}
}

// own tells whether pid is the worker or a helper, whose ends are nobody
// else's business.
func (k *keeper) own(pid int32) bool {
	_, helper := k.helpers[int(pid)]
	return helper || k.w != nil && k.w.pid == int(pid)
}

func (k *keeper) reapOwn() {
	if k.w != nil {
		if e, ok, any := peek(unix.P_PID, k.w.pid); ok {
			k.buryOwn(e)
		} else if !any {
			// Somebody else has waited for it. It can't happen, and if it does
			// the keeper must not believe in a worker for ever.
			k.log.Error("the worker's end was not seen", zap.Int("pid", k.w.pid))
			k.workerEnded(ended{pid: int32(k.w.pid), code: notifyproto.CLDKilled, status: int32(unix.SIGKILL)})
		}
	}
	for pid := range k.helpers {
		if e, ok, _ := peek(unix.P_PID, pid); ok {
			k.buryOwn(e)
		}
	}
}

// buryOwn ends the keeper's own child. What a worker sent before it died is in
// the socket, and is taken while its id still can't be anybody else's.
func (k *keeper) buryOwn(e ended) {
	if f, ok := k.helpers[int(e.pid)]; ok {
		delete(k.helpers, int(e.pid))
		bury(e.pid)
		f(e)
		return
	}
	k.receive()
	bury(e.pid)
	k.workerEnded(e)
}

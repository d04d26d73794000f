package daemon

import (
	"github.com/ptyd/ptyd/internal/fdstore"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"golang.org/x/sys/unix"
)

// vault is the keeper's store as ptymgr wants it.
type vault struct{ *fdstore.Store }

// CloneFlags makes the keeper the parent of a session from its first instant.
func (vault) CloneFlags() uintptr { return unix.CLONE_PARENT }

func (v vault) Exit(pid, pidfd int, since int64) (ptymgr.ExitStatus, bool) {
	if code, status, ok := v.Store.Exit(pid, since); ok {
		return ptymgr.StatusOf(code, status), true
	}
	return ptymgr.ExitStatus{}, false
}

func (v vault) Pipes() (output, input ptymgr.Pipe) {
	o, i := v.Store.Pipes()
	return ptymgr.Pipe(o), ptymgr.Pipe(i)
}

func (v vault) Held() []ptymgr.Held {
	var all []ptymgr.Held
	for _, h := range v.Store.Held() {
		all = append(all, ptymgr.Held(h))
	}
	return all
}

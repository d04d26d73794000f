package daemon

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/fdstore"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// vault is the keeper's store as ptymgr wants it.
type vault struct{ *fdstore.Store }

// CloneFlags makes the keeper the parent of a session from its first instant.
func (vault) CloneFlags() uintptr { return unix.CLONE_PARENT }

func (v vault) Exit(pid, pidfd int, since int64) (ptymgr.ExitStatus, bool) {
	if code, status, ok := v.Store.Exit(pid, since); ok {
		return ptymgr.StatusOf(code, status), true
	}
	// A process that the keeper did not reap: its keeper has died, and process 1
	// took it over. Linux 6.15 and later tells its end by the pidfd.
	return exitByPidfd(pidfd)
}

// pidfdInfo is struct pidfd_info of <linux/pidfd.h>, as of its first version.
type pidfdInfo struct {
	mask, cgroup uint64
	_            [11]uint32 // ids
	exitCode     int32      // a wait status, as of wait(2)
}

const (
	pidfdInfoExit = 1 << 3
	pidfdGetInfo  = 0xC040FF0B // _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
)

func exitByPidfd(pidfd int) (ptymgr.ExitStatus, bool) {
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	if e != 0 || info.mask&pidfdInfoExit == 0 {
		return ptymgr.ExitStatus{}, false
	}
	switch ws := unix.WaitStatus(info.exitCode); {
	case ws.Exited():
		c := ws.ExitStatus()
		return ptymgr.ExitStatus{Known: true, Code: &c}, true
	case ws.Signaled():
		return ptymgr.StatusOf(unixCLDKilled, int32(ws.Signal())), true
	}
	return ptymgr.ExitStatus{}, false
}

const unixCLDKilled = 2 // CLD_KILLED, sigaction(2)

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

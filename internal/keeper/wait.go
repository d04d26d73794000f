package keeper

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// ended is how a child ended.
type ended struct {
	pid, code, status int32
}

func (e ended) signalled() bool { return e.code != notifyproto.CLDExited }

// exitCode is what a shell would make of it.
func (e ended) exitCode() int {
	if e.signalled() {
		return 128 + int(e.status)
	}
	return int(e.status)
}

func (e ended) String() string {
	if e.signalled() {
		return fmt.Sprintf("ended by signal %d (%s)", e.status, unix.SignalName(unix.Signal(e.status)))
	}
	return fmt.Sprintf("exited with status %d", e.status)
}

// peek looks for an ended child and leaves it a zombie. ok is false where none
// has ended; any is false where there is no child at all.
func peek(kind, id int) (e ended, ok, any bool) {
	// The union of siginfo_t follows three ints, aligned to a pointer: pid,
	// uid and status, in the kernel's byte order.
	var info unix.Siginfo
	raw := (*[unsafe.Sizeof(info)]byte)(unsafe.Pointer(&info))
	at := 12
	if unsafe.Sizeof(uintptr(0)) == 8 {
		at = 16
	}
	for {
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		switch err {
		case unix.EINTR:
			continue
		case nil:
			e.pid = int32(binary.NativeEndian.Uint32(raw[at:]))
			e.code = info.Code
			e.status = int32(binary.NativeEndian.Uint32(raw[at+8:]))
			return e, e.pid != 0, true
		default: // ECHILD
			return ended{}, false, false
		}
	}
}

// bury reaps the zombie pid.
func bury(pid int32) {
	for unix.Waitid(unix.P_PID, int(pid), nil, unix.WEXITED|unix.WNOHANG, nil) == unix.EINTR {
	}
}

// bootNow is CLOCK_BOOTTIME, which also counts while the machine sleeps.
func bootNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

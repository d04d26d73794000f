// Package stage is the program that a session's process runs between fork and
// exec: it waits at a gate until the daemon has stored what a crash must not
// lose. src/stage.c is that program; `make` builds it into bin/, from where it is
// embedded. A binary built without it stages itself, which costs a few
// milliseconds per session.
//
// The package must be imported by main before anything that is slow to
// initialise: Main runs in its init when the process is a stage.
package stage

import (
	"embed"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors of a stage beyond its terminal.
const (
	Gate   = 3 // one byte read here releases it, end of file ends it
	Errors = 4 // an errno, four bytes in native order, when exec failed
	// Group is the directory of the session's cgroup, where it has one. The
	// stage goes there, becomes the leader of a session with its terminal, and
	// says before all else on Errors, by two int32, which process it is now (0:
	// the same) and the errno that kept it out.
	Group = 5
	// Self is the stage's own program. It is handed over as the others are:
	// between fork and exec their numbers, and a few more, are taken from
	// whatever else has them.
	Self = 6
)

// None is a descriptor that a stage does not get.
const None = ^uintptr(0)

// Unreleased is the exit status of a stage whose gate was closed. A program may
// have it too: it decides only where the gate may have been closed.
const Unreleased = 243

// arg0 makes this very binary a stage.
const arg0 = "ptyd: session is starting"

//go:embed all:bin
var bin embed.FS

// program is the descriptor of the stage's program; None: this very binary is it.
var program = sync.OnceValues(func() (uintptr, error) {
	code, err := bin.ReadFile("bin/stage")
	if err != nil {
		return None, nil
	}
	// A memfd needs no file on disk, and an upgrade cannot pull it away.
	fd, err := unix.MemfdCreate("ptyd-stage", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return None, fmt.Errorf("create the stage's memfd: %w", err)
	}
	if _, err := unix.Write(fd, code); err != nil {
		return None, fmt.Errorf("write the stage: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return None, fmt.Errorf("seal the stage: %w", err)
	}
	return uintptr(fd), nil
})

// Command returns what to execute, its argument list, and what it gets as Self,
// for a stage that becomes path with argv. group says that it gets a Group.
func Command(path string, argv []string, group bool) (exe string, args []string, self uintptr, err error) {
	self, err = program()
	exe = fmt.Sprintf("/proc/self/fd/%d", Self)
	if self == None {
		exe = "/proc/self/exe"
	}
	word := "0"
	if group {
		word = "1"
	}
	return exe, append([]string{arg0, word, path}, argv...), self, err
}

func init() {
	if len(os.Args) >= 4 && os.Args[0] == arg0 {
		run()
	}
}

// run is src/stage.c in Go.
func run() {
	if os.Args[1] == "1" { // the number may be taken by this program's own
		enterGroup()
	}
	var b [1]byte
	for {
		n, err := syscall.Read(Gate, b[:])
		if err == syscall.EINTR {
			continue
		}
		if n != 1 {
			os.Exit(Unreleased)
		}
		break
	}
	_ = syscall.Close(Gate)
	syscall.CloseOnExec(Errors)
	err := syscall.Exec(os.Args[2], os.Args[3:], syscall.Environ())
	var e [4]byte
	if no, ok := err.(syscall.Errno); ok {
		binary.NativeEndian.PutUint32(e[:], uint32(no))
	}
	_, _ = syscall.Write(Errors, e[:])
	os.Exit(127)
}

// enterGroup moves this process into its cgroup: a program with threads cannot
// start another in its place, as the one in C does.
func enterGroup() {
	var said [8]byte
	fd, err := syscall.Openat(Group, "cgroup.procs", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err == nil {
		_, err = syscall.Write(fd, []byte("0"))
		_ = syscall.Close(fd)
	}
	if no, ok := err.(syscall.Errno); ok {
		binary.NativeEndian.PutUint32(said[4:], uint32(no))
	}
	_, _ = syscall.Write(Errors, said[:])
	_ = syscall.Close(Group)
	_, _, _ = syscall.Syscall(syscall.SYS_SETSID, 0, 0, 0)
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, 0, syscall.TIOCSCTTY, 0)
}

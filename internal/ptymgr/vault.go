package ptymgr

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Vault keeps descriptors where they survive this process, and knows how
// processes that are not our children ended. internal/fdstore is the one that
// a keeper stands behind; Direct has nobody behind it.
type Vault interface {
	// NewName returns a name that was never used, or a problem.LimitReached
	// when no more descriptors can be kept.
	NewName() (string, error)
	// Keep stores descriptors under name, beside those that are there. It does
	// not wait; Settle does.
	Keep(name string, fds ...int) error
	// Settle returns when all that was kept before is safe.
	Settle(ctx context.Context) error
	// Drop forgets all descriptors of that name.
	Drop(name string) error
	// CloneFlags are added when a session's process is forked.
	CloneFlags() uintptr
	// Exit returns how the process that began at since (CLOCK_BOOTTIME,
	// nanoseconds) and that pidfd refers to ended; false while that is not
	// known yet.
	Exit(pid, pidfd int, since int64) (ExitStatus, bool)
	// ExitEvent is an eventfd that is readable when Exit may know more, −1
	// where Exit always knows at once.
	ExitEvent() int
	// Exited tells which processes' ends are recorded for good (dealt with
	// reports so); the vault may forget them.
	Exited(dealtWith func(pid int) bool)
	// Pipes are the pipes through which output and input travel.
	Pipes() (output, input Pipe)
	// Held are the sessions' descriptors that an earlier process left.
	Held() []Held
}

// Pipe is a pipe's two ends.
type Pipe struct{ R, W int }

// fill reads exactly len(p) bytes, which the pipe must hold.
func (p Pipe) fill(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(p.R, b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		b = b[n:]
	}
	return nil
}

// empty throws away what the pipe holds.
func (p Pipe) empty() {
	var b [4096]byte
	for {
		if n, err := unix.Read(p.R, b[:]); n <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Held are one session's descriptors: −1 where there is none.
type Held struct {
	Name                 string
	Master, Memfd, Pidfd int
}

// ExitStatus is what the kernel told of a process's end.
type ExitStatus struct {
	Code   *int
	Signal string // "SIGKILL"; "" when it was no signal
	Known  bool   // false: nobody saw it
}

// Direct is the vault of a daemon without a keeper: sessions are its children
// and end with it.
type Direct struct{ out, in Pipe }

// NewDirect makes the pipes.
func NewDirect() (*Direct, error) {
	var d Direct
	for _, p := range []*Pipe{&d.out, &d.in} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			d.Close()
			return nil, err
		}
		p.R, p.W = fds[0], fds[1]
	}
	return &d, nil
}

// Close closes the pipes.
func (d *Direct) Close() {
	for _, fd := range []int{d.out.R, d.out.W, d.in.R, d.in.W} {
		if fd > 0 {
			unix.Close(fd)
		}
	}
}

// NewName implements Vault.
func (*Direct) NewName() (string, error) { return "", nil }

// Keep implements Vault: nothing outlives this process.
func (*Direct) Keep(string, ...int) error { return nil }

// Settle implements Vault.
func (*Direct) Settle(context.Context) error { return nil }

// Drop implements Vault.
func (*Direct) Drop(string) error { return nil }

// CloneFlags implements Vault.
func (*Direct) CloneFlags() uintptr { return 0 }

// Exit implements Vault: the process is a child, so it is reaped here.
func (*Direct) Exit(_, pidfd int, _ int64) (ExitStatus, bool) { return waitStatus(pidfd), true }

// ExitEvent implements Vault.
func (*Direct) ExitEvent() int { return -1 }

// Exited implements Vault.
func (*Direct) Exited(func(int) bool) {}

// Pipes implements Vault.
func (d *Direct) Pipes() (output, input Pipe) { return d.out, d.in }

// Held implements Vault.
func (*Direct) Held() []Held { return nil }

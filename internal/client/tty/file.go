package tty

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stopper ends reads and writes that wait: a blocked read of a terminal cannot
// be ended by closing it, so both wait in poll, for the file and for this.
type stopper struct {
	r, w *os.File
}

func newStopper() (*stopper, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &stopper{r: r, w: w}, nil
}

// stop ends every wait, now and later. It may be called more than once.
func (s *stopper) stop() { _ = s.w.Close() }

// close frees the stopper; nobody may wait any more.
func (s *stopper) close() {
	_ = s.w.Close()
	_ = s.r.Close()
}

// errStopped is what a read or write returns that was ended.
var errStopped = errors.New("stopped")

// await waits until fd is ready for events, or stopped, or timeout is over; a
// negative timeout is none.
func (s *stopper) await(fd int, events int16, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		ms := -1
		if timeout >= 0 {
			ms = int(max(time.Until(deadline), 0).Milliseconds())
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(s.r.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, ms)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return errStopped
		case n == 0:
			return os.ErrDeadlineExceeded
		}
		return nil
	}
}

// reader reads a file so that it can be stopped.
type reader struct {
	fd   int
	stop *stopper
}

func (r reader) Read(p []byte) (int, error) {
	for {
		if err := r.stop.await(r.fd, unix.POLLIN, -1); err != nil {
			return 0, err
		}
		n, err := unix.Read(r.fd, p)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue // EAGAIN: somebody else read it, or left the file non-blocking
		case errors.Is(err, unix.EIO):
			return 0, io.EOF // a terminal that is gone
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// writePiece is how much is written at once: what a pipe takes for sure when
// poll says that it takes anything, so that a write does not wait where it
// cannot be stopped.
const writePiece = 4096

// writer writes a file so that it can be stopped.
type writer struct {
	fd      int
	stop    *stopper
	timeout time.Duration // of each piece; negative for none
}

// openOut returns a descriptor for writing to f, and what closes it. A
// terminal may take a part of a piece and wait with the rest, so it is opened
// anew, without waiting: the flag on f itself would also be that of the shell
// and of everybody else who has the terminal. Where it cannot be opened, f is
// written as it is.
func openOut(f *os.File) (fd int, closeFd func()) {
	fd = int(f.Fd())
	if !IsTerminal(f) {
		return fd, func() {}
	}
	own, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fd, func() {}
	}
	return own, func() { _ = unix.Close(own) }
}

func (w writer) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		if err := w.stop.await(w.fd, unix.POLLOUT, w.timeout); err != nil {
			return done, err
		}
		n, err := unix.Write(w.fd, p[done:min(done+writePiece, len(p))])
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}

package tty

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// restoreTimeout bounds how long restoring waits for a terminal that takes no
// output, such as one that is stopped by Ctrl-S.
const restoreTimeout = 500 * time.Millisecond

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Size is the size of the terminal f, 0 where it has none.
func Size(f *os.File) (cols, rows int) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		return 0, 0
	}
	return cols, rows
}

// terminal is the user's terminal in raw mode.
type terminal struct {
	in  *os.File
	out int

	mu     sync.Mutex  // guards before and raw; held over the ioctl that changes the terminal
	before *term.State // how it was, nil once restored
}

// makeRaw puts the terminal into raw mode.
func makeRaw(in *os.File, out int) (*terminal, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return &terminal{in: in, out: out, before: before}, nil
}

// again puts the terminal into raw mode after this process was stopped: the
// shell has used it meanwhile.
func (t *terminal) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil {
		_, _ = term.MakeRaw(int(t.in.Fd()))
	}
}

// restore leaves the terminal as it was: first undo is written, then the
// settings come back. discard drops input that nobody has read, which the
// terminal may have sent by itself.
func (t *terminal) restore(undo []byte, discard bool) error {
	t.mu.Lock()
	before := t.before
	t.before = nil
	t.mu.Unlock()
	if before == nil {
		return nil
	}
	var errs []error
	if len(undo) > 0 {
		stop, err := newStopper()
		if err != nil {
			errs = append(errs, err)
		} else {
			_, err = writer{fd: t.out, stop: stop, timeout: restoreTimeout}.Write(undo)
			errs = append(errs, err)
			stop.close()
		}
	}
	if discard {
		_ = unix.IoctlSetInt(int(t.in.Fd()), unix.TCFLSH, unix.TCIFLUSH)
	}
	errs = append(errs, term.Restore(int(t.in.Fd()), before))
	return errors.Join(errs...)
}

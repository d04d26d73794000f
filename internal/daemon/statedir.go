package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockWait is how long a new daemon waits for one that is about to end.
const lockWait = 3 * time.Second

// prepareStateDir makes sure that dir exists and is this user's alone.
func prepareStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("state directory %s: not a directory", dir)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("state directory %s: its owner cannot be told", dir)
	}
	if uid := os.Geteuid(); int(sys.Uid) != uid {
		return fmt.Errorf("state directory %s belongs to uid %d, and this is uid %d: run ptyd as its owner, or choose another by --state-dir", dir, sys.Uid, uid)
	}
	// What others could write cannot be trusted, and changing the mode now
	// would not change what they may have put there.
	if perm := st.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("state directory %s is writable by others (mode %04o): check what is in it, then chmod 700", dir, perm)
	}
	if st.Mode().Perm()&0o055 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("close state directory to others: %w", err)
		}
	}
	return nil
}

// lock is the claim of one daemon on a state directory. The kernel lifts it
// when the process ends, however that happens.
type lock struct{ f *os.File }

// takeLock claims dir, whose lock file is at path, waiting a little for another
// daemon that may be ending.
func takeLock(ctx context.Context, dir, path string, wait time.Duration) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-tick.C:
			continue
		case <-deadline.C:
			err = fmt.Errorf("another ptyd (pid %s) owns %s", holder(f), dir)
		case <-ctx.Done():
			err = ctx.Err()
		}
		return nil, errors.Join(err, f.Close())
	}
	l := &lock{f}
	if err := l.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock: %w", err), l.release())
	}
	return l, nil
}

// sign writes who holds the lock, for whoever is refused.
func (l *lock) sign() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release gives the claim back. The file stays: removing it would let two
// daemons lock two files of one name.
func (l *lock) release() error {
	return errors.Join(l.f.Truncate(0), l.f.Close())
}

func holder(f *os.File) string {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	pid := strings.TrimSpace(string(data))
	if _, convErr := strconv.Atoi(pid); err != nil || convErr != nil {
		return "unknown"
	}
	return pid
}

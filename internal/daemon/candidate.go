package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/keeper"
	"github.com/ptyd/ptyd/internal/problem"
)

const (
	// askTime is how long a binary may take to say what it is.
	askTime = 10 * time.Second
	// maxSaid bounds what it may say.
	maxSaid = 64 << 10
)

// trusted is the file that path leads to, where nobody but root and the
// daemon's user could have put it there or can change it: it will run with the
// rights of all sessions.
func trusted(path string) (string, error) {
	refuse := func(format string, args ...any) error {
		return problem.Field("path", format, args...)
	}
	if !filepath.IsAbs(path) {
		return "", refuse("%q is not an absolute path", path)
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(path) > 1024 {
		return "", refuse("%.100q is not a usual path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", refuse("%v", err)
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", refuse("%v", err)
	}
	if !st.Mode().IsRegular() {
		return "", refuse("%s is not a file", real)
	}
	if err := ours(real, st); err != nil {
		return "", refuse("%v", err)
	}
	if st.Mode().Perm()&0o022 != 0 {
		return "", problem.Field("path", "%s can be written by others (mode %04o)", real, st.Mode().Perm()).WithHint("chmod 755 it, if you know who wrote it")
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if err != nil {
			return "", refuse("%v", err)
		}
		if err := ours(dir, st); err != nil {
			return "", refuse("%v", err)
		}
		// In a sticky directory others can't replace what is not theirs.
		if st.Mode()&fs.ModeSticky == 0 {
			if st.Mode().Perm()&0o002 != 0 {
				return "", refuse("everybody can replace what is in %s", dir)
			}
			if gid, of := groupOf(st); st.Mode().Perm()&0o020 != 0 && of {
				return "", problem.Field("path", "the group %d can replace what is in %s", gid, dir).WithHint("chmod g-w it, or put the binary elsewhere")
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if err := unix.Access(real, unix.X_OK); err != nil {
		return "", refuse("%s can't be executed: %v", real, err)
	}
	return real, nil
}

// groupOf is the group of a file, and whether others than root and the daemon's
// user may be in it: the daemon's own group is that user's alone on most systems.
func groupOf(st fs.FileInfo) (gid uint32, others bool) {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, true
	}
	return sys.Gid, sys.Gid != 0 && int(sys.Gid) != os.Getegid()
}

// ours refuses what belongs to others than root and the daemon's user.
func ours(path string, st fs.FileInfo) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || sys.Uid != 0 && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to somebody else than root and the daemon's user", path)
	}
	return nil
}

// ask has the binary at path say what it is and what it can take over, with
// the arguments that its worker would get. It is harmless to a ptyd; what is
// none is recognised by the first, short question.
func ask(ctx context.Context, path string, args []string) (t Takeover, err error) {
	no := func(why string) error {
		return problem.Field("path", "%s is not a ptyd that could take over: %s", path, why)
	}
	var b config.Build
	out, err := say(ctx, path, "version", "--json")
	if err != nil {
		return t, no(err.Error())
	}
	if json.Unmarshal(out, &b) != nil || b.Version == "" || b.Go == "" {
		return t, no("asked for its version it said something else")
	}
	if out, err = say(ctx, path, canAdopt(args)...); err != nil {
		return t, no(fmt.Sprintf("ptyd %s with this daemon's arguments and configuration: %v", b.Version, err))
	}
	if err := json.Unmarshal(out, &t); err != nil || t.Version == "" || len(t.Reads) == 0 {
		return t, no("asked what it can take over it said something else")
	}
	return t, nil
}

// canAdopt are a worker's arguments turned into the question.
func canAdopt(args []string) []string {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--worker" })
	return append(args, "--can-adopt")
}

// say runs a program and returns what it said on standard output. Its errors
// are short: the first line of standard error.
func say(ctx context.Context, path string, args ...string) ([]byte, error) {
	within := failpoint.Duration("daemon.ask", askTime)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = keeper.CleanEnv(os.Environ())
	cmd.WaitDelay = time.Second
	var out, errOut bounded
	cmd.Stdout, cmd.Stderr = &out, &errOut
	// A group of its own, and it ends with the thread that starts it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	runtime.LockOSThread()
	err := cmd.Run()
	runtime.UnlockOSThread()
	switch {
	case out.full || errOut.full:
		return nil, errTooLong
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer within %v", within)
	case err != nil:
		if first, _, _ := strings.Cut(strings.TrimSpace(errOut.buf.String()), "\n"); first != "" {
			return nil, fmt.Errorf("%w: %.500s", err, first)
		}
		return nil, err
	}
	return out.buf.Bytes(), nil
}

var errTooLong = errors.New("too long an answer")

// bounded takes no more than maxSaid.
type bounded struct {
	buf  bytes.Buffer // not embedded: its ReadFrom would take everything
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > maxSaid-b.buf.Len() {
		b.full = true
		return 0, errTooLong // and nobody reads on
	}
	return b.buf.Write(p)
}

package ptymgr

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr/stage"
)

// DefaultPath is the PATH of sessions where the configuration names none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BaseEnv is the fixed environment that every session starts from: who the
// daemon's user is, where programs are, and a terminal that xterm.js is. The
// daemon's own environment, and with it its secrets, is not inherited.
func BaseEnv() []string {
	env := []string{"TERM=xterm-256color", "COLORTERM=truecolor", "PATH=" + DefaultPath}
	lang := "C.UTF-8"
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(k); v != "" {
			if up := strings.ToUpper(v); strings.Contains(up, "UTF-8") || strings.Contains(up, "UTF8") {
				lang = v
			}
			break
		}
	}
	env = append(env, "LANG="+lang)
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		env = append(env, "HOME="+u.HomeDir, "USER="+u.Username, "LOGNAME="+u.Username)
	}
	if tz := os.Getenv("TZ"); tz != "" {
		env = append(env, "TZ="+tz)
	}
	return env
}

// LoginShell is the shell of the daemon's user in /etc/passwd, else /bin/sh.
func LoginShell() string {
	b, err := os.ReadFile("/etc/passwd")
	if err == nil {
		uid := strconv.Itoa(os.Getuid())
		for line := range strings.Lines(string(b)) {
			if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == uid && filepath.IsAbs(f[6]) {
				if st, err := os.Stat(f[6]); err == nil && st.Mode()&0o111 != 0 {
					return f[6]
				}
			}
		}
	}
	return "/bin/sh"
}

// environ puts additions over base; a later K=V replaces an earlier one.
func environ(base, add []string, id string) []string {
	at := map[string]int{}
	var env []string
	for _, kv := range append(append(append([]string(nil), base...), add...), "PTYD_SESSION="+id) {
		k, _, _ := strings.Cut(kv, "=")
		if i, ok := at[k]; ok {
			env[i] = kv
			continue
		}
		at[k] = len(env)
		env = append(env, kv)
	}
	return env
}

func getenv(env []string, key string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == key {
			return v
		}
	}
	return ""
}

// lookPath finds the program as execvp would in the session's environment and
// directory, not the daemon's.
func lookPath(name, cwd, path string) (string, error) {
	check := func(p string) error {
		if !filepath.IsAbs(p) {
			p = filepath.Join(cwd, p)
		}
		st, err := os.Stat(p)
		switch {
		case err != nil:
			return err
		case st.IsDir():
			return fmt.Errorf("%s is a directory", name)
		case st.Mode()&0o111 == 0:
			return fs.ErrPermission
		}
		return nil
	}
	fail := func(err error) error {
		hint := "give the full path, or check PATH"
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%s: not found", name)
		case errors.Is(err, fs.ErrPermission):
			err, hint = fmt.Errorf("%s: not executable", name), "check the file's mode and its directories'"
		}
		return &problem.Error{Code: problem.ExecFailed, Field: "argv", Detail: err.Error(), Hint: hint}
	}
	if strings.Contains(name, "/") {
		if err := check(name); err != nil {
			return "", fail(err)
		}
		return name, nil
	}
	err := fs.ErrNotExist
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		p := filepath.Join(dir, name)
		e := check(p)
		if e == nil {
			return p, nil
		}
		if !errors.Is(e, fs.ErrNotExist) && !errors.Is(e, unix.ENOTDIR) {
			err = e
		}
	}
	return "", fail(err)
}

// openPTY opens a pair. The master is a raw descriptor, non-blocking and
// close-on-exec: an os.File would set it back to blocking with Fd, and then
// each terminal costs a thread.
func openPTY(cols, rows uint16) (master int, slave *os.File, err error) {
	f, slave, err := pty.Open()
	if err != nil {
		return -1, nil, fmt.Errorf("open pty: %w", err)
	}
	master, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	f.Close()
	if err == nil {
		if err = unix.SetNonblock(master, true); err == nil {
			err = unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
			if t, e := unix.IoctlGetTermios(master, unix.TCGETS); e == nil {
				t.Iflag |= unix.IUTF8 // Backspace takes a character, not a byte (termios(3))
				_ = unix.IoctlSetTermios(master, unix.TCSETS, t)
			}
		}
		if err != nil {
			unix.Close(master)
		}
	}
	if err != nil {
		slave.Close()
		return -1, nil, fmt.Errorf("set up pty: %w", err)
	}
	return master, slave, nil
}

// start makes the PTY, the ring and the process of r, in an order that leaves
// nothing behind when this process dies in between: descriptors are stored
// before the process exists, and it runs nothing before they and its row are
// safe. Errors are for people.
func (m *Manager) start(ctx context.Context, r Record, shell bool, limit int64, b *birth) (_ *Session, err error) {
	env := environ(append([]string{"SHELL=" + m.cfg.Load().Shell}, m.baseEnv()...), r.Env, r.ID)
	path, err := lookPath(r.Argv[0], r.Cwd, getenv(env, "PATH"))
	if err != nil {
		return nil, err
	}
	argv := r.Argv
	if shell { // a leading dash makes it a login shell
		argv = append([]string{"-" + filepath.Base(r.Argv[0])}, r.Argv[1:]...)
	}
	name, err := m.vault.NewName()
	if err != nil {
		return nil, err
	}
	ring, err := buffer.New(r.Epoch, limit)
	if err != nil {
		return nil, outOf(err)
	}
	master, slave, err := openPTY(r.Cols, r.Rows)
	if err != nil {
		ring.Close()
		return nil, outOf(err)
	}
	s := m.newSession(r, ring, limit, name)
	s.master = master
	defer slave.Close()
	defer func() {
		if err != nil {
			_ = m.vault.Drop(name)
			s.bury()
			m.groups.drop(s.id)
			s.closeMaster()
			ring.Close()
		}
	}()
	if s.group, err = m.groups.create(r.ID, r.limits()); err != nil {
		return nil, err
	}
	s.blk.begin(r.ID)
	if err := m.vault.Keep(name, master, ring.FD()); err != nil {
		return nil, fmt.Errorf("store the session's descriptors: %w", err)
	}
	failpoint.Hit("ptymgr.start.kept")
	if err := s.fork(ctx, path, argv, env, slave.Fd(), b); err != nil {
		return nil, err
	}
	return s, nil
}

// newSession is a session without a process.
func (m *Manager) newSession(r Record, ring *buffer.Ring, limit int64, name string) *Session {
	s := &Session{m: m, id: r.ID, epoch: r.Epoch, limit: limit, ring: ring, blk: ring.Block(), kept: name, master: -1, pidfd: -1, rec: r,
		viewers: map[*Viewer]struct{}{}, done: make(chan struct{}), noCheckpoint: r.NoCheckpoint}
	s.in.clients = map[ClientID]*inClient{}
	s.in.blk = s.blk
	s.outputAt.Store(time.Now().UnixNano())
	s.records = []record{{seq: 1, cols: r.Cols, rows: r.Rows}}
	s.recSeq.Store(1)
	s.sizedFrom = ring.Head()
	return s
}

// fork starts the stage, stores what it is, and lets it through to the program.
func (s *Session) fork(ctx context.Context, path string, argv, env []string, slave uintptr, b *birth) error {
	exe, args, self, err := stage.Command(path, argv, s.group != nil)
	if err != nil {
		return err
	}
	var gate, errs [2]int
	if err := unix.Pipe2(gate[:], unix.O_CLOEXEC); err != nil {
		return outOf(err)
	}
	defer unix.Close(gate[0])
	gateOpen := true
	openGate := func(let bool) {
		if gateOpen {
			gateOpen = false
			if let {
				_, _ = unix.Write(gate[1], []byte{1})
			}
			unix.Close(gate[1])
		}
	}
	defer openGate(false)
	if err := unix.Pipe2(errs[:], unix.O_CLOEXEC); err != nil {
		return outOf(err)
	}
	defer unix.Close(errs[0])
	dir, attr, err := s.attrs([]uintptr{slave, slave, slave, uintptr(gate[0]), uintptr(errs[1])}, self)
	if err != nil {
		unix.Close(errs[1])
		return err
	}
	attr.Env = env
	began := bootTime()
	s.began = began
	s.pid, _, err = syscall.StartProcess(exe, args, attr)
	unix.Close(errs[1])
	if dir != nil {
		dir.Close()
	}
	if err != nil {
		s.pid = 0
		return s.execError(path, err)
	}
	if dir != nil {
		if err := s.enter(errs[0], s.rec.limits()); err != nil {
			return err
		}
	}
	failpoint.Hit("ptymgr.start.forked")
	p, _ := readStat(s.pid)
	s.blk.process(s.pid, p.start, began, time.Now())
	s.rec.Birth = birthOf(p.start)
	if err = s.m.vault.Keep(s.kept, s.pidfd); err == nil {
		err = s.m.vault.Settle(ctx)
	}
	if err != nil {
		return fmt.Errorf("store the session's process: %w", err) // the gate closes: nothing runs
	}
	if err := b.inserted(); err != nil {
		return err
	}
	failpoint.Hit("ptymgr.start.settled")
	s.blk.u32(blkReleased).Store(1)
	failpoint.Hit("ptymgr.start.released")
	openGate(true)
	failpoint.Hit("ptymgr.start.opened")
	s.blk.u32(blkOpened).Store(1)
	s.rec.State, s.rec.PID, s.rec.StartedAt = Running, s.pid, time.Now()
	b.mark(ctx, s.rec)
	var e [4]byte
	n, err := unix.Read(errs[0], e[:])
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(errs[0], e[:])
	}
	if n == len(e) {
		return s.execError(path, unix.Errno(binary.NativeEndian.Uint32(e[:])))
	}
	return nil
}

// bury waits for a process that became no program; its gate is closed.
func (s *Session) bury() {
	if s.pidfd < 0 {
		return
	}
	_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
	await(s.pidfd)
	s.m.vault.Exit(s.pid, s.pidfd, s.began)
}

func (s *Session) execError(path string, err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM) {
		return outOf(err)
	}
	return &problem.Error{Code: problem.ExecFailed, Field: "argv", Detail: fmt.Sprintf("%s: %v", path, err),
		Hint: "the file may be no program of this machine, its interpreter may be missing, or a script may lack its first line, such as #!/bin/sh"}
}

// bootTime is CLOCK_BOOTTIME in nanoseconds.
func bootTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return ts.Nano()
}

// outOf names a shortage of the machine in words of the user's.
func outOf(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return problem.New(problem.LimitReached, "the daemon has no descriptors left").WithHint("raise LimitNOFILE, or close sessions").Because(err)
	case errors.Is(err, unix.ENOSPC):
		return problem.New(problem.LimitReached, "no terminal or memory is left for another session").WithHint("see /proc/sys/kernel/pty/max and free memory").Because(err)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		return problem.New(problem.LimitReached, "the machine has no processes or memory left").WithHint("raise TasksMax or ulimit -u, or close sessions").Because(err)
	}
	return err
}

// siginfoChild is the part of siginfo_t that waitid(2) fills for a child.
type siginfoChild struct {
	signo, errno, code, _ int32
	pid                   int32
	uid                   uint32
	status                int32
	_                     [100]byte
}

// The values of si_code for a child (sigaction(2)).
const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

// waitStatus reaps the process behind pidfd, which has ended.
func waitStatus(pidfd int) ExitStatus {
	var si siginfoChild
	for {
		err := unix.Waitid(unix.P_PIDFD, pidfd, (*unix.Siginfo)(unsafe.Pointer(&si)), unix.WEXITED|unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || si.pid == 0 {
			return ExitStatus{}
		}
		break
	}
	return StatusOf(si.code, si.status)
}

// StatusOf reads si_code and si_status of a child's end.
func StatusOf(code, status int32) ExitStatus {
	switch code {
	case cldExited:
		c := int(status)
		return ExitStatus{Known: true, Code: &c}
	case cldKilled, cldDumped:
		return ExitStatus{Known: true, Signal: signalName(unix.Signal(status))}
	}
	return ExitStatus{}
}

func signalName(sig unix.Signal) string {
	if n := unix.SignalName(sig); n != "" {
		return n
	}
	return fmt.Sprintf("SIG%d", int(sig))
}

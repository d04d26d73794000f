package ptymgr

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/problem"
)

// proc is one process as /proc tells of it, held by a pidfd so that its number
// cannot be taken by a stranger between the look and the signal.
type proc struct {
	pid, ppid, session int
	start              uint64 // clock ticks since boot
}

// readStat parses /proc/PID/stat; see proc_pid_stat(5). The command's name may
// hold anything, so fields count from the last parenthesis.
func readStat(pid int) (p proc, ok bool) {
	f := statFields(pid)
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return p, false
	}
	num := func(i int) int { n, _ := strconv.Atoi(string(f[i])); return n }
	p = proc{pid: pid, ppid: num(1), session: num(3)}
	var err error
	p.start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return p, err == nil
}

// statFields are the fields after the command's name; none where the process is
// gone.
func statFields(pid int) [][]byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}

// hasTerminal tells whether a process has a controlling terminal.
func hasTerminal(pid int) bool {
	f := statFields(pid)
	return len(f) > 4 && string(f[4]) != "0"
}

// pidfdSignal is unix.PidfdSendSignal; a test lets it refuse, as the kernel does
// for another user's process.
var pidfdSignal = func(pidfd int, sig unix.Signal) error { return unix.PidfdSendSignal(pidfd, sig, nil, 0) }

// signal sends sig to p, unless its number belongs to somebody else by now.
func (p proc) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := readStat(p.pid); ok && now.start == p.start {
		_ = pidfdSignal(fd, sig)
	}
}

// ignores reports whether p ignores sig, as interactive shells do with TERM.
func (p proc) ignores(sig unix.Signal) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
	if err != nil {
		return false
	}
	_, b, ok := bytes.Cut(b, []byte("\nSigIgn:\t"))
	if !ok {
		return false
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	mask, err := strconv.ParseUint(string(line), 16, 64)
	return err == nil && mask&(1<<(sig-1)) != 0
}

// ask tells p to end: TERM, or HUP where it ignores TERM, so that a shell at
// its prompt goes at once and a program in its TERM handler is left to finish
// it; and CONT, for what is stopped.
func (p proc) ask() {
	if p.ignores(unix.SIGTERM) {
		p.signal(unix.SIGHUP)
	} else {
		p.signal(unix.SIGTERM)
	}
	p.signal(unix.SIGCONT)
}

// left are the living processes of a session: those in its cgroup, where it has
// one, and those that its tree and its mark lead to.
func (m *Manager) left(s *Session) []proc {
	all := m.lookout.census().tree(s.pid, s.id)
	seen := map[proc]bool{}
	for _, p := range all {
		seen[p] = true
	}
	for _, p := range m.groups.procs(s.id) {
		if !seen[p] {
			all = append(all, p)
		}
	}
	return all
}

// killWait is how long after KILL something may still live: then it is beyond
// us (another user's process, or one that is stuck in the kernel).
const killWait = 2 * time.Second

// Close ends a session's whole process tree: it is asked to end, and after
// grace killed. It returns when the session has ended and nothing of it lives,
// or with problem.Forbidden, naming them, when processes live that this daemon
// cannot end; the session has ended then too. A negative grace is the
// configured one; when ctx ends the grace does.
func (m *Manager) Close(ctx context.Context, id string, grace time.Duration) (Info, error) {
	s, ok := m.sessions.Load(id)
	if !ok {
		return m.Get(ctx, id) // ended before this daemon started, or unknown
	}
	if grace < 0 {
		grace = m.cfg.Load().Grace
	}
	deadline := time.Now().Add(grace)
	told := map[proc]bool{}
	step := 5 * time.Millisecond
	var killed time.Time
	for {
		left := m.left(s)
		ended := isClosed(s.done)
		if ended && len(left) == 0 {
			m.groups.dropStale()
			return s.Info(), nil
		}
		now := time.Now()
		hard := !now.Before(deadline) || ctx.Err() != nil
		if hard && killed.IsZero() {
			killed = now
		}
		if hard && now.Sub(killed) > killWait {
			return s.abandon(left)
		}
		if hard {
			m.groups.kill(s.id) // at once, whatever forks meanwhile
		}
		for _, p := range left {
			if hard {
				p.signal(unix.SIGKILL)
			} else if !told[p] { // also those that were born meanwhile
				told[p] = true
				p.ask()
			}
		}
		if hard && !ended && len(left) == 0 {
			s.kill(unix.SIGKILL) // /proc may be hidden from us: the pidfd is not
		}
		// The leader's end is an event; what outlives it is not our child, so
		// it is looked for again, ever less often.
		var done <-chan struct{}
		if !ended {
			done = s.done
		}
		wait := step
		if !hard {
			wait = min(wait, max(time.Until(deadline), 0))
		}
		t := time.NewTimer(wait)
		select {
		case <-done:
		case <-t.C:
		}
		t.Stop()
		step = min(step*2, 200*time.Millisecond)
	}
}

// abandon ends a session some of whose processes live on. Its terminal is
// closed, and with it goes the hang-up, which the kernel sends whoever they
// belong to.
func (s *Session) abandon(left []proc) (Info, error) {
	s.m.loop.do(func() {
		if _, live := s.m.loop.sessions[s.rd.token]; live {
			s.m.loop.end(s.rd)
		}
	})
	<-s.done
	var names []string
	for _, p := range left {
		names = append(names, strconv.Itoa(p.pid))
	}
	if len(names) == 0 {
		names = []string{strconv.Itoa(s.pid)}
	}
	list := strings.Join(names, ", ")
	s.logger().Warn("processes of a closed session live on", zap.String("pids", list))
	return s.Info(), problem.New(problem.Forbidden, "processes %s cannot be ended by this daemon's user", list).
		WithHint("the session has ended; end them as their owner")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

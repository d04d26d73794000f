package fdstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
	"github.com/ptyd/ptyd/internal/problem"
)

// The names of what belongs to no session. Sessions have numbers in base 62,
// so their names begin with a digit.
const (
	nameGlobal    = "g"
	nameOutput    = "po"
	nameInput     = "pi"
	nameExits     = "x"
	nameExitEvent = "xe"
	nameLock      = "lock"
)

// firstFD is where LISTEN_FDS begins (sd_listen_fds(3)).
const firstFD = 3

// Held are one session's stored descriptors, −1 where there is none.
type Held struct {
	Name                 string
	Master, Memfd, Pidfd int
}

// Pipe is a pipe's two ends.
type Pipe struct{ R, W int }

// Store keeps descriptors with the keeper.
type Store struct {
	conn  *notifyproto.Conn
	exits *notifyproto.Exits
	event int
	g     *global
	out   Pipe
	in    Pipe
	held  []Held
	socks map[string]int // listeners by name
	bad   []string       // what was stored and of no use, for the log

	mu    sync.Mutex // guards names
	names map[string]int
	max   int
}

// Env is what the keeper tells a worker.
type Env struct {
	Socket     string // where notices go
	Generation int
	Restarts   int
	Keeper     int
	FDMax      int // sessions' descriptors that can be kept; 0: not limited
}

// FromEnv reads the keeper's variables; ok is false where there is no keeper.
func FromEnv() (e Env, ok bool) {
	e.Socket = os.Getenv("NOTIFY_SOCKET")
	e.Keeper, _ = strconv.Atoi(os.Getenv("PTYD_KEEPER"))
	e.Generation, _ = strconv.Atoi(os.Getenv("PTYD_GENERATION"))
	e.Restarts, _ = strconv.Atoi(os.Getenv("PTYD_RESTARTS"))
	e.FDMax, _ = strconv.Atoi(os.Getenv("PTYD_FDSTORE_MAX"))
	return e, e.Keeper != 0 && e.Socket != ""
}

// received are the descriptors that this process was started with, by name.
func received() (map[string][]int, error) {
	n, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	got := map[string][]int{}
	for i := range n {
		fd := firstFD + i
		unix.CloseOnExec(fd)
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return nil, fmt.Errorf("descriptor %d of %d is not there", fd, n)
		}
		name := "unknown"
		if i < len(names) && names[i] != "" {
			name = names[i]
		}
		got[name] = append(got[name], fd)
	}
	return got, nil
}

// Open takes over what the keeper holds and makes what is missing.
func Open(ctx context.Context, e Env) (s *Store, err error) {
	got, err := received()
	if err != nil {
		return nil, err
	}
	return open(ctx, e, got)
}

func open(ctx context.Context, e Env, got map[string][]int) (s *Store, err error) {
	s = &Store{names: map[string]int{}, socks: map[string]int{}, max: e.FDMax}
	defer func() {
		if err != nil {
			s.Close()
			s = nil
		}
	}()
	if s.conn, err = notifyproto.Dial(e.Socket); err != nil {
		return s, fmt.Errorf("reach the keeper: %w", err)
	}
	s.event = -1
	if fds := got[nameExitEvent]; len(fds) == 1 {
		s.event = fds[0]
	}
	if fds := got[nameExits]; len(fds) != 1 || s.event < 0 {
		return s, errors.New("the keeper gave no record of ends")
	} else if s.exits, err = notifyproto.OpenExits(fds[0]); err != nil {
		return s, fmt.Errorf("open the record of ends: %w", err)
	}
	if s.g, err = s.openGlobal(got[nameGlobal]); err != nil {
		return s, err
	}
	if err = s.g.lock(); err != nil {
		return s, err
	}
	if s.out, err = s.openPipe(nameOutput, got[nameOutput]); err != nil {
		return s, err
	}
	if s.in, err = s.openPipe(nameInput, got[nameInput]); err != nil {
		return s, err
	}
	for name, fds := range got {
		switch {
		case name == nameGlobal, name == nameOutput, name == nameInput, name == nameExits, name == nameExitEvent, name == nameLock:
		case strings.HasPrefix(name, "l"):
			for _, fd := range fds[1:] {
				unix.Close(fd)
			}
			s.socks[name] = fds[0]
		case name[0] >= '0' && name[0] <= '9':
			s.held = append(s.held, sort(name, fds))
			s.names[name] = len(fds)
		default:
			if err = s.discard(name, "no name of ours", fds...); err != nil {
				return s, err
			}
		}
	}
	s.g.above(s.names)
	slices.SortFunc(s.held, func(a, b Held) int { return strings.Compare(a.Name, b.Name) })
	return s, s.Settle(ctx)
}

// discard drops stored descriptors that are of no use: whatever lies there must
// not keep a worker from starting.
func (s *Store) discard(name, why string, fds ...int) error {
	for _, fd := range fds {
		unix.Close(fd)
	}
	s.bad = append(s.bad, fmt.Sprintf("%s: %s", name, why))
	return s.Drop(name)
}

// Discarded tells which stored descriptors were dropped at the start, and why.
func (s *Store) Discarded() []string { return s.bad }

// sort tells a session's descriptors apart. What is none of them is closed.
func sort(name string, fds []int) Held {
	h := Held{Name: name, Master: -1, Memfd: -1, Pidfd: -1}
	for _, fd := range fds {
		at := &h.Memfd
		switch link, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); {
		case strings.HasPrefix(link, "/memfd:"):
		case strings.Contains(link, "ptmx"):
			at = &h.Master
		case strings.Contains(link, "pidfd"):
			at = &h.Pidfd
		default:
			at = nil
		}
		if at == nil || *at >= 0 {
			unix.Close(fd)
			continue
		}
		*at = fd
	}
	return h
}

// openPipe takes the two ends that were stored, or makes and stores them.
func (s *Store) openPipe(name string, fds []int) (p Pipe, err error) {
	if p, ok := pipeOf(fds); ok {
		return p, nil
	}
	if len(fds) > 0 {
		if err := s.discard(name, "not the two ends of one pipe", fds...); err != nil {
			return p, err
		}
	}
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return p, fmt.Errorf("make pipe %s: %w", name, err)
	}
	p.R, p.W = fd[0], fd[1]
	return p, s.send(name, p.R, p.W)
}

// pipeOf tells two ends of one pipe apart.
func pipeOf(fds []int) (p Pipe, ok bool) {
	p = Pipe{R: -1, W: -1}
	var inode uint64
	for i, fd := range fds {
		var st unix.Stat_t
		fl, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO || i > 0 && st.Ino != inode {
			return p, false
		}
		inode = st.Ino
		switch fl & unix.O_ACCMODE {
		case unix.O_RDONLY:
			p.R = fd
		case unix.O_WRONLY:
			p.W = fd
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			return p, false
		}
	}
	return p, len(fds) == 2 && p.R >= 0 && p.W >= 0
}

func (s *Store) send(name string, fds ...int) error {
	if err := s.conn.Send(notifyproto.Encode("FDSTORE=1", "FDNAME="+name, "FDPOLL=0"), fds...); err != nil {
		return fmt.Errorf("store %d descriptors as %s: %w", len(fds), name, err)
	}
	return nil
}

// perSession is how many descriptors a living session stores.
const perSession = 3

// NewName returns a name that was never used before.
func (s *Store) NewName() (string, error) {
	s.mu.Lock()
	n := 0
	for _, k := range s.names {
		n += k
	}
	names := len(s.names)
	s.mu.Unlock()
	if s.max > 0 && n+perSession > s.max {
		return "", problem.New(problem.LimitReached, "the service manager keeps no more descriptors: %d of %d are in use", n, s.max).
			WithHint("raise FileDescriptorStoreMax of the unit, or remove ended sessions")
	}
	if names >= maxNames {
		return "", problem.New(problem.LimitReached, "%d sessions are kept, more cannot be handed to the next daemon", names).
			WithHint("remove ended sessions")
	}
	return s.g.name(), nil
}

// maxNames is what LISTEN_FDNAMES holds: 128 KiB of names that stand there once
// for each descriptor.
const maxNames = 6900

// Keep stores descriptors under a name.
func (s *Store) Keep(name string, fds ...int) error {
	s.mu.Lock()
	s.names[name] += len(fds)
	s.mu.Unlock()
	return s.send(name, fds...)
}

// Settle returns when everything sent before is stored.
func (s *Store) Settle(ctx context.Context) error { return s.conn.Barrier(ctx) }

// Drop forgets all descriptors of a name.
func (s *Store) Drop(name string) error {
	s.mu.Lock()
	delete(s.names, name)
	s.mu.Unlock()
	if err := s.conn.Send(notifyproto.Encode("FDSTOREREMOVE=1", "FDNAME="+name)); err != nil {
		return fmt.Errorf("drop descriptors %s: %w", name, err)
	}
	return nil
}

// Held are the sessions' descriptors that were there at the start.
func (s *Store) Held() []Held { return s.held }

// Pipes are the stored pipes.
func (s *Store) Pipes() (output, input Pipe) { return s.out, s.in }

// ExitEvent is readable when the keeper has recorded ends.
func (s *Store) ExitEvent() int { return s.event }

// Exit finds the end of a process that began at since (CLOCK_BOOTTIME,
// nanoseconds): si_code and si_status.
func (s *Store) Exit(pid int, since int64) (code, status int32, ok bool) {
	r, ok := s.exits.Find(pid)
	if !ok || r.At < since {
		return 0, 0, false // an earlier process of that number
	}
	return r.Code, r.Status, true
}

// Exited lets the keeper forget records of processes that are dealt with. One
// goroutine calls it.
func (s *Store) Exited(dealtWith func(pid int) bool) {
	for {
		r, ok := s.exits.Next()
		if !ok || !dealtWith(int(r.PID)) {
			return
		}
		s.exits.Consume()
	}
}

// Listener returns the listener stored under name, or makes one and stores it.
// A stored one keeps the connections that came while nobody accepted.
func (s *Store) Listener(name string, fresh func() (net.Listener, error)) (l net.Listener, kept bool, err error) {
	if fd, ok := s.socks[name]; ok {
		f := os.NewFile(uintptr(fd), name)
		l, err := net.FileListener(f)
		f.Close()
		delete(s.socks, name)
		if err == nil {
			return l, true, nil
		}
		if err := s.discard(name, "no listener"); err != nil {
			return nil, false, err
		}
	}
	if l, err = fresh(); err != nil {
		return nil, false, err
	}
	return l, false, s.keepListener(name, l)
}

// keepListener stores l's own descriptor. A copy of it by File, whose Fd makes
// the open file blocking, would have accept block a thread, and Close wait for it.
func (s *Store) keepListener(name string, l net.Listener) error {
	sc, ok := l.(syscall.Conn)
	if !ok {
		return fmt.Errorf("store %s: a %T has no descriptor", name, l)
	}
	raw, err := sc.SyscallConn()
	if err == nil {
		var serr error
		err = raw.Control(func(fd uintptr) { serr = s.send(name, int(fd)) })
		err = errors.Join(err, serr)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return nil
}

// DropListener forgets a stored listener that is not wanted any more.
func (s *Store) DropListener(name string) error {
	if fd, ok := s.socks[name]; ok {
		unix.Close(fd)
		delete(s.socks, name)
	}
	return s.Drop(name)
}

// Notify sends a state, such as READY=1.
func (s *Store) Notify(vars ...string) error { return s.conn.Send(notifyproto.Encode(vars...)) }

// Ask sends a request and returns the keeper's answer.
func (s *Store) Ask(ctx context.Context, vars ...string) (string, error) {
	return s.conn.Ask(ctx, notifyproto.Encode(vars...))
}

// Close lets go of the keeper; what is stored stays.
func (s *Store) Close() error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close()
}

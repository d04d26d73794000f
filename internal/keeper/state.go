package keeper

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// stateVar names the memfd in which a keeper finds what its former self knew.
const stateVar = "PTYD_KEEPER_STATE"

const (
	stateMagic = "ptyd-keeper"
	// StateVersion is raised when a reader of before would go wrong. A new
	// line needs no new version: unknown ones are skipped.
	StateVersion = 1
	maxState     = 16 << 20
)

// state is what goes through an execve: text, a fact a line, so that releases
// can read each other's.
type state struct {
	binary        string
	worker        int
	gen, restarts uint64
	notify        int
	notifyPath    string
	exits, event  int
	lock          int // −1: none
	stay, tty     bool
	started       int64  // Unix microseconds; 0: not said
	origin        string // "": not said
	upgrades      int
	fds           []held
}

func (s *state) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s %d\npid %d\n", stateMagic, StateVersion, os.Getpid())
	fmt.Fprintf(b, "binary %s\n", s.binary)
	fmt.Fprintf(b, "worker %d\ngeneration %d\nrestarts %d\n", s.worker, s.gen, s.restarts)
	fmt.Fprintf(b, "notify %d %s\nexits %d\nevent %d\nlock %d\n", s.notify, s.notifyPath, s.exits, s.event, s.lock)
	fmt.Fprintf(b, "stay %t\ntty %t\n", s.stay, s.tty)
	fmt.Fprintf(b, "started %d\norigin %s\nupgrades %d\n", s.started, s.origin, s.upgrades)
	for _, h := range s.fds {
		fmt.Fprintf(b, "fd %d %s\n", h.fd, h.name)
	}
	fmt.Fprintf(b, "end\n")
	return b.Flush()
}

// all calls f for each descriptor of the state.
func (s *state) all(f func(fd int)) {
	for _, fd := range []int{s.notify, s.exits, s.event, s.lock} {
		if fd >= 0 {
			f(fd)
		}
	}
	for _, h := range s.fds {
		f(h.fd)
	}
}

func parseState(r io.Reader) (*state, error) {
	s := &state{notify: -1, exits: -1, event: -1, lock: -1}
	in := bufio.NewScanner(io.LimitReader(r, maxState))
	if !in.Scan() || in.Text() != fmt.Sprintf("%s %d", stateMagic, StateVersion) {
		return nil, fmt.Errorf("read the keeper's state: it begins with %.40q", in.Text())
	}
	whole := false
	for !whole && in.Scan() {
		key, rest, _ := strings.Cut(in.Text(), " ")
		first, second, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(first)
		switch key {
		case "pid":
			if err == nil && n != os.Getpid() {
				err = errors.New("another process's")
			}
		case "binary":
			s.binary, err = rest, nil
		case "worker":
			s.worker = n
		case "generation":
			s.gen = uint64(n)
		case "restarts":
			s.restarts = uint64(n)
		case "notify":
			s.notify, s.notifyPath = n, second
		case "exits":
			s.exits = n
		case "event":
			s.event = n
		case "lock":
			s.lock = n
		case "stay":
			s.stay, err = strconv.ParseBool(first)
		case "tty":
			s.tty, err = strconv.ParseBool(first)
		case "started":
			s.started, err = strconv.ParseInt(first, 10, 64)
		case "origin":
			s.origin, err = rest, nil
		case "upgrades":
			s.upgrades = n
		case "fd":
			s.fds = append(s.fds, held{name: second, fd: n})
		case "end":
			whole, err = true, nil
		default: // of a later release
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the keeper's state: %.80q: %w", in.Text(), err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read the keeper's state: %w", err)
	}
	if !whole || s.binary == "" || s.worker <= 0 || s.notify < 0 || s.exits < 0 || s.event < 0 {
		return nil, errors.New("read the keeper's state: it is not whole")
	}
	return s, nil
}

// resumed reads the state once. nil: this process is a keeper's first image.
var resumed = sync.OnceValues(func() (*state, error) {
	v := os.Getenv(stateVar)
	if v == "" {
		return nil, nil
	}
	_ = os.Unsetenv(stateVar)
	fd, err := strconv.Atoi(v)
	if err != nil || fd < firstFD {
		return nil, fmt.Errorf("read the keeper's state: %s=%.40q", stateVar, v)
	}
	f := os.NewFile(uintptr(fd), "state")
	defer f.Close()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the keeper's state: %w", err)
	}
	s, err := parseState(f)
	if err != nil {
		return nil, err
	}
	s.all(unix.CloseOnExec) // before anything is forked
	return s, nil
})

var resumedLock = sync.OnceValue(func() *os.File {
	if s, err := resumed(); err == nil && s != nil && s.lock >= 0 {
		return os.NewFile(uintptr(s.lock), "lock")
	}
	return nil
})

// Resumed tells whether this process is a keeper that executed itself anew
// after an upgrade. It holds the state directory's lock then already, lock, and
// must come to Run without fail and soon: the worker serves, but is not kept.
func Resumed() (lock *os.File, ok bool) {
	s, err := resumed()
	return resumedLock(), s != nil || err != nil
}

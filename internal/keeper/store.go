package keeper

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// The keeper's own names. A worker can't store under them.
const (
	nameExits = "x"
	nameEvent = "xe"
	nameLock  = "lock"
)

const (
	// maxNames bounds LISTEN_FDNAMES: the kernel takes 128 KiB for one string
	// of the environment. With three descriptors of at most five characters a
	// session it is enough for about 6,800 sessions.
	maxNames = 120 << 10
	// sharedFDs is how many of the stored descriptors are not sessions': what
	// the worker shares between them, and listeners.
	sharedFDs = 16
	// ownFDs is what the keeper itself needs open, with room for a datagram.
	ownFDs = 64 + notifyproto.MaxFDs
)

// held is one stored descriptor.
type held struct {
	name string
	fd   int
}

// store keeps descriptors by name, in the order in which they came.
type store struct {
	all   []held
	names int // bytes of all names with their separators
	max   int
}

// check tells whether n more descriptors can be stored under name.
func (s *store) check(name string, n int) error {
	if !notifyproto.ValidName(name) || name == nameExits || name == nameEvent || name == nameLock {
		return fmt.Errorf("name %.40q", name)
	}
	if len(s.all)+n > s.max {
		return fmt.Errorf("%d descriptors are stored and %d can be", len(s.all), s.max)
	}
	if s.names+n*(len(name)+1) > maxNames {
		return fmt.Errorf("the names of %d descriptors fill the environment", len(s.all))
	}
	return nil
}

// add takes fds, which check has allowed, under name. What is there already,
// because a worker repeats itself, is closed.
func (s *store) add(name string, fds []int) {
	for _, fd := range fds {
		if slices.ContainsFunc(s.all, func(h held) bool { return h.name == name && sameFile(h.fd, fd) }) {
			_ = unix.Close(fd)
			continue
		}
		s.all = append(s.all, held{name: name, fd: fd})
		s.names += len(name) + 1
	}
}

// remove closes all descriptors of name.
func (s *store) remove(name string) {
	s.all = slices.DeleteFunc(s.all, func(h held) bool {
		if h.name != name {
			return false
		}
		_ = unix.Close(h.fd)
		s.names -= len(name) + 1
		return true
	})
}

// running counts the sessions that run. Their names begin with a digit, and
// several descriptors have the name: of one that has ended only the output is
// kept.
func (s *store) running() int {
	n := map[string]int{}
	for _, h := range s.all {
		if h.name[0] >= '0' && h.name[0] <= '9' {
			n[h.name]++
		}
	}
	running := 0
	for _, descriptors := range n {
		if descriptors > 1 {
			running++
		}
	}
	return running
}

func (s *store) close() {
	for _, h := range s.all {
		_ = unix.Close(h.fd)
	}
	s.all, s.names = nil, 0
}

// sameFile tells whether a and b are one open file. Where the kernel can't
// say, they count as two: a second copy costs a slot and nothing else.
func sameFile(a, b int) bool {
	const kcmpFile = 0
	self := uintptr(unix.Getpid())
	r, _, errno := unix.RawSyscall6(unix.SYS_KCMP, self, self, kcmpFile, uintptr(a), uintptr(b), 0)
	return errno == 0 && r == 0
}

// storeMax is the number of descriptors that can be kept: what is configured,
// within what the process may have open.
func storeMax(configured int) int {
	var lim unix.Rlimit
	most := 1024
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err == nil {
		most = int(min(lim.Cur, 1<<20))
	}
	most = max(sharedFDs, most-ownFDs)
	if configured > 0 {
		most = min(most, configured)
	}
	return most
}

package fdstore

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// global is the memfd that belongs to no session: the counter of names, and
// the file whose lock says that one worker is at work.
//
//	0 u64 magic   8 u32 version   16 u64 names handed out
type global struct {
	fd   int
	own  int // a fresh open of the same file: locks belong to an open file
	next *atomic.Uint64
}

const (
	globalMagic = 0x316c676479747001 // "\x01ptydgl1" in memory order
	// GlobalVersion is the global memfd's; one of another version is replaced.
	GlobalVersion = 1
	globalSize    = 4096
)

// openGlobal takes the stored memfd, or makes one where there is none that this
// program knows.
func (s *Store) openGlobal(fds []int) (*global, error) {
	if len(fds) > 0 {
		g, err := s.takeGlobal(fds[:1])
		if err == nil {
			for _, fd := range fds[1:] {
				unix.Close(fd)
			}
			return g, nil
		}
		if err := s.discard(nameGlobal, err.Error(), fds...); err != nil {
			return nil, err
		}
	}
	return s.takeGlobal(nil)
}

func (s *Store) takeGlobal(fds []int) (*global, error) {
	g := &global{fd: -1, own: -1}
	fresh := len(fds) == 0
	if fresh {
		fd, err := unix.MemfdCreate("ptyd-global", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return nil, fmt.Errorf("create the global memfd: %w", err)
		}
		g.fd = fd
		if err := unix.Fallocate(fd, 0, 0, globalSize); err != nil {
			return nil, fmt.Errorf("allocate the global memfd: %w", err)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
			return nil, fmt.Errorf("seal the global memfd: %w", err)
		}
	} else {
		g.fd = fds[0]
		var st unix.Stat_t
		seals, err := unix.FcntlInt(uintptr(g.fd), unix.F_GET_SEALS, 0)
		if err != nil || seals&unix.F_SEAL_SHRINK == 0 || unix.Fstat(g.fd, &st) != nil || st.Size != globalSize {
			return nil, errors.New("the stored global memfd is none of ours")
		}
	}
	mem, err := unix.Mmap(g.fd, 0, globalSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the global memfd: %w", err)
	}
	magic := (*atomic.Uint64)(unsafe.Pointer(&mem[0]))
	ver := (*atomic.Uint32)(unsafe.Pointer(&mem[8]))
	g.next = (*atomic.Uint64)(unsafe.Pointer(&mem[16]))
	if fresh {
		ver.Store(GlobalVersion)
		magic.Store(globalMagic)
		return g, s.send(nameGlobal, g.fd)
	}
	if magic.Load() != globalMagic || ver.Load() != GlobalVersion {
		defer func() { _ = unix.Munmap(mem) }()
		return nil, fmt.Errorf("the stored global memfd has version %d, this program knows %d", ver.Load(), GlobalVersion)
	}
	return g, nil
}

// lock waits until no other worker is at work, and keeps it so.
func (g *global) lock() (err error) {
	g.own, err = unix.Open("/proc/self/fd/"+strconv.Itoa(g.fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the global memfd again: %w", err)
	}
	for {
		err := unix.Flock(g.own, unix.LOCK_EX)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return os.NewSyscallError("flock", err)
	}
}

// above has the counter beyond all names that are in use: it may be a fresh one.
func (g *global) above(names map[string]int) {
	for name := range names {
		if n, ok := number(name); ok && n >= g.next.Load() {
			g.next.Store(n + 1)
		}
	}
}

// number is what name was made of; false for what no counter made.
func number(name string) (n uint64, ok bool) {
	if len(name) > 5 {
		return 0, false
	}
	for i := len(name) - 1; i >= 0; i-- {
		d := strings.IndexByte(digits, name[i])
		base := uint64(62)
		if i == 0 {
			base = 10
		}
		if d < 0 || uint64(d) >= base {
			return 0, false
		}
		n = n*base + uint64(d)
	}
	return n, true
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// name is the next number, in base 62, with a digit in front.
func (g *global) name() string {
	n := g.next.Add(1) - 1
	first := digits[n%10]
	n /= 10
	b := []byte{first}
	for n > 0 {
		b = append(b, digits[n%62])
		n /= 62
	}
	return string(b)
}

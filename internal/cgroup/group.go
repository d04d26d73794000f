package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Group is one cgroup below a Tree. What runs in it may have made cgroups below
// it, which count as its own.
type Group struct{ dir string }

// Open opens the group's directory for clone3(2) and openat(2); close-on-exec.
func (g *Group) Open() (*os.File, error) { return os.Open(g.dir) }

// maxBelow bounds how many cgroups below a group are looked at.
const maxBelow = 10_000

// below lists the directories of the group: those above come first.
func (g *Group) below() []string {
	dirs := []string{g.dir}
	for i := 0; i < len(dirs) && len(dirs) < maxBelow; i++ {
		all, _ := os.ReadDir(dirs[i])
		for _, e := range all {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(dirs[i], e.Name()))
			}
		}
	}
	return dirs
}

// Procs are the processes in the group. One that forks meanwhile may be missed;
// Populated is exact.
func (g *Group) Procs() []int {
	var pids []int
	for _, dir := range g.below() {
		some, _ := procsOf(dir) // gone meanwhile, or a threaded one: its parent lists them
		for _, pid := range some {
			if pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Has reports whether a process is in the group itself.
func (g *Group) Has(pid int) bool {
	some, _ := procsOf(g.dir)
	for _, p := range some {
		if p == pid {
			return true
		}
	}
	return false
}

// Populated reports whether anything lives in the group. One that is gone has
// nothing in it.
func (g *Group) Populated() bool {
	return keyed(filepath.Join(g.dir, "cgroup.events"), "populated") == 1
}

// Kill kills all that is in the group, at once: what it forks meanwhile too.
// Before Linux 5.14 that is done one by one, as long as something is left.
func (g *Group) Kill() error {
	err := write(filepath.Join(g.dir, "cgroup.kill"), "1")
	if !errors.Is(err, fs.ErrNotExist) || !g.Populated() {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // the group is gone, or empty
		}
		return err
	}
	for range 100 {
		pids := g.Procs()
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			g.kill(pid)
		}
	}
	return errors.New("its processes fork faster than they are killed")
}

// kill kills one process, if it is still of the group once its pidfd is open.
func (g *Group) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for _, p := range g.Procs() {
		if p == pid {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
}

// WaitEmpty waits until nothing lives in the group, and reports whether so. It
// keeps a thread busy waiting.
func (g *Group) WaitEmpty(limit time.Duration) bool {
	f, err := os.Open(filepath.Join(g.dir, "cgroup.events"))
	if err != nil {
		return !g.Populated()
	}
	defer f.Close()
	deadline := time.Now().Add(limit)
	for g.Populated() {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		// A change of the file is POLLPRI, once per read of this descriptor.
		var b [128]byte
		_, _ = f.ReadAt(b[:], 0)
		if !g.Populated() {
			return true
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, int(left/time.Millisecond)+1)
	}
	return true
}

// ErrBusy says that something lives in a group.
var ErrBusy = errors.New("processes live in it")

// Remove removes the group, with what is below it: ErrBusy where something
// lives there.
func (g *Group) Remove() error {
	dirs := g.below()
	for i := len(dirs) - 1; i >= 0; i-- {
		err := unix.Rmdir(dirs[i])
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.ENOTEMPTY):
			return ErrBusy
		default:
			return fmt.Errorf("remove cgroup %s: %w", dirs[i], err)
		}
	}
	return nil
}

// Usage is what a group uses and may use. Negative: not measured, or no limit.
type Usage struct {
	Memory, MemoryMax int64         // bytes
	Pids, PidsMax     int64         // processes and threads
	CPU               time.Duration // of the processor, since the group began
}

// Usage reads what the group uses now.
func (g *Group) Usage() Usage {
	u := Usage{
		Memory: g.number("memory.current"), MemoryMax: g.number("memory.max"),
		Pids: g.number("pids.current"), PidsMax: g.number("pids.max"), CPU: -1,
	}
	if us := keyed(filepath.Join(g.dir, "cpu.stat"), "usage_usec"); us >= 0 {
		u.CPU = time.Duration(us) * time.Microsecond
	}
	return u
}

// OOMKills is how many processes of the group the kernel killed for want of
// memory.
func (g *Group) OOMKills() int64 {
	return max(keyed(filepath.Join(g.dir, "memory.events"), "oom_kill"), 0)
}

// number reads a file that holds one number; −1 for "max", and where there is none.
func (g *Group) number(file string) int64 {
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// keyed reads one value of a flat keyed file; −1 where there is none.
func keyed(file, key string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == key {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

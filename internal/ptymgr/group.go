package ptymgr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/cgroup"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr/stage"
)

// groups gives each session a cgroup where that is possible. A session's group
// has its id for a name, so the next process finds it again. Without one a
// session is what it was without cgroups: nothing is refused but limits.
type groups struct {
	tree *cgroup.Tree // nil: there are none
	why  string       // why tree is nil
	log  *zap.Logger

	broken atomic.Pointer[string] // why a session went without a group, the first time

	mu    sync.Mutex          // guards stale
	stale map[string]struct{} // of ended sessions, where something still lives
}

func newGroups(cfg Config, log *zap.Logger) *groups {
	g := &groups{tree: cfg.Cgroups, why: cfg.NoCgroups, log: log, stale: map[string]struct{}{}}
	if g.tree == nil && g.why == "" {
		g.why = "cgroups are not used"
	}
	return g
}

// Cgroups tells about the cgroups of sessions.
type Cgroups struct {
	Path    string            // of the daemon's subtree; "" without one
	Why     string            // why there is none, or why a session went without
	Missing map[string]string // a controller that limits need, and why it is not there
}

// Cgroups tells about the cgroups of sessions.
func (m *Manager) Cgroups() Cgroups {
	g := m.groups
	c := Cgroups{Why: g.why, Missing: map[string]string{}}
	if b := g.broken.Load(); b != nil {
		c.Why = *b
	}
	if g.tree != nil {
		c.Path = g.tree.Path()
	}
	for _, ctl := range []string{cgroup.Memory, cgroup.Pids} {
		if why := g.missing(ctl); why != "" {
			c.Missing[ctl] = why
		}
	}
	return c
}

func (g *groups) missing(controller string) string {
	if g.tree == nil {
		return g.why
	}
	return g.tree.Missing(controller)
}

// check refuses limits that nothing would enforce.
func (g *groups) check(l cgroup.Limits) error {
	refuse := func(field, what, controller string) error {
		why := g.missing(controller)
		if why == "" {
			return nil
		}
		p := problem.New(problem.Unsupported, "%s cannot be limited here: %s", what, why)
		p.Field = field
		return p.WithHint("run without the limit (0 also where the configuration sets one), or see what ptyd doctor says about cgroups")
	}
	if l.Memory > 0 {
		if err := refuse("memory_limit", "the memory of a session", cgroup.Memory); err != nil {
			return err
		}
	}
	if l.Pids > 0 {
		return refuse("pids_limit", "the processes of a session", cgroup.Pids)
	}
	return nil
}

// create makes the group of a new session: nil where there is none to have.
func (g *groups) create(id string, l cgroup.Limits) (*cgroup.Group, error) {
	if g.tree == nil {
		return nil, nil
	}
	grp, err := g.tree.Create(id, l)
	if err == nil {
		return grp, nil
	}
	if l != (cgroup.Limits{}) {
		return nil, limitFailed(err)
	}
	g.without(err)
	return nil, nil
}

func limitFailed(err error) error {
	return problem.New(problem.Unsupported, "the session's limits could not be set: %v", err).
		WithHint("see what ptyd doctor says about cgroups").Because(err)
}

// without notes that a session has no group, and says so the first time.
func (g *groups) without(err error) {
	why := "a session could not get a cgroup: " + err.Error()
	if g.broken.CompareAndSwap(nil, &why) {
		g.log.Warn("sessions go without a cgroup: what leaves its process tree and clears its environment survives their end", zap.Error(err))
	}
}

// of is the group of a session, nil where it has none.
func (g *groups) of(id string) *cgroup.Group {
	if g.tree == nil || !looksLikeID(id) {
		return nil
	}
	return g.tree.Group(id)
}

// procs are the processes in the session's group.
func (g *groups) procs(id string) (left []proc) {
	grp := g.of(id)
	if grp == nil || !grp.Populated() {
		return nil
	}
	for _, pid := range grp.Procs() {
		if p, ok := readStat(pid); ok {
			left = append(left, p)
		}
	}
	return left
}

// kill kills all in the session's group.
func (g *groups) kill(id string) {
	grp := g.of(id)
	if grp == nil {
		return
	}
	if err := grp.Kill(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.log.Warn("kill a session's cgroup", zap.String("session", id), zap.Error(err))
	}
}

// drop removes the group of a session that has ended. Where something of it
// lives on, as after a logout, that is done once it is gone.
func (g *groups) drop(id string) {
	grp := g.of(id)
	if grp == nil {
		g.forget(id)
		return
	}
	switch err := grp.Remove(); {
	case err == nil:
		g.forget(id)
	case errors.Is(err, cgroup.ErrBusy):
		g.mu.Lock()
		g.stale[id] = struct{}{}
		g.mu.Unlock()
	default:
		g.log.Warn("remove a session's cgroup", zap.String("session", id), zap.Error(err))
	}
}

func (g *groups) forget(id string) {
	g.mu.Lock()
	delete(g.stale, id)
	g.mu.Unlock()
}

// dropStale tries again what could not be removed.
func (g *groups) dropStale() {
	for _, id := range g.staleOnes() {
		g.drop(id)
	}
}

func (g *groups) staleOnes() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.stale))
}

// leaveTime is how long the end waits for groups to become empty: the kernel
// takes a process out a moment after its end is known.
const leaveTime = 200 * time.Millisecond

// leave is dropStale for the last time.
func (g *groups) leave() {
	deadline := time.Now().Add(leaveTime)
	for _, id := range g.staleOnes() {
		if grp := g.of(id); grp != nil {
			grp.WaitEmpty(time.Until(deadline))
		}
		g.drop(id)
	}
}

// destroy kills what is left of a session that is lost, and removes its group.
func (g *groups) destroy(id string) {
	grp := g.of(id)
	if grp == nil {
		return
	}
	g.kill(id)
	if !grp.WaitEmpty(killWait) {
		g.log.Error("processes of a lost session live on", zap.String("session", id), zap.Ints("pids", grp.Procs()))
	}
	g.drop(id)
}

// sweep looks at the groups that an earlier process left. Those of living
// sessions stay; what is left of lost ones is killed; others go when they are
// empty.
func (g *groups) sweep(state func(id string) (living, lost bool)) {
	if g.tree == nil {
		return
	}
	names, err := g.tree.Names()
	if err != nil {
		g.log.Warn("look for left cgroups", zap.Error(err))
		return
	}
	for _, id := range names {
		if !looksLikeID(id) {
			continue
		}
		switch living, lost := state(id); {
		case living:
		case lost:
			g.destroy(id)
		default:
			g.drop(id)
		}
	}
}

// oomText is the end reason of a session of which the kernel killed something.
func (g *groups) oomText(id string) string {
	if g.tree == nil || g.tree.Missing(cgroup.Memory) != "" {
		return ""
	}
	grp := g.of(id)
	if grp == nil {
		return ""
	}
	switch n := grp.OOMKills(); {
	case n == 1:
		return "out of memory: the kernel killed a process of the session"
	case n > 1:
		return fmt.Sprintf("out of memory: the kernel killed %d processes of the session", n)
	}
	return ""
}

// Usage is what a living session uses, nil where that is not measured.
func (m *Manager) Usage(id string) *cgroup.Usage {
	s, ok := m.sessions.Load(id)
	if !ok || isClosed(s.done) {
		return nil
	}
	grp := m.groups.of(id)
	if grp == nil {
		return nil
	}
	u := grp.Usage()
	return &u
}

// enter waits until the stage is where it belongs, and learns which process it
// is now: one that was born in the group, or the same one.
func (s *Session) enter(errs int, l cgroup.Limits) error {
	var said [8]byte
	for n := 0; n < len(said); {
		k, err := unix.Read(errs, said[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || k == 0 {
			return fmt.Errorf("the session's process ended before it began: %w", errors.Join(err, unix.ECHILD))
		}
		n += k
	}
	failpoint.Hit("ptymgr.start.entered")
	pid, no := int(int32(binary.NativeEndian.Uint32(said[:]))), unix.Errno(binary.NativeEndian.Uint32(said[4:]))
	if pid != 0 {
		return s.succeed(pid)
	}
	if no == 0 {
		return nil
	}
	err := fmt.Errorf("enter the cgroup: %w", no)
	_ = s.group.Remove()
	s.group = nil
	if l != (cgroup.Limits{}) {
		return limitFailed(err)
	}
	s.m.groups.without(err)
	return nil
}

// succeed takes over the process that the stage started in its place.
func (s *Session) succeed(pid int) error {
	first, firstFD := s.pid, s.pidfd
	if s.m.vault.CloneFlags()&unix.CLONE_PARENT == 0 {
		await(firstFD) // it is our own child
		s.m.vault.Exit(first, firstFD, s.began)
	}
	unix.Close(firstFD)
	s.pid, s.pidfd = pid, -1
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open the session's process: %w", outOf(err))
	}
	s.pidfd = fd
	// Nobody else can be in a group that was just made: it is the right one,
	// not a stranger that got the number of one that was killed.
	if !s.group.Has(pid) {
		unix.Close(fd)
		s.pidfd = -1
		return fmt.Errorf("the session's process was killed before it began: %w", unix.ECHILD)
	}
	return nil
}

// await waits for the end of the process behind pidfd.
func await(pidfd int) {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// attrs are what a stage is started with: it makes itself the leader of a
// session where it has to begin again in its group.
func (s *Session) attrs(files []uintptr, self uintptr) (*os.File, *syscall.ProcAttr, error) {
	attr := &syscall.ProcAttr{Dir: s.rec.Cwd, Files: files, Sys: &syscall.SysProcAttr{PidFD: &s.pidfd, Cloneflags: s.m.vault.CloneFlags()}}
	if s.group == nil {
		attr.Sys.Setsid, attr.Sys.Setctty = true, true
		attr.Files = append(files, stage.None, self)
		return nil, attr, nil
	}
	dir, err := s.group.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open the session's cgroup: %w", outOf(err))
	}
	attr.Files = append(files, dir.Fd(), self)
	return dir, attr, nil
}

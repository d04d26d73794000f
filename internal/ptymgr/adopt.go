package ptymgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/problem"
)

// Adopted counts what a start took over.
type Adopted struct {
	Sessions   int   // living ones
	Ended      int   // ended ones whose output is kept
	Lost       int   // that the store called living and nothing backs
	Dropped    int   // stored descriptors that were of no use
	BytesSaved int64 // output that was in flight
}

// Adopted tells what this manager took over when it started.
func (m *Manager) Adopted() Adopted { return m.adopted }

// adopt takes over what the vault holds. It returns the sessions that live; the
// reading thread does not run yet.
func (m *Manager) adopt(ctx context.Context) (living []*Session, err error) {
	out, _ := m.vault.Pipes()
	flight, err := unix.IoctlGetInt(out.R, unix.TIOCINQ)
	if err != nil {
		return nil, fmt.Errorf("look into the output pipe: %w", err)
	}
	typed, err := unix.IoctlGetInt(m.inPipe.R, unix.TIOCINQ)
	if err != nil {
		return nil, fmt.Errorf("look into the input pipe: %w", err)
	}
	// One query for all: one for each took half of the time.
	rows, err := m.unfinished(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range m.vault.Held() {
		s, why, err := m.take(ctx, h, rows, flight, typed)
		if err != nil {
			return nil, err
		}
		if s == nil {
			m.adopted.Dropped++
			m.log.Warn("stored descriptors are dropped", zap.String("name", h.Name), zap.Error(why))
			if err := m.vault.Drop(h.Name); err != nil {
				return nil, err
			}
			continue
		}
		m.sessions.Store(s.id, s)
		if isClosed(s.done) {
			m.adopted.Ended++
			continue
		}
		living = append(living, s)
		m.running.Add(1)
		if s.rec.State == Starting {
			s.rec.State, s.rec.PID = Running, s.pid
			s.rec.Birth = birthOf(s.blk.u64(blkStart).Load())
			s.rec.StartedAt = time.UnixMicro(int64(s.blk.u64(blkStartedAt).Load()))
			if err := m.store.MarkRunning(ctx, s.id, s.pid, s.rec.StartedAt, s.rec.Birth); err != nil {
				return nil, fmt.Errorf("record an adopted session: %w", err)
			}
		}
	}
	m.adopted.Sessions = len(living)
	m.inPipe.empty() // whoever it was for has it in its count
	out.empty()      // bytes of a session that is not there any more
	failpoint.Hit("ptymgr.adopt.taken")
	m.sweepGroups(ctx) // before anything is called lost
	m.endLeftovers(m.unadopted(rows))
	lost, err := m.store.LoseUnfinished(ctx, m.known(), time.Now())
	if err != nil {
		return nil, fmt.Errorf("mark lost sessions: %w", err)
	}
	if m.adopted.Lost = len(lost); len(lost) > 0 {
		m.log.Warn("sessions are lost: nothing of them outlived the last daemon", zap.Int("count", len(lost)), zap.Strings("sessions", lost))
	}
	return living, nil
}

// sweepGroups looks at the cgroups that an earlier process left. What goes on in
// the group of a session that ended by itself is left alone, as after a logout.
func (m *Manager) sweepGroups(ctx context.Context) {
	m.groups.sweep(func(id string) (living, lost bool) {
		if s, ok := m.sessions.Load(id); ok {
			i := s.Info()
			return !i.State.Ended(), i.State == Lost
		}
		row, err := m.store.GetSession(ctx, id)
		return false, err == nil && (!row.State.Ended() || row.State == Lost)
	})
}

// known are the ids of all sessions whose descriptors are here: the ended ones
// among them get their end from the scribe, not as lost.
func (m *Manager) known() []string {
	var ids []string
	m.sessions.Range(func(id string, _ *Session) bool {
		ids = append(ids, id)
		return true
	})
	return ids
}

// take makes a session of stored descriptors; nil and the reason where they
// are none that can be taken: what lives of them is killed, because nobody
// could ever reach it again. It closes what it does not use.
func (m *Manager) take(ctx context.Context, h Held, rows map[string]Record, flight, typed int) (s *Session, why, err error) {
	rest := []int{h.Master, h.Pidfd}
	id, pid := "", 0
	defer func() {
		if err != nil {
			return // this process cannot go on; the next one finds all as it is
		}
		if s == nil && h.Pidfd >= 0 {
			killTree(h.Pidfd, id, pid)
			m.groups.destroy(id)
		}
		if s == nil || isClosed(s.done) {
			for _, fd := range rest {
				if fd >= 0 {
					unix.Close(fd)
				}
			}
		}
	}()
	if h.Memfd < 0 {
		return nil, errors.New("no memory among them"), nil
	}
	ring, why := buffer.Open(h.Memfd)
	if why != nil {
		return nil, why, nil
	}
	defer func() {
		if s == nil {
			ring.Close()
		}
	}()
	blk := block(ring.Block())
	if !bytes.Equal(blk[blkBoot:blkBoot+blkBootLen], bootID()) {
		return nil, errors.New("of another boot"), nil
	}
	id, pid = blk.id(), int(blk.u32(blkPid).Load())
	if _, twice := m.sessions.Load(id); twice {
		h.Pidfd = -1 // it belongs to the one that was taken
		return nil, fmt.Errorf("session %s is stored twice", id), nil
	}
	row, ok := rows[id]
	if !ok { // it has ended, or there is none
		row, err = m.store.GetSession(ctx, id)
	}
	if problem.Is(err, problem.NotFound) {
		return nil, fmt.Errorf("session %s: %w", id, err), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the row of session %s: %w", id, err)
	}
	if row.Epoch != ring.Epoch() {
		return nil, fmt.Errorf("session %s: epoch %016x, recorded is %016x", id, ring.Epoch(), row.Epoch), nil
	}
	s = m.newSession(row, ring, ring.Limit(), h.Name)
	s.pid, s.began = pid, int64(blk.u64(blkBegan).Load())
	s.doubt = blk.u32(blkOpened).Load() == 0
	if st, at, ok := blk.status(); ok {
		s.endLocked(st, at, m.groups.oomText(id))
		s.in.closed = true
		s.put = h.Master < 0 && h.Pidfd < 0
		ring.Seal()
		close(s.done)
		return s, nil, nil
	}
	switch {
	case h.Master < 0:
		s, why = nil, fmt.Errorf("session %s: no terminal", id)
	case h.Pidfd < 0 || blk.u32(blkReleased).Load() == 0:
		s, why = nil, fmt.Errorf("session %s: the daemon died before it ran", id)
	default:
		if why = samePid(h.Pidfd, s.pid); why != nil {
			s = nil
		}
	}
	if s == nil {
		return nil, why, nil
	}
	if ring.Busy() {
		out, _ := m.vault.Pipes()
		n, err := ring.Recover(flight, out.fill)
		if err != nil {
			m.log.Error("output in flight could not be recovered", zap.String("session", id), zap.Error(err))
		}
		m.adopted.BytesSaved += int64(n)
		s.sizedFrom = ring.Head()
	}
	s.recoverInput(typed)
	s.master, s.pidfd = h.Master, h.Pidfd
	unix.CloseOnExec(s.master)
	unix.CloseOnExec(s.pidfd)
	if err := unix.SetNonblock(s.master, true); err != nil {
		m.log.Warn("set a terminal non-blocking", zap.String("session", id), zap.Error(err))
	}
	if ws, err := unix.IoctlGetWinsize(s.master, unix.TIOCGWINSZ); err == nil && ws.Col > 0 && ws.Row > 0 {
		s.rec.Cols, s.rec.Rows = ws.Col, ws.Row
		s.records[0].cols, s.records[0].rows = ws.Col, ws.Row
	}
	return s, nil, nil
}

// killTree kills what a pidfd refers to and everything that belongs to it. A
// process that is no session's is left alone: a foreign descriptor is no reason
// to kill a stranger.
func killTree(pidfd int, mark string, recorded int) {
	pid := pidOf(pidfd)
	if pid <= 0 || pid != recorded && !marked(pid, mark) {
		return
	}
	if mark != "" {
		for _, p := range takeCensus().tree(pid, mark) {
			p.signal(unix.SIGKILL)
		}
	}
	_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
}

// marked reports whether a process carries the mark of a session; "" is any.
func marked(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	needle := "\x00PTYD_SESSION=" + mark
	if mark != "" {
		needle += "\x00"
	}
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte(needle))
}

// samePid checks that a pidfd refers to the process of that number, or to one
// that has ended.
func samePid(pidfd, pid int) error {
	if n := pidOf(pidfd); n != pid && n != -1 {
		return fmt.Errorf("the process is %d, recorded is %d", n, pid)
	}
	return nil
}

// pidOf is the process that a pidfd refers to: −1 when it has ended, 0 when the
// descriptor is none of a process (proc_pid_fdinfo(5)).
func pidOf(pidfd int) int {
	// Not os.ReadFile: this is done for each session while viewers wait.
	fd, err := unix.Open("/proc/self/fdinfo/"+strconv.Itoa(pidfd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var b [512]byte // a pidfd's takes about 120
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b[:n]) {
		if v, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(v)))
			return n
		}
	}
	return 0
}

// settleAdopted lets the adopted sessions go on, and has the ends recorded that
// an earlier process did not get to record.
func (m *Manager) settleAdopted(living []*Session) {
	for _, s := range living {
		m.loop.add(s)
	}
	m.sessions.Range(func(_ string, s *Session) bool {
		if isClosed(s.done) {
			m.scribe.end(s)
		}
		return true
	})
}

// forgetExits lets the vault forget how processes ended that no living session
// is. Of the scribe.
func (m *Manager) forgetExits() {
	live := map[int]bool{}
	m.sessions.Range(func(_ string, s *Session) bool {
		if !isClosed(s.done) {
			live[s.pid] = true
		}
		return true
	})
	m.vault.Exited(func(pid int) bool { return !live[pid] })
}

// putBy keeps the output of an ended session and lets go of its terminal and
// process: stored under a new name first, dropped under the old one then.
func (m *Manager) putBy(s *Session) {
	m.forgetExits()
	if s.put {
		return
	}
	name, err := m.vault.NewName()
	if err == nil {
		err = m.vault.Keep(name, s.ring.FD())
	}
	failpoint.Hit("ptymgr.put.kept")
	if err == nil {
		err = m.vault.Drop(s.kept)
		s.kept = name
	}
	s.put = true
	if err != nil { // it stays as it is: more descriptors than needed, nothing lost
		s.logger().Warn("put an ended session's output by", zap.Error(err))
	}
}

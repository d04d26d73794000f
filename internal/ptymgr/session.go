package ptymgr

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/cgroup"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/ptymgr/stage"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Session is one living session, or one that ended and whose output is kept.
type Session struct {
	m     *Manager
	id    string
	epoch uint64
	limit int64
	ring  *buffer.Ring
	rd    *reading // owned by the reading thread; set before it knows the session

	blk  block  // in the ring's memfd
	kept string // the vault's name of its descriptors; of the scribe once it has ended
	put  bool   // of the scribe: only its memory is kept

	noCheckpoint bool // its output is not written to the disk
	archived     bool // of the archivist: nothing more is to be written

	began int64 // CLOCK_BOOTTIME of the fork, nanoseconds
	doubt bool  // whether it was let through its gate: its daemon died there
	pid   int
	pidfd int           // closed with the master
	group *cgroup.Group // of a start; later groups.of finds it

	fdmu   sync.RWMutex // guards master: shared over calls on it that never block, whole to close it
	master int          // −1 once closed

	in       input
	hotUntil atomic.Int64 // monotonic enough: when the session stops counting as typed into
	outputAt atomic.Int64 // nanoseconds since the epoch of the last output, or of the start
	paused   atomic.Bool  // the reading thread rests for the fastest viewer

	followers atomic.Pointer[[]Follower]
	unsaid    int           // of the reading thread: output that the followers were not told of
	streak    int           // of the reading thread: bytes since the terminal had nothing
	bulk      bool          // of the reading thread: streak is long, tell followers in large pieces
	recSeq    atomic.Uint64 // number of records made; followers compare

	mu      sync.Mutex // guards all below
	rec     Record
	records []record // the newest, ascending in seq
	// sizedFrom is the offset from which on records tell the size: what was
	// printed before another process saw, which may have known other sizes.
	sizedFrom uint64
	viewers   map[*Viewer]struct{}
	owner     *Viewer // holds the size
	useSeq    uint64
	status    ExitStatus
	removed   bool

	done chan struct{} // closed once rec has the end
}

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Epoch names the run of the session's process.
func (s *Session) Epoch() uint64 { return s.epoch }

// Ring is the session's output.
func (s *Session) Ring() *buffer.Ring { return s.ring }

// Done is closed once the session has ended and all its output is in the ring.
func (s *Session) Done() <-chan struct{} { return s.done }

// Info returns the session's facts as of now.
func (s *Session) Info() Info {
	s.mu.Lock()
	i := Info{Record: s.rec, Viewers: len(s.viewers)}
	s.mu.Unlock()
	i.Offset, i.Oldest = s.ring.Head(), s.ring.Oldest()
	return i
}

// withMaster runs f, which must not block, on the master's descriptor.
func (s *Session) withMaster(f func(fd int) error) error {
	s.fdmu.RLock()
	defer s.fdmu.RUnlock()
	if s.master < 0 {
		return ErrEnded
	}
	return f(s.master)
}

// closeMaster gives the descriptors back. Only the reading thread calls it,
// after it has left both.
func (s *Session) closeMaster() {
	s.fdmu.Lock()
	for _, fd := range []*int{&s.master, &s.pidfd} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
	s.fdmu.Unlock()
	s.in.close()
}

func (s *Session) lastOutput() time.Time { return time.Unix(0, s.outputAt.Load()) }

// kill sends sig to the leader by its pidfd: never to a stranger with its number.
func (s *Session) kill(sig unix.Signal) {
	s.fdmu.RLock()
	defer s.fdmu.RUnlock()
	if s.pidfd >= 0 {
		_ = pidfdSignal(s.pidfd, sig)
	}
}

// reap asks how the leader ended; false while that is not known. Called on the
// reading thread after the pidfd became readable.
func (s *Session) reap() bool {
	st, ok := s.m.vault.Exit(s.pid, s.pidfd, s.began)
	if ok {
		s.mu.Lock()
		s.status = st
		s.mu.Unlock()
	}
	return ok
}

// ended is called on the reading thread when all output is in the ring and the
// master is closed: it publishes the one end of the session.
func (s *Session) ended() {
	now := time.Now()
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	oom := s.m.groups.oomText(s.id)
	if !st.Known {
		s.m.groups.kill(s.id) // nothing of a session that is called lost lives
	}
	s.mu.Lock()
	s.endLocked(st, now, oom)
	s.mu.Unlock()
	failpoint.Hit("ptymgr.end.reaped")
	s.blk.end(st, now) // from here on the end survives a crash
	failpoint.Hit("ptymgr.end.written")
	s.ring.Seal()
	s.m.running.Add(-1)
	s.m.scribe.end(s) // before done: whoever saw the end can wait for its row
	close(s.done)
	s.notify()
	s.m.changed(s)
	s.m.retainSoon()
}

// endLocked puts the end into the record; note is what else is known of it.
func (s *Session) endLocked(st ExitStatus, at time.Time, note string) {
	s.rec.State = Exited
	why := ""
	switch abandoned := s.m.abandoned.Load(); {
	case abandoned != nil:
		why = *abandoned
	case !st.Known:
		why = "its end was not seen"
	case s.doubt && st.Code != nil && *st.Code == stage.Unreleased && s.ring.Head() == 0:
		why = "the daemon died before it ran"
	}
	if why != "" {
		s.rec.State, s.rec.Error, st = Lost, why, ExitStatus{}
	} else {
		s.rec.Error = note
	}
	s.rec.ExitCode, s.rec.Signal = st.Code, st.Signal
	s.rec.EndedAt = at
	s.rec.FinalOffset = s.ring.Head()
}

// Signal sends sig to the terminal's foreground process group. INT, QUIT and
// TSTP are given by the terminal itself, ahead of queued input.
func (s *Session) Signal(sig unix.Signal) error {
	err := s.withMaster(func(fd int) error {
		switch sig {
		case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP:
			return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig))
		}
		// The master answers for the slave's foreground group.
		pgrp, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err != nil || pgrp <= 0 {
			pgrp = s.pid
		}
		return unix.Kill(-pgrp, sig)
	})
	if errors.Is(err, unix.ESRCH) {
		return ErrEnded
	}
	return err
}

func (m *Manager) changed(s *Session) {
	s.mu.Lock()
	owner := s.rec.Owner
	s.mu.Unlock()
	m.hub.Publish(events.Change{Type: "session", ID: s.id, Owner: owner})
}

// logger names the session in every line.
func (s *Session) logger() *zap.Logger { return s.m.log.With(zap.String("session", s.id)) }

package ptymgr

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/failpoint"
)

const (
	// readSize is the most that the kernel's terminal hands out at once
	// (N_TTY_BUF_SIZE is 4096); the pipe must take it in one piece.
	readSize = 4096
	// hotFor is how long a session counts as typed into: it is read before others.
	hotFor = 500 * time.Millisecond
	// drainQuiet ends a session whose leader is dead while somebody still holds
	// the terminal open: nothing came for this long.
	drainQuiet = 250 * time.Millisecond
	// drainMax is the longest that such a session is drained.
	drainMax = 2 * time.Second
	// reapAgain is how often a leader's end is asked for while it is not known.
	// A keeper tells of it; process 1, whose children sessions are after their
	// keeper's death, buries them when it likes and tells nobody.
	reapAgain = 10 * time.Millisecond
)

// The kinds of an epoll event, kept in its Pad.
const (
	evMaster = iota
	evPidfd
	evWake
	evExits
)

// loop is the reading thread: it reads all PTYs. One thread for all keeps an
// idle session at the cost of its descriptors, and bounds what a flood does to
// others: the Go netpoller is looked at only every 10 ms while all Ps are busy.
type loop struct {
	log   *zap.Logger
	ep    int
	wake  int  // eventfd
	pipe  Pipe // the vault's: what is in it survives us
	exits int  // eventfd of the vault, or −1

	mu   sync.Mutex // guards cmds and quit
	cmds []func()
	quit bool

	done chan struct{}

	// Owned by the thread.
	sessions map[int32]*reading
	next     int32
	ready    []*reading // each at most once
	timed    map[*reading]struct{}
	splice   bool   // splice from a terminal works (Linux 5.11 and later)
	ends     uint64 // processes that ended since many was called
	many     func() // called after manyEnds; it must not wait
	hot      bool   // some session was typed into lately

	bytesOut atomic.Uint64
	readErrs atomic.Uint64
	hotUntil atomic.Int64 // monotonic: some session was typed into lately
}

// reading is the loop's view of a session.
type reading struct {
	s       *Session
	token   int32
	queued  bool
	exiting bool // the leader is dead: drain, then end
	known   bool // how it ended
	drained bool // all output is in the ring
	quietAt time.Time
	endAt   time.Time
	pause   pacing
}

// manyEnds is after how many ends of processes the vault's record is looked
// through; it holds eight times as many.
const manyEnds = 512

func newLoop(log *zap.Logger, v Vault, many func()) (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	l := &loop{log: log, ep: ep, wake: -1, exits: v.ExitEvent(), done: make(chan struct{}),
		sessions: map[int32]*reading{}, timed: map[*reading]struct{}{}, splice: true, many: many}
	l.pipe, _ = v.Pipes()
	l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, l.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Pad: evWake})
	}
	if err == nil && l.exits >= 0 {
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, l.exits, &unix.EpollEvent{Events: unix.EPOLLIN, Pad: evExits})
	}
	if err != nil {
		l.closeFds()
		return nil, fmt.Errorf("set up the reading thread: %w", err)
	}
	go l.run()
	return l, nil
}

func (l *loop) closeFds() {
	for _, fd := range []int{l.ep, l.wake} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// do runs f on the reading thread, soon. After stop it does nothing.
func (l *loop) do(f func()) {
	l.mu.Lock()
	if l.quit {
		l.mu.Unlock()
		return
	}
	l.cmds = append(l.cmds, f)
	first := len(l.cmds) == 1
	l.mu.Unlock()
	if first {
		l.kick()
	}
}

// Ping returns when the reading thread has answered.
func (m *Manager) Ping(ctx context.Context) error {
	answer := make(chan struct{})
	m.loop.do(func() { close(answer) })
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the reading thread does not answer: %w", ctx.Err())
	}
}

func (l *loop) kick() {
	var one = [8]byte{1}
	_, _ = unix.Write(l.wake, one[:]) // EAGAIN: it is awake already
}

// stop ends the thread; sessions must have ended before.
func (l *loop) stop() {
	l.mu.Lock()
	was := l.quit
	l.quit = true
	l.mu.Unlock()
	if !was {
		l.kick()
	}
	<-l.done
}

// add takes a session's master and pidfd into the set.
func (l *loop) add(s *Session) {
	r := &reading{s: s}
	s.rd = r
	l.do(func() {
		l.next++
		r.token = l.next
		l.sessions[r.token] = r
		ev := &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLHUP | unix.EPOLLET&0xffffffff, Fd: r.token, Pad: evMaster}
		err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, s.master, ev)
		if err == nil {
			err = unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, s.pidfd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&0xffffffff, Fd: r.token, Pad: evPidfd})
		}
		if err != nil { // out of memory or watches: this session cannot be served
			l.log.Error("watch session", zap.String("session", s.id), zap.Error(err))
			s.kill(unix.SIGKILL)
			r.exiting = true
		}
		l.push(r)
	})
}

func (l *loop) push(r *reading) {
	if !r.queued && !r.pause.on {
		r.queued = true
		l.ready = append(l.ready, r)
	}
}

func (l *loop) run() {
	runtime.LockOSThread()
	defer close(l.done)
	defer l.closeFds()
	events := make([]unix.EpollEvent, 128)
	for {
		timeout := -1
		if len(l.ready) > 0 {
			timeout = 0
		} else if len(l.timed) > 0 {
			timeout = l.tick()
		}
		n, err := unix.EpollWait(l.ep, events, timeout)
		if err != nil && !errors.Is(err, unix.EINTR) {
			l.log.Error("epoll_wait", zap.Error(err))
			n = 0
		}
		if l.handle(events[:max(n, 0)]) {
			return
		}
		l.turn()
	}
}

// handle takes in events and commands; it reports whether the thread shall end.
func (l *loop) handle(events []unix.EpollEvent) (quit bool) {
	for _, e := range events {
		switch e.Pad {
		case evWake:
			var b [8]byte
			_, _ = unix.Read(l.wake, b[:])
			l.mu.Lock()
			cmds := l.cmds
			l.cmds = nil
			quit = l.quit
			l.mu.Unlock()
			for _, f := range cmds {
				f()
			}
		case evPidfd:
			if r := l.sessions[e.Fd]; r != nil && !r.exiting {
				r.exiting = true
				r.known = r.s.reap()
				now := time.Now()
				r.quietAt, r.endAt = now.Add(drainQuiet), now.Add(drainMax)
				r.pause = pacing{}
				l.timed[r] = struct{}{}
				l.push(r)
			}
		case evExits:
			var b [8]byte
			_, _ = unix.Read(l.exits, b[:])
			if l.ends += binary.NativeEndian.Uint64(b[:]); l.ends >= manyEnds {
				l.ends = 0
				l.many()
			}
			for r := range l.timed {
				if r.exiting && !r.known && r.s.reap() {
					r.known = true
					l.push(r)
				}
			}
		case evMaster:
			if r := l.sessions[e.Fd]; r != nil {
				if e.Events&unix.EPOLLOUT != 0 && r.s.in.stalled.Load() {
					l.write(r)
				}
				if e.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
					l.push(r)
				}
			}
		}
	}
	return quit
}

// write goes on with a session's input that its terminal did not take at once,
// a turn's worth at a time: others are served in between.
func (l *loop) write(r *reading) {
	if _, live := l.sessions[r.token]; live && r.s.in.drain(r.s, turnInput) {
		l.do(func() { l.write(r) })
	}
}

// turn reads every ready session once; sessions that were typed into go first,
// and while there are such, new events are looked at between any two reads.
func (l *loop) turn() {
	hot := time.Now().UnixNano() < l.hotUntil.Load()
	l.hot = hot
	n := len(l.ready)
	if hot && n > 1 {
		now := time.Now().UnixNano()
		for i, r := range l.ready {
			if now < r.s.hotUntil.Load() {
				l.ready[0], l.ready[i] = l.ready[i], l.ready[0]
				break
			}
		}
		n = 1
	}
	for range n {
		r := l.ready[0]
		l.ready = append(l.ready[:0], l.ready[1:]...)
		r.queued = false
		if _, live := l.sessions[r.token]; !live {
			continue
		}
		switch l.read(r) {
		case readMore:
			l.push(r)
		case readDry:
			if r.exiting && !time.Now().Before(r.quietAt) {
				l.finish(r)
			}
		case readHup:
			if r.exiting {
				l.finish(r)
			}
		}
	}
}

type readResult int

const (
	readMore readResult = iota
	readDry             // nothing now; an event will come
	readHup             // nobody has the terminal open; with a living leader that is a pause
)

// read moves at most one read's worth of output into the session's ring and
// offers it to the followers.
func (l *loop) read(r *reading) readResult {
	s := r.s
	// While somebody types into another session this one is written at once:
	// writers of floods would compete with the reading thread for the processors.
	s.bulk = s.streak > bulkFrom && (!l.hot || time.Now().UnixNano() < s.hotUntil.Load())
	n, err := l.fetch(s)
	if err != nil || n == 0 || s.unsaid >= sayEvery/max(len(l.ready), 1) {
		s.say()
	}
	s.streak += n
	if err != nil || n == 0 {
		s.streak = 0
	}
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return readDry
	case errors.Is(err, unix.EIO), err == nil && n == 0:
		return readHup
	case err != nil:
		l.readErrs.Add(1)
		l.log.Error("read terminal", zap.String("session", s.id), zap.Error(err))
		return readHup
	}
	l.bytesOut.Add(uint64(n))
	s.outputAt.Store(time.Now().UnixNano())
	if r.exiting {
		r.quietAt = time.Now().Add(drainQuiet)
		return readMore
	}
	if l.pace(r) {
		return readDry
	}
	return readMore
}

// fetch does the system calls of one read: terminal → pipe → ring. The detour
// through a pipe is what makes a crash lose nothing: between the two calls the
// bytes lie in the pipe, and the ring's header tells whose they are.
func (l *loop) fetch(s *Session) (int, error) {
	if !l.splice {
		return l.fetchDirect(s)
	}
	s.ring.Arm()
	n64, err := unix.Splice(s.master, nil, l.pipe.W, nil, readSize, unix.SPLICE_F_NONBLOCK)
	n := int(n64)
	if err != nil {
		s.ring.Disarm()
		if errors.Is(err, unix.EINVAL) {
			l.log.Warn("splice from a terminal is not supported by this kernel: a crash can lose the bytes of one read")
			l.splice = false
			return l.fetchDirect(s)
		}
		return 0, err
	}
	if n <= 0 {
		s.ring.Disarm()
		return 0, nil
	}
	failpoint.Hit("ptymgr.read.spliced")
	start := s.ring.Head()
	a, b := s.ring.Begin(n)
	for _, p := range [][]byte{a, b} {
		if err := l.pipe.fill(p); err != nil { // cannot be: the pipe holds n bytes
			panic(fmt.Sprintf("ptymgr: pipe of the reading thread: %v", err))
		}
	}
	failpoint.Hit("ptymgr.read.copied")
	s.ring.Commit(n)
	s.offer(start, a, b)
	return n, nil
}

func (l *loop) fetchDirect(s *Session) (int, error) {
	start := s.ring.Head()
	a, b := s.ring.Begin(readSize)
	n, err := unix.Read(s.master, a)
	if err != nil || n <= 0 {
		s.ring.Commit(0)
		return 0, err
	}
	if n == len(a) && len(b) > 0 {
		// The rest goes into the next chunk with the next read.
		b = nil
	}
	s.ring.Commit(n)
	s.offer(start, a[:n], nil)
	return n, nil
}

// finish ends a session whose output is drained, once its status is known, or
// when nobody told it for as long as a drain may take.
func (l *loop) finish(r *reading) {
	r.drained = true
	r.known = r.known || r.s.reap()
	if r.known || !time.Now().Before(r.endAt) {
		l.end(r)
	}
}

// end takes a session out of the set and hands it on: its output is complete.
func (l *loop) end(r *reading) {
	delete(l.timed, r) // input that waits may have put it there after its end
	if _, live := l.sessions[r.token]; !live {
		return
	}
	delete(l.sessions, r.token)
	s := r.s
	_ = unix.EpollCtl(l.ep, unix.EPOLL_CTL_DEL, s.master, nil)
	_ = unix.EpollCtl(l.ep, unix.EPOLL_CTL_DEL, s.pidfd, nil)
	s.closeMaster()
	s.ended()
}

// tick looks at sessions that have a clock running and returns the
// milliseconds until the next one is due.
func (l *loop) tick() int {
	now := time.Now()
	due := time.Hour
	for r := range l.timed {
		var at time.Time
		switch {
		case r.exiting:
			at = r.quietAt
			if r.endAt.Before(at) {
				at = r.endAt
			}
			if r.drained {
				if r.s.reap() {
					r.known = true
					l.end(r)
					continue
				}
				if at = now.Add(reapAgain); r.endAt.Before(at) {
					at = r.endAt
				}
			}
			if !now.Before(at) {
				r.quietAt = now // one last read decides
				if !now.Before(r.endAt) {
					l.end(r)
				} else {
					l.push(r)
				}
				continue
			}
		case r.pause.on:
			at = r.pause.until
			if !now.Before(at) {
				l.paceTimer(r, now)
				continue
			}
		case r.s.in.stalled.Load():
			at = now.Add(100 * time.Millisecond)
			l.write(r)
		default:
			delete(l.timed, r)
			continue
		}
		due = min(due, at.Sub(now))
	}
	if len(l.ready) > 0 {
		return 0
	}
	if len(l.timed) == 0 {
		return -1
	}
	return int(due/time.Millisecond) + 1
}

package ptymgr

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/failpoint"
)

const (
	// MaxUnacked is the most input bytes of one client that wait for the terminal.
	MaxUnacked = 64 << 10
	// maxQueued is the most input bytes of all clients of a session that wait.
	maxQueued = 256 << 10
	// turnInput is how much the reading thread writes into one terminal before
	// it looks at the others again.
	turnInput = 16 << 10
	// maxClients is how many clients' input counts a session remembers.
	maxClients = 32
	// writeSize is how much is offered to the terminal at once.
	writeSize = 4096
)

// ClientID names one client across its reconnects.
type ClientID [16]byte

// InputError says why input was refused; the client's count tells where it stood.
type InputError struct {
	Reason   string
	Accepted uint64
	Full     bool // the session takes no more now; later it may
}

func (e *InputError) Error() string {
	return fmt.Sprintf("input: %s (accepted %d)", e.Reason, e.Accepted)
}

// ErrEnded is returned for an act on a session that has ended.
var ErrEnded = errors.New("session has ended")

// inClient is one client's input on one session. Its fields are guarded by input.mu.
type inClient struct {
	accepted uint64 // bytes taken into the queue, ever
	acked    uint64 // bytes in the kernel's terminal queue
	fresh    bool   // the count is not known yet: the first frame sets it
	used     uint64 // for forgetting the least recently used
	slot     int    // of the block, where acked is kept beyond a crash; −1 for a client that will not come back
	ack      func(acked uint64)
}

// input is a session's ordered queue towards the terminal.
type input struct {
	mu      sync.Mutex // guards all below
	clients map[ClientID]*inClient
	clock   uint64
	queue   []piece // neighbours of one client are one piece
	queued  int     // bytes in queue
	writing bool    // somebody is in write(2), outside of mu
	closed  bool
	blk     block

	stalled atomic.Bool // the terminal took less than offered: wait for EPOLLOUT
}

type piece struct {
	c *inClient
	p []byte
}

// Client makes id known to the session and returns its input count, or −1
// where the session does not know a client that has counted before. ack is
// called, never under a lock, when bytes reached the terminal's queue; the
// newest ack of a client replaces the one before.
func (s *Session) Client(id ClientID, had uint64, ack func(uint64)) int64 {
	in := &s.in
	in.mu.Lock()
	defer in.mu.Unlock()
	c, ok := in.clients[id]
	if !ok {
		slot := in.slotLocked()
		c = &inClient{fresh: had > 0, slot: slot}
		in.clients[id] = c
		if !c.fresh {
			in.blk.setClient(slot, id, 0)
		}
	}
	in.clock++
	c.used, c.ack = in.clock, ack
	if c.fresh {
		return -1
	}
	return int64(c.accepted)
}

// passing makes a client that types once and is not remembered.
func (s *Session) passing(ack func(uint64)) ClientID {
	var id ClientID
	_, _ = rand.Read(id[:]) // never fails
	s.in.mu.Lock()
	s.in.clients[id] = &inClient{slot: -1, ack: ack}
	s.in.mu.Unlock()
	return id
}

// slotLocked finds a slot of the block for a new client; where all are taken
// the least recently used client is forgotten.
func (in *input) slotLocked() int {
	var taken [maxClients]bool
	var oldest ClientID
	low := in.clock + 1
	n := 0
	for id, c := range in.clients {
		if c.slot < 0 {
			continue
		}
		n++
		taken[c.slot] = true
		if c.used < low {
			oldest, low = id, c.used
		}
	}
	if n == maxClients {
		i := in.clients[oldest].slot
		delete(in.clients, oldest)
		return i
	}
	return slices.Index(taken[:], false)
}

// forget drops a client that will not come back.
func (s *Session) forget(id ClientID) {
	s.in.mu.Lock()
	delete(s.in.clients, id)
	s.in.mu.Unlock()
}

// WriteInput queues p, whose first byte is the off-th of the client's input.
// What was accepted before is dropped from its front; a gap and more than
// MaxUnacked waiting bytes are an *InputError.
func (s *Session) WriteInput(id ClientID, off uint64, p []byte) error {
	in := &s.in
	in.mu.Lock()
	c := in.clients[id]
	switch {
	case c == nil:
		in.mu.Unlock()
		return &InputError{Reason: "unknown client"}
	case in.closed:
		in.mu.Unlock()
		return ErrEnded
	}
	if c.fresh {
		c.fresh, c.accepted, c.acked = false, off, off
		in.blk.setClient(c.slot, id, off)
	}
	if off > c.accepted {
		a := c.accepted
		in.mu.Unlock()
		return &InputError{Reason: fmt.Sprintf("gap: %d follows", off), Accepted: a}
	}
	if known := c.accepted - off; known >= uint64(len(p)) {
		p = nil
	} else {
		p = p[known:]
	}
	if c.accepted+uint64(len(p))-c.acked > MaxUnacked {
		a := c.accepted
		in.mu.Unlock()
		return &InputError{Reason: fmt.Sprintf("more than %d bytes unacknowledged", MaxUnacked), Accepted: a}
	}
	if in.queued+len(p) > maxQueued {
		a := c.accepted
		in.mu.Unlock()
		return &InputError{Reason: fmt.Sprintf("%d bytes wait for the terminal already", maxQueued), Accepted: a, Full: true}
	}
	in.clock++
	c.used = in.clock
	if len(p) == 0 {
		// A repeat: tell the client where it stands.
		ack, at := c.ack, c.acked
		in.mu.Unlock()
		if ack != nil {
			ack(at)
		}
		return nil
	}
	c.accepted += uint64(len(p))
	in.queued += len(p)
	if n := len(in.queue); n > 0 && in.queue[n-1].c == c {
		in.queue[n-1].p = append(in.queue[n-1].p, p...)
	} else {
		in.queue = append(in.queue, piece{c: c, p: append([]byte(nil), p...)})
	}
	in.mu.Unlock()
	s.touch()
	if !in.stalled.Load() { // else the reading thread goes on when there is room
		if in.drain(s, maxQueued) {
			s.m.loop.do(func() { s.m.loop.write(s.rd) })
		}
	}
	return nil
}

// touch marks the session as typed into.
func (s *Session) touch() {
	t := time.Now().Add(hotFor).UnixNano()
	s.hotUntil.Store(t)
	s.m.loop.hotUntil.Store(t)
}

// takeBack removes what is queued for a client and not written, and returns how
// many of its bytes the terminal has.
func (in *input) takeBack(id ClientID) (typed uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c := in.clients[id]
	if c == nil {
		return 0
	}
	kept := in.queue[:0:0]
	for i, q := range in.queue {
		if q.c == c && !(i == 0 && in.writing) {
			in.queued -= len(q.p)
			continue
		}
		kept = append(kept, q)
	}
	in.queue = kept
	return c.acked
}

// drain writes what is queued until the terminal takes no more, or budget bytes
// are written; it reports whether that is why it stopped. One caller writes at
// a time; others leave their bytes in the queue for it.
func (in *input) drain(s *Session, budget int) (more bool) {
	for {
		if budget <= 0 {
			return true
		}
		in.mu.Lock()
		if in.writing || in.closed || len(in.queue) == 0 {
			in.mu.Unlock()
			return false
		}
		in.writing = true
		front := in.queue[0]
		p := front.p[:min(len(front.p), writeSize)]
		in.mu.Unlock()

		n, err := s.transfer(front.c, p)

		in.mu.Lock()
		in.writing = false
		budget -= max(n, 1)
		front.c.acked += uint64(n)
		ack, at := front.c.ack, front.c.acked
		full := errors.Is(err, unix.EAGAIN) || err == nil && n < len(p)
		switch {
		case in.closed:
		case err != nil && !full && !errors.Is(err, unix.EINTR): // the terminal is gone: the session is ending
			in.queue, in.queued, in.closed = nil, 0, true
		default:
			in.queued -= n
			// The piece may have grown meanwhile.
			if in.queue[0].p = in.queue[0].p[n:]; len(in.queue[0].p) == 0 {
				in.queue[0] = piece{}
				if in.queue = in.queue[1:]; len(in.queue) == 0 {
					in.queue = nil
				}
			}
		}
		in.stalled.Store(full && !in.closed)
		in.mu.Unlock()

		if n > 0 {
			s.m.bytesIn.Add(uint64(n))
			if ack != nil {
				ack(at)
			}
		}
		if full {
			// EPOLLOUT is the wake-up; the clock is only its net.
			s.m.loop.do(func() { s.m.loop.timed[s.rd] = struct{}{} })
			return false
		}
	}
}

// transfer moves p, at most writeSize bytes, into the terminal's queue and
// returns how many it took. The bytes go through a pipe, and the block says at
// each step what a process that takes over will find: so a crash neither types
// them twice nor forgets them.
func (s *Session) transfer(c *inClient, p []byte) (n int, err error) {
	j := s.blk[blkJournal:]
	m := s.m
	m.typing.Lock()
	defer m.typing.Unlock()
	j.u32(jClient).Store(uint32(int32(c.slot)))
	j.u64(jFrom).Store(c.acked)
	j.u32(jCount).Store(uint32(len(p)))
	j.u32(jStep).Store(stepWriting)
	defer j.u32(jStep).Store(stepNone)
	if k, err := unix.Write(m.inPipe.W, p); err != nil || k != len(p) { // cannot be: it is empty and holds 64 KiB
		m.inPipe.empty() // the queue still has it
		return 0, fmt.Errorf("input pipe took %d of %d bytes: %w", k, len(p), err)
	}
	failpoint.Hit("ptymgr.input.written")
	j.u32(jStep).Store(stepPiped)
	err = s.withMaster(func(fd int) (e error) {
		k, e := unix.Splice(m.inPipe.R, nil, fd, nil, len(p), unix.SPLICE_F_NONBLOCK)
		n = max(int(k), 0)
		return e
	})
	failpoint.Hit("ptymgr.input.spliced")
	j.u32(jDone).Store(uint32(n))
	j.u32(jStep).Store(stepD)
	if n < len(p) {
		m.inPipe.empty() // the queue still has it
	}
	if c.slot >= 0 {
		s.blk.count(c.slot).Store(c.acked + uint64(n))
	}
	return n, err
}

// recoverInput does what the step in the journal asks for, with q bytes left in
// the pipe, and remembers the clients.
func (s *Session) recoverInput(q int) {
	j := s.blk[blkJournal:]
	done := uint64(0)
	step := j.u32(jStep).Load()
	switch step {
	case stepPiped:
		done = uint64(max(int(j.u32(jCount).Load())-q, 0))
	case stepD:
		done = uint64(j.u32(jDone).Load())
	}
	if slot := int(int32(j.u32(jClient).Load())); step != stepNone && slot >= 0 && slot < maxClients {
		s.blk.count(slot).Store(j.u64(jFrom).Load() + done)
	}
	j.u32(jStep).Store(stepNone)
	for i := range maxClients {
		if id := s.blk.client(i); id != (ClientID{}) {
			n := s.blk.count(i).Load()
			s.in.clients[id] = &inClient{slot: i, accepted: n, acked: n}
		}
	}
}

func (in *input) close() {
	in.mu.Lock()
	in.closed = true
	in.queue, in.queued = nil, 0
	in.mu.Unlock()
}

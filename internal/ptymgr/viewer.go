package ptymgr

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/problem"
)

// Follower takes a session's output. Its methods are called by the reading
// thread and by others, must not block and must not call back into the session.
type Follower interface {
	// Output offers the bytes from start on; they are valid during the call
	// only, and they are in the ring as well. With inline few viewers watch,
	// and writing at once is cheaper than waking a writer. Without it the call
	// only says that there is output up to start.
	Output(start uint64, a, b []byte, inline bool)
	// Changed says that something else than output is new: a record, the
	// session's end, its removal, the number of viewers.
	Changed()
	// Position is the offset up to which the follower has sent.
	Position() uint64
}

// sayEvery is how much output many followers are told of at once while the
// terminal has more to give: a wake-up for each of them at each read costs more
// than the copy. When it has no more they are told at once; nothing waits.
const sayEvery = 64 << 10

// bulkFrom is how much output without a pause makes it a flood: from there on
// also a single follower is told of it in pieces of sayEvery. The writer then
// works beside the reading thread and sends large messages: a third more bytes
// per second, a fifth less work for the daemon, and far less for the viewer.
const bulkFrom = 32 << 10

// inlineMax is the number of followers up to which output is written by the
// reading thread itself; beyond it a queue and a writer each are cheaper.
const inlineMax = 2

// MaxCols and MaxRows bound a terminal's size.
const (
	MaxCols = 1000
	MaxRows = 1000
)

// keepRecords is how many records a session remembers; a follower that lags
// further takes the current size instead.
const keepRecords = 256

// Viewer is one attached viewer.
type Viewer struct {
	s    *Session
	f    Follower
	name string

	// Guarded by Session.mu.
	sizes      bool // may own the size: interactive and not read-only
	visible    bool
	cols, rows uint16
	used       uint64
	gone       bool
}

// ViewerOptions describe a viewer.
type ViewerOptions struct {
	Name       string // for people: who owns the size
	Sizes      bool   // may own the size
	Visible    bool
	Cols, Rows uint16 // 0: unknown yet
}

// record is a resize at its place in the stream.
type record struct {
	seq        uint64
	offset     uint64
	cols, rows uint16
	owner      *Viewer
	ownerName  string
}

// SizeAt is a resize record as one viewer sees it.
type SizeAt struct {
	Seq        uint64
	Offset     uint64
	Cols, Rows uint16
	Owner      string
	You        bool
}

// checkSize refuses what no terminal has.
func checkSize(cols, rows uint16) error {
	if cols < 1 || cols > MaxCols {
		return problem.Field("cols", "%d columns are not within 1 and %d", cols, MaxCols)
	}
	if rows < 1 || rows > MaxRows {
		return problem.Field("rows", "%d rows are not within 1 and %d", rows, MaxRows)
	}
	return nil
}

// Attach adds a viewer. f is called from now on; what was before lies in the ring.
func (s *Session) Attach(f Follower, o ViewerOptions) (*Viewer, error) {
	v := &Viewer{s: s, f: f, name: o.Name, sizes: o.Sizes, visible: o.Visible}
	if o.Cols != 0 || o.Rows != 0 {
		if err := checkSize(o.Cols, o.Rows); err != nil {
			return nil, err
		}
		v.cols, v.rows = o.Cols, o.Rows
	}
	s.mu.Lock()
	if s.removed {
		s.mu.Unlock()
		return nil, problem.New(problem.NotFound, "session %s was removed", s.id)
	}
	s.viewers[v] = struct{}{}
	s.setFollowersLocked()
	s.mu.Unlock()
	s.resize(func() (uint16, uint16) {
		// A newcomer does not take the size from somebody who has it.
		if s.owner == nil && v.canOwn() {
			return s.ownLocked(v)
		}
		return 0, 0
	})
	s.notify()
	s.m.viewers.Add(1)
	return v, nil
}

// Detach removes the viewer; its follower may be called once more at most.
func (v *Viewer) Detach() {
	s := v.s
	s.mu.Lock()
	if v.gone {
		s.mu.Unlock()
		return
	}
	v.gone = true
	delete(s.viewers, v)
	s.setFollowersLocked()
	s.mu.Unlock()
	s.m.viewers.Add(-1)
	s.resize(func() (uint16, uint16) { return s.passOnLocked(v) })
	s.Progress() // the session may have rested for this viewer
	s.notify()
}

// SetView tells the viewer's own size and whether anybody can see it. A hidden
// viewer may have no size (0×0): then the one before stays.
func (v *Viewer) SetView(cols, rows uint16, visible bool) error {
	if cols != 0 || rows != 0 || visible {
		if err := checkSize(cols, rows); err != nil {
			return err
		}
	}
	s := v.s
	s.resize(func() (uint16, uint16) {
		if cols != 0 {
			v.cols, v.rows = cols, rows
		}
		v.visible = visible
		switch {
		case s.owner == v && !v.canOwn():
			return s.passOnLocked(v)
		case s.owner == v, s.owner == nil && v.canOwn():
			return s.ownLocked(v)
		}
		return 0, 0
	})
	return nil
}

// Use says that the viewer was typed into: the size follows it.
func (v *Viewer) Use() {
	s := v.s
	s.mu.Lock()
	same := s.owner == v
	s.useSeq++
	v.used = s.useSeq
	s.mu.Unlock()
	if !same {
		v.Claim()
	}
}

// Claim takes the size.
func (v *Viewer) Claim() {
	s := v.s
	s.resize(func() (uint16, uint16) {
		s.useSeq++
		v.used = s.useSeq
		if v.gone || !v.canOwn() {
			return 0, 0
		}
		return s.ownLocked(v)
	})
}

// canOwn needs Session.mu.
func (v *Viewer) canOwn() bool { return v.sizes && v.visible && v.cols > 0 && v.rows > 0 }

// ownLocked makes v the owner and returns the size that follows.
func (s *Session) ownLocked(v *Viewer) (cols, rows uint16) {
	if s.owner == v && s.rec.Cols == v.cols && s.rec.Rows == v.rows {
		return 0, 0
	}
	s.owner = v
	return v.cols, v.rows
}

// passOnLocked gives v's size to the most recently used viewer that can have
// it. Where there is none the size stays as it is.
func (s *Session) passOnLocked(v *Viewer) (cols, rows uint16) {
	if s.owner != v {
		return 0, 0
	}
	var best *Viewer
	for o := range s.viewers {
		if o != v && o.canOwn() && (best == nil || o.used > best.used) {
			best = o
		}
	}
	s.owner = nil
	if best == nil {
		return s.rec.Cols, s.rec.Rows
	}
	return s.ownLocked(best)
}

// Resize sets the size on nobody's behalf; the next use by a viewer changes it again.
func (s *Session) Resize(cols, rows uint16) error {
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	select {
	case <-s.done:
		return problem.New(problem.SessionEnded, "session %s has ended", s.id)
	default:
	}
	s.resize(func() (uint16, uint16) { return cols, rows })
	return nil
}

// resize runs decide under the lock. Where it returns a size, the record is
// made first and the terminal told after it, both under the lock: two resizes
// cannot cross. TIOCSWINSZ does not block.
func (s *Session) resize(decide func() (cols, rows uint16)) {
	s.mu.Lock()
	cols, rows := decide()
	if cols == 0 {
		s.mu.Unlock()
		return
	}
	changed := cols != s.rec.Cols || rows != s.rec.Rows
	s.rec.Cols, s.rec.Rows = cols, rows
	r := record{seq: s.recSeq.Load() + 1, offset: s.ring.Head(), cols: cols, rows: rows, owner: s.owner}
	if s.owner != nil {
		r.ownerName = s.owner.name
	}
	if len(s.records) >= keepRecords {
		s.records = slices.Delete(s.records, 0, len(s.records)/2)
	}
	s.records = append(s.records, r)
	s.recSeq.Store(r.seq)
	if changed {
		_ = s.withMaster(func(fd int) error {
			return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		})
	}
	owner := s.rec.Owner
	s.mu.Unlock()
	if changed {
		if !isClosed(s.done) { // an ended one keeps the size that it had
			s.m.scribe.size(s)
		}
		s.m.hub.Publish(events.Change{Type: "session", ID: s.id, Owner: owner})
	}
	s.notify()
}

// RecordSeq is the number of the newest record; it costs one atomic load.
func (s *Session) RecordSeq() uint64 { return s.recSeq.Load() }

// NextRecord returns the first record after seq as v sees it, if there is one.
func (v *Viewer) NextRecord(seq uint64) (SizeAt, bool) {
	s := v.s
	if s.RecordSeq() == seq {
		return SizeAt{}, false // nearly always, and on the way of every message
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.records, seq+1, func(r record, want uint64) int { return int(int64(r.seq) - int64(want)) })
	if i == len(s.records) {
		return SizeAt{}, false
	}
	r := s.records[i]
	return SizeAt{Seq: r.seq, Offset: r.offset, Cols: r.cols, Rows: r.rows, Owner: r.ownerName, You: r.owner == v}, true
}

// SizeAt returns the size that was in force at offset off, as far as records
// reach back.
func (v *Viewer) SizeAt(off uint64) SizeAt {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[0] // never empty: start makes the first
	for _, next := range s.records[1:] {
		if next.offset > off {
			break
		}
		r = next
	}
	return SizeAt{Seq: r.seq, Offset: r.offset, Cols: r.cols, Rows: r.rows, Owner: r.ownerName, You: r.owner == v}
}

// Removed reports whether the session was removed.
func (s *Session) Removed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removed
}

// Viewers is how many are attached; it costs one atomic load.
func (s *Session) Viewers() int {
	if fs := s.followers.Load(); fs != nil {
		return len(*fs)
	}
	return 0
}

func (s *Session) setFollowersLocked() {
	fs := make([]Follower, 0, len(s.viewers))
	for v := range s.viewers {
		fs = append(fs, v.f)
	}
	s.followers.Store(&fs)
}

// offer hands a read to the followers; only the reading thread calls it.
func (s *Session) offer(start uint64, a, b []byte) {
	fs := s.followers.Load()
	if fs == nil {
		return
	}
	if len(*fs) > inlineMax || s.bulk {
		s.unsaid += len(a) + len(b)
		return
	}
	for _, f := range *fs {
		f.Output(start, a, b, true)
	}
}

// say tells the followers of what was gathered for them; only the reading
// thread calls it.
func (s *Session) say() {
	if s.unsaid == 0 {
		return
	}
	s.unsaid = 0
	if fs := s.followers.Load(); fs != nil {
		head := s.ring.Head()
		for _, f := range *fs {
			f.Output(head, nil, nil, false)
		}
	}
}

func (s *Session) notify() {
	if fs := s.followers.Load(); fs != nil {
		for _, f := range *fs {
			f.Changed()
		}
	}
}

// fastest is the position of the follower that has sent most.
func (s *Session) fastest() (pos uint64, any bool) {
	if fs := s.followers.Load(); fs != nil {
		for _, f := range *fs {
			pos, any = max(pos, f.Position()), true
		}
	}
	return pos, any
}

func (a SizeAt) String() string { return fmt.Sprintf("%d×%d at %d", a.Cols, a.Rows, a.Offset) }

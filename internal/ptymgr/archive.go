package ptymgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/checkpoint"
	"github.com/ptyd/ptyd/internal/problem"
)

// The bounds of what checkpoints cost, in bytes and times.
const (
	// CheckpointRate is the most output that is written to the disk in a second,
	// all sessions together. Where more comes, each keeps its newest.
	CheckpointRate = 16 << 20
	// checkpointSyncs is how many files are synced in one round; the kernel
	// writes the others by itself, within its half a minute.
	checkpointSyncs = 32
	// lastBytes and lastTime bound what an orderly end still writes.
	lastBytes = 256 << 20
	lastTime  = 5 * time.Second
	// archiveIdle is the time between looks while checkpoints are turned off.
	archiveIdle = time.Minute
)

// Archive tells how the checkpoints are doing.
type Archive struct {
	On       bool
	Sessions int    // that have some on the disk
	Bytes    int64  // of files
	Written  uint64 // bytes of output since the start
	Skipped  uint64 // bytes of output that newer ones went before
	Error    string // why none are written now; "" where they are
	Failures uint64 // rounds that could not write
}

// archivist writes the output of sessions to the disk, so that it can be read
// when the machine or the keeper went down. One goroutine does all of it: it
// reads the rings by offset like any viewer, so the reading thread knows nothing
// of it, and an idle session costs a look at its head while others print.
type archivist struct {
	m   *Manager
	dir *checkpoint.Dir

	mu   sync.Mutex // guards all below
	gone []string   // removed sessions, whose files go
	quit bool
	last bool // write all before the end

	wake    chan struct{}
	wg      sync.WaitGroup
	why     atomic.Pointer[string]
	fails   atomic.Uint64
	written atomic.Uint64
	skipped atomic.Uint64

	// Owned by the goroutine.
	logs    map[*Session]*checkpoint.Log
	unsaved []*checkpoint.Log // in the order in which they are to be synced
	buf     []byte
	page    []byte
	seen    uint64 // bytes that all sessions had printed at the last look
	behind  bool   // the last round left something
}

func newArchivist(m *Manager, dir string) *archivist {
	a := &archivist{m: m, dir: checkpoint.Open(dir), wake: make(chan struct{}, 1), logs: map[*Session]*checkpoint.Log{}, seen: ^uint64(0)}
	return a
}

// start begins the work; the sessions that were adopted are known.
func (a *archivist) start() {
	if a != nil {
		a.wg.Go(a.run)
	}
}

// remove has the files of a session deleted. It never waits.
func (a *archivist) remove(ids ...string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.gone = append(a.gone, ids...)
	a.mu.Unlock()
	a.poke()
}

func (a *archivist) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// stop ends the goroutine. With last, all output is written first, as far as
// lastBytes and lastTime go.
func (a *archivist) stop(last bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.quit, a.last = true, last
	a.mu.Unlock()
	a.poke()
	a.wg.Wait()
}

func (a *archivist) stats() Archive {
	if a == nil {
		return Archive{}
	}
	s := Archive{On: a.m.cfg.Load().CheckpointEvery > 0, Written: a.written.Load(), Skipped: a.skipped.Load(), Failures: a.fails.Load()}
	s.Sessions, s.Bytes = a.dir.Stats()
	if why := a.why.Load(); why != nil {
		s.Error = *why
	}
	return s
}

func (a *archivist) run() {
	swept := false
	timer := time.NewTimer(a.every())
	defer timer.Stop()
	for {
		due := false
		select {
		case <-timer.C:
			due = true
		case <-a.wake:
		}
		a.mu.Lock()
		gone, quit, last := a.gone, a.quit, a.last
		a.gone = nil
		a.mu.Unlock()
		if quit {
			if last {
				a.finish()
			}
			a.delete(gone)
			return
		}
		a.delete(gone)
		if due {
			if !swept { // not before: a start has other things to do
				swept = true
				a.sweepOrphans()
			}
			a.look()
			timer.Reset(a.every())
		}
	}
}

// every is the time between rounds.
func (a *archivist) every() time.Duration {
	if d := a.m.cfg.Load().CheckpointEvery; d > 0 {
		return d
	}
	return archiveIdle
}

// delete removes files of sessions that are gone.
func (a *archivist) delete(ids []string) {
	for _, id := range ids {
		if err := a.dir.Remove(id); err != nil {
			a.m.log.Warn("remove a checkpoint", zap.String("session", id), zap.Error(err))
		}
	}
	if len(ids) > 0 {
		for s := range a.logs {
			if slices.Contains(ids, s.id) {
				delete(a.logs, s)
			}
		}
	}
}

// sweepOrphans removes files of sessions that are not there any more: they were
// removed while no daemon ran, or one died in between.
func (a *archivist) sweepOrphans() {
	ids := a.dir.IDs()
	if err := a.dir.Check(); err != nil {
		a.stopped(err)
	}
	for _, id := range ids { // a session is in the store before its first file is there
		if isClosed(a.m.stop) {
			return
		}
		if _, err := a.m.store.GetSession(context.Background(), id); problem.Is(err, problem.NotFound) {
			a.delete([]string{id})
		}
	}
}

// look is one round, where there is anything to write.
func (a *archivist) look() {
	cfg := a.m.cfg.Load()
	if cfg.CheckpointEvery <= 0 {
		return
	}
	printed := a.m.loop.bytesOut.Load()
	if printed == a.seen && !a.behind && len(a.unsaved) == 0 && a.why.Load() == nil {
		return
	}
	if err := a.fits(cfg); err != nil {
		a.stopped(err)
		return
	}
	budget := int64(min(cfg.CheckpointEvery.Seconds(), 60) * CheckpointRate)
	err := a.write(max(budget, checkpoint.MaxRecord), time.Time{})
	if err == nil {
		err = a.sync(checkpointSyncs, time.Time{})
	}
	a.trim(cfg.CheckpointTotal)
	if err != nil {
		a.stopped(err)
		return
	}
	a.seen = printed
	if a.why.Swap(nil) != nil {
		a.m.log.Info("checkpoints are written again")
	}
}

// fits refuses to fill the disk.
func (a *archivist) fits(cfg *Config) error {
	if err := a.dir.Check(); err != nil {
		return err
	}
	if cfg.MinFree != nil {
		return cfg.MinFree()
	}
	return nil
}

// stopped says, once, why no checkpoint is written. Sessions go on; the next
// round tries again.
func (a *archivist) stopped(err error) {
	a.fails.Add(1)
	why := err.Error()
	if a.why.Swap(&why) == nil {
		a.m.log.Error("no checkpoints are written: sessions go on, but a reboot would lose what they print", zap.Error(err))
	}
}

// work is what a session lacks on the disk.
type work struct {
	s    *Session
	log  *checkpoint.Log
	from uint64
	head uint64
}

// pending lists the sessions that lack something, those that lack least first.
func (a *archivist) pending() (all []work) {
	a.m.sessions.Range(func(_ string, s *Session) bool {
		if s.archived || s.noCheckpoint {
			return true
		}
		done := isClosed(s.done) // before the head: what comes after is then complete
		head := s.ring.Head()
		l := a.logs[s]
		if l == nil && head == 0 || l != nil && l.Next() == head {
			if done && (l == nil || !l.Dirty()) { // for good
				s.archived = true
				delete(a.logs, s)
			}
			return true
		}
		w := work{s: s, log: l, head: head}
		if l == nil {
			var err error
			if w.log, err = a.dir.Log(s.id, s.epoch, s.ring.Limit(), a.buf); err != nil {
				a.m.log.Error("no checkpoint of this session", zap.Error(err))
				s.archived = true
				return true
			}
			if next, ok, err := w.log.Resume(); err != nil || !ok || next > head {
				w.from = s.ring.Oldest()
			} else {
				w.from = next
			}
			a.logs[s] = w.log
		} else {
			w.from = l.Next()
		}
		w.from = max(w.from, s.ring.Oldest())
		if w.from < head {
			all = append(all, w)
		}
		return true
	})
	slices.SortFunc(all, func(x, y work) int { return cmp.Compare(x.head-x.from, y.head-y.from) })
	return all
}

// write writes what sessions lack, at most budget bytes in all and until
// deadline, if there is one. Where that is not enough, all get the same share and
// keep their newest bytes.
func (a *archivist) write(budget int64, deadline time.Time) error {
	if a.buf == nil {
		a.buf = make([]byte, checkpoint.BufSize)
		a.page = make([]byte, checkpoint.MaxRecord)
	}
	a.behind = false
	all := a.pending()
	for i, w := range all {
		if !deadline.IsZero() && time.Now().After(deadline) {
			a.behind = true
			return nil
		}
		share := max(uint64(max(budget, 0))/uint64(len(all)-i), 1)
		from := w.from
		if before := w.log.Next(); from != before && before != 0 || w.head-from > share {
			// A gap: what was before it is worth something until this is safe on
			// the disk, so it keeps half of the room.
			share = min(share, uint64(w.s.ring.Limit())/2)
			from = max(from, w.head-min(share, w.head))
			a.skipped.Add(from - min(before, from))
		}
		n, err := a.save(w, from)
		budget -= int64(n)
		if err != nil {
			a.behind = true
			return err
		}
	}
	return nil
}

// save writes one session's output from an offset up to the head it had.
func (a *archivist) save(w work, from uint64) (written uint64, err error) {
	ring := w.s.ring
	safe := func(off uint64) uint64 {
		if at, clean := ring.SafeFrom(off); clean && at >= off {
			return at
		}
		return checkpoint.Unsafe
	}
	dirty := w.log.Dirty()
	for from < w.head {
		n, err := ring.ReadAt(a.page[:min(uint64(len(a.page)), w.head-from)], from)
		if err != nil || n == 0 {
			break // it is removed, or moved on faster than this: the next round has the newest
		}
		if err := w.log.Append(from, a.page[:n], safe); err != nil {
			return written, err
		}
		from += uint64(n)
		written += uint64(n)
		a.written.Add(uint64(n))
	}
	if w.log.Dirty() && !dirty {
		a.unsaved = append(a.unsaved, w.log)
	}
	return written, nil
}

// sync has the disk take the files that wait longest for it.
func (a *archivist) sync(most int, deadline time.Time) error {
	for range most {
		if len(a.unsaved) == 0 || !deadline.IsZero() && time.Now().After(deadline) {
			return nil
		}
		l := a.unsaved[0]
		if err := l.Sync(); err != nil {
			return err
		}
		a.unsaved = append(a.unsaved[:0], a.unsaved[1:]...)
	}
	return nil
}

// trim keeps all files together within total bytes: those of ended sessions go
// first, in the order in which the sessions were made, then the oldest part of
// whichever living session has most.
func (a *archivist) trim(total int64) {
	if _, sum := a.dir.Stats(); sum <= total {
		return
	}
	living := map[string]*Session{}
	for _, id := range a.dir.IDs() {
		if s, ok := a.m.sessions.Load(id); ok && !isClosed(s.done) {
			living[id] = s
			continue
		}
		if _, sum := a.dir.Stats(); sum <= total {
			return
		}
		a.m.log.Info("removed the checkpoint of an ended session: all together are more than checkpoint_total", zap.String("session", id))
		a.delete([]string{id})
		if s, ok := a.m.sessions.Load(id); ok {
			s.archived = true // not again
		}
	}
	for {
		if _, sum := a.dir.Stats(); sum <= total {
			return
		}
		var most *Session
		var size int64
		for id, s := range living {
			if n := a.dir.Size(id); n > size {
				most, size = s, n
			}
		}
		if most == nil {
			return
		}
		if _, err := a.dir.DropOldest(most.id); err != nil {
			a.m.log.Warn("cut a checkpoint", zap.String("session", most.id), zap.Error(err))
			return
		}
		if l := a.logs[most]; l != nil && a.dir.Size(most.id) == 0 {
			l.Dropped()
		}
	}
}

// finish writes what is not on the disk yet: the daemon ends in order.
func (a *archivist) finish() {
	cfg := a.m.cfg.Load()
	if cfg.CheckpointEvery <= 0 {
		return
	}
	deadline := time.Now().Add(lastTime)
	err := a.fits(cfg)
	if err == nil {
		err = a.write(lastBytes, deadline)
	}
	if err == nil {
		err = a.sync(len(a.unsaved), deadline)
	}
	if err == nil && (a.behind || len(a.unsaved) > 0) {
		err = fmt.Errorf("it took longer than %s", lastTime)
	}
	a.trim(cfg.CheckpointTotal)
	if err != nil {
		a.m.log.Error("the output of some sessions is not on the disk", zap.Error(err))
	}
}

package screen

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/vt"
)

const (
	// playing is how many sessions are played at once.
	playing = 2
	// CacheBytes bounds what the kept emulators take, in bytes, by the estimate
	// of cost.
	CacheBytes = 64 << 20
	// MaxCells is the largest screen that is read; ptyd's terminals can be larger.
	MaxCells = 200_000
	// MaxSpans bounds an answer cell by cell.
	MaxSpans = 50_000
	// idleFor is how long an emulator is kept that nobody asks for.
	idleFor = 5 * time.Minute
	// playTime bounds one question, waiting included.
	playTime = 20 * time.Second
)

// Manager is what has the sessions.
type Manager interface {
	Replay(ctx context.Context, id string) (r ptymgr.Replay, release func(), err error)
}

// Screen is a session's screen at an offset of its output.
type Screen struct {
	vt.Screen
	ANSI  []byte      // where it was asked for: the rows with their colours
	Cells [][]vt.Span // where they were asked for: of each row
	Epoch uint64
	// Offset is how much of the output is in it.
	Offset uint64
	// Revision grows with each byte and each resize as long as one process
	// serves the session.
	Revision uint64
	// Approximate says that it may differ from what a terminal showed: output
	// from before is no longer kept, or the size that it had then is not known.
	Approximate bool
}

// Format says what else than text is wanted.
type Format uint8

// Formats of a screen.
const (
	Text Format = iota
	ANSI
	Cells
)

// Cache makes screens and keeps emulators.
type Cache struct {
	mgr   Manager
	log   *zap.Logger
	slots chan struct{} // a place to play each

	mu      sync.Mutex // guards entries, and used and cost of each
	entries map[string]*entry
}

// entry is one session's emulator.
type entry struct {
	turn chan struct{} // full while somebody uses what is below
	p    *player       // nil until the first has played

	used time.Time
	cost int
}

// New returns an empty Cache.
func New(m Manager, log *zap.Logger) *Cache {
	return &Cache{mgr: m, log: log, slots: make(chan struct{}, playing), entries: map[string]*entry{}}
}

// Screen returns the screen of a session at the end of its output as of now.
func (c *Cache) Screen(ctx context.Context, id string, f Format) (Screen, error) {
	ctx, cancel := context.WithTimeout(ctx, playTime)
	defer cancel()
	r, release, err := c.mgr.Replay(ctx, id)
	defer release()
	if err != nil {
		return Screen{}, err
	}
	sizes, _ := r.Sizes()
	if last := sizes[len(sizes)-1]; int(last.Cols)*int(last.Rows) > MaxCells {
		return Screen{}, problem.New(problem.TooLarge, "the screen has %d columns and %d rows: more than %d cells are not read as a screen", last.Cols, last.Rows, MaxCells).
			WithHint("make it smaller: ptyd resize")
	}
	e := c.entry(id)
	if err := enter(ctx, e.turn); err != nil {
		return Screen{}, err
	}
	defer func() { <-e.turn }()
	if err := enter(ctx, c.slots); err != nil {
		return Screen{}, err
	}
	defer func() { <-c.slots }()
	return c.play(ctx, e, r, id, f)
}

// play brings e's emulator to the end of the output and reads its screen. An
// emulator that panics costs its session's screen, not the daemon.
func (c *Cache) play(ctx context.Context, e *entry, r ptymgr.Replay, id string, f Format) (s Screen, err error) {
	defer func() {
		if v := recover(); v != nil {
			e.p = nil
			c.log.Error("the emulator failed", zap.String("session", id), zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
			s, err = Screen{}, problem.New(problem.Internal, "the screen could not be made").WithHint("the log has the reason; the output is whole")
		}
		c.keep(id, e) // also what was played until the time was over
	}()
	if e.p == nil || !e.p.follows(r) {
		e.p = newPlayer(r)
	}
	if err := e.p.play(ctx, r); err != nil {
		return Screen{}, err
	}
	return e.p.screen(f)
}

// enter puts into a channel that is a lock.
func enter(ctx context.Context, ch chan struct{}) error {
	if ctx.Err() == nil {
		select {
		case ch <- struct{}{}:
			return nil
		case <-ctx.Done():
		}
	}
	return busy(ctx)
}

func busy(ctx context.Context) error {
	return problem.New(problem.Unavailable, "the screen was not ready in time").
		WithHint("many screens are asked for at once; try again").Because(context.Cause(ctx))
}

// entry is the one of a session, made where there is none.
func (c *Cache) entry(id string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1)}
		c.entries[id] = e
	}
	e.used = time.Now()
	return e
}

// keep notes what e takes, and drops those that were used longest ago until all
// fit. The holder of a dropped one goes on with it alone.
func (c *Cache) keep(id string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.used, e.cost = time.Now(), 0
	if e.p != nil {
		e.cost = e.p.cost()
	}
	for {
		sum, oldest := 0, ""
		for i, o := range c.entries {
			sum += o.cost
			if o.cost > 0 && i != id && (oldest == "" || o.used.Before(c.entries[oldest].used)) {
				oldest = i
			}
		}
		if sum <= CacheBytes || oldest == "" {
			return
		}
		delete(c.entries, oldest)
	}
}

// Expire drops the emulators that nobody asked for lately.
func (c *Cache) Expire(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, e := range c.entries {
		if now.Sub(e.used) >= idleFor {
			delete(c.entries, id)
		}
	}
}

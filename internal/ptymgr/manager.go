package ptymgr

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/cgroup"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/keylock"
	"github.com/ptyd/ptyd/internal/problem"
)

// Config holds what the daemon's configuration says about sessions. Zero
// values take the defaults named.
type Config struct {
	MaxPerOwner int           // living sessions of one owner; 200
	MaxTotal    int           // living sessions in all; 10,000
	OutputLimit int64         // bytes of output kept per session; 8 MiB
	OutputTotal int64         // bytes of output kept of ended sessions in all; 1 GiB
	RemoveAfter time.Duration // an ended session is removed after this; 0 never
	Grace       time.Duration // between TERM and KILL; 3 s
	BaseEnv     []string      // nil: BaseEnv()
	Shell       string        // "": LoginShell()
	Home        string        // where sessions start that name no directory; "": HOME of the base environment
	// Limits of sessions that ask for none; 0 none.
	MemoryLimit int64 // bytes
	PidsLimit   int   // processes and threads
	// Cgroups is where sessions have a cgroup each; nil: they have none, and
	// NoCgroups says why. Both stay as they are at the start.
	Cgroups   *cgroup.Tree
	NoCgroups string

	EndedPerOwner   int           // ended sessions that an owner keeps; 1,000
	CheckpointDir   string        // where output is written to; "": nowhere, ever
	CheckpointEvery time.Duration // how often, at most; 0: not now
	CheckpointTotal int64         // bytes on the disk in all; 1 GiB
	// MinFree, when not nil, refuses new sessions where the disk is short.
	MinFree func() error
}

func (c Config) withDefaults() Config {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.MaxPerOwner, 200)
	def(&c.MaxTotal, 10000)
	def(&c.EndedPerOwner, 1000)
	if c.OutputLimit == 0 {
		c.OutputLimit = 8 << 20
	}
	if c.OutputTotal == 0 {
		c.OutputTotal = 1 << 30
	}
	if c.CheckpointTotal == 0 {
		c.CheckpointTotal = 1 << 30
	}
	if c.Grace == 0 {
		c.Grace = 3 * time.Second
	}
	if c.BaseEnv == nil {
		c.BaseEnv = BaseEnv()
	}
	if c.Shell == "" {
		c.Shell = LoginShell()
	}
	if c.Home == "" {
		if c.Home = getenv(c.BaseEnv, "HOME"); c.Home == "" {
			c.Home = "/"
		}
	}
	return c
}

// maxStarts is how many sessions are being started at once. A start waits in
// system calls, each of which takes a thread that never goes away again.
const maxStarts = 2

// Manager owns all sessions of this daemon.
type Manager struct {
	cfg      atomic.Pointer[Config]
	store    Store
	vault    Vault
	hub      *events.Hub
	log      *zap.Logger
	loop     *loop
	scribe   *scribe
	groups   *groups
	lookout  *lookout
	archive  *archivist // nil: there is no place for checkpoints
	shelf    *shelf
	sessions *xsync.MapOf[string, *Session]
	creating keylock.Locks // per owner and idempotency key
	editing  keylock.Locks // per session: row and memory change together

	starts chan struct{} // one element for each session being started

	mu   sync.Mutex // guards shut and the Add of busy
	shut bool
	busy sync.WaitGroup // creations in flight

	stop chan struct{} // ends the sweeper
	over chan struct{} // tells the sweeper that a session ended
	wg   sync.WaitGroup

	typing sync.Mutex // guards inPipe, over calls that do not block
	inPipe Pipe

	adopted   Adopted
	abandoned atomic.Pointer[string] // why all that ends now is lost; nil: it is not

	bytesIn atomic.Uint64
	running atomic.Int64
	viewers atomic.Int64
}

// New starts a manager. Sessions that an earlier process left in the vault are
// adopted; those that the store calls living and that are not there are marked
// lost.
func New(cfg Config, st Store, vault Vault, hub *events.Hub, log *zap.Logger) (*Manager, error) {
	m := &Manager{store: st, vault: vault, hub: hub, log: log.Named("ptymgr"), sessions: xsync.NewMapOf[string, *Session](), stop: make(chan struct{}), over: make(chan struct{}, 1),
		starts: make(chan struct{}, maxStarts), lookout: newLookout()}
	c := cfg.withDefaults()
	m.cfg.Store(&c)
	m.groups = newGroups(c, m.log)
	m.shelf = &shelf{m: m, cells: map[string]*shelved{}}
	if c.CheckpointDir != "" {
		m.archive = newArchivist(m, c.CheckpointDir)
	}
	_, m.inPipe = vault.Pipes()
	// What the daemon inherited must not reach a session (EINVAL: before Linux 5.11).
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		m.log.Warn("mark inherited descriptors close-on-exec", zap.Error(err))
	}
	living, err := m.adopt(context.Background())
	if err != nil {
		return nil, err
	}
	m.scribe = newScribe(m)
	if m.loop, err = newLoop(m.log, vault, m.scribe.forget); err != nil {
		return nil, errors.Join(err, m.scribe.stop())
	}
	m.scribe.forget()
	m.settleAdopted(living)
	m.archive.start()
	m.wg.Go(m.sweep)
	return m, nil
}

// Reconfigure takes new limits; sessions that exist keep theirs.
func (m *Manager) Reconfigure(cfg Config) {
	c := cfg.withDefaults()
	m.cfg.Store(&c)
}

func (m *Manager) baseEnv() []string { return m.cfg.Load().BaseEnv }

// enter registers a creation, unless shutdown has begun.
func (m *Manager) enter() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shut {
		return problem.New(problem.Unavailable, "the daemon is shutting down").WithHint("try again in a moment")
	}
	m.busy.Add(1)
	return nil
}

// Create starts a session. With an idempotency key that was seen before it
// returns the session of that key, and existing.
func (m *Manager) Create(ctx context.Context, spec Spec) (info Info, existing bool, err error) {
	digest, err := digestOf(spec)
	if err != nil {
		return Info{}, false, err
	}
	return m.create(ctx, spec, spec.Shell || len(spec.Argv) == 0, digest)
}

// create starts a session; shell makes its program a login shell, and digest is
// what its idempotency key stands for.
func (m *Manager) create(ctx context.Context, spec Spec, shell bool, digest string) (info Info, existing bool, err error) {
	cfg := *m.cfg.Load()
	if err := spec.complete(cfg); err != nil {
		return Info{}, false, err
	}
	if err := m.groups.check(cgroup.Limits{Memory: *spec.MemoryLimit, Pids: *spec.PidsLimit}); err != nil {
		return Info{}, false, err
	}
	if err := m.enter(); err != nil {
		return Info{}, false, err
	}
	defer m.busy.Done()
	if cfg.MinFree != nil {
		if err := cfg.MinFree(); err != nil {
			return Info{}, false, err
		}
	}
	if spec.IdempotencyKey != "" {
		unlock, err := m.creating.Lock(ctx, spec.Owner+"\x00"+spec.IdempotencyKey)
		if err != nil {
			return Info{}, false, err
		}
		defer unlock()
	}
	row := Record{
		ID: ident.New("s"), Name: spec.Name, Owner: spec.Owner, State: Starting, Argv: spec.Argv, Cwd: spec.Cwd, Env: spec.Env,
		Labels: spec.Labels, Cols: spec.Cols, Rows: spec.Rows, CreatedAt: time.Now(), Epoch: newEpoch(),
		MemoryLimit: *spec.MemoryLimit, PidsLimit: *spec.PidsLimit,
		Shell: shell, OutputLimit: spec.OutputLimit, NoCheckpoint: spec.NoCheckpoint, RerunOf: spec.RerunOf,
	}
	limits := Limits{PerOwner: cfg.MaxPerOwner, Total: cfg.MaxTotal}
	b := &birth{m: m, row: row, invent: spec.Name == ""}
	b.insert(context.WithoutCancel(ctx), spec.IdempotencyKey, digest, limits)
	if b.alone(spec.IdempotencyKey, limits) {
		if err := b.inserted(); err != nil {
			return Info{}, false, err
		}
		if b.existing {
			return m.infoOf(b.row), true, nil
		}
	}
	m.starts <- struct{}{}
	s, err := m.start(context.WithoutCancel(ctx), row, shell, spec.OutputLimit, b)
	<-m.starts
	if insertErr := b.inserted(); insertErr != nil {
		return Info{}, false, insertErr
	}
	marked := b.marked()
	if err != nil {
		m.forget(ctx, row.ID, err)
		return Info{}, false, err
	}
	s.rec = b.of(s.rec)
	m.running.Add(1)
	m.sessions.Store(s.id, s)
	failpoint.Hit("ptymgr.create.started")
	if err := marked; err != nil {
		// The process runs and the row does not say so: that must not stay.
		m.loop.add(s)
		m.log.Error("record a started session", zap.String("session", s.id), zap.Error(err))
		_, _ = m.Close(context.WithoutCancel(ctx), s.id, 0)
		return Info{}, false, err
	}
	info = s.Info()
	m.loop.add(s)
	m.hub.Publish(events.Change{Type: "session", ID: s.id, Owner: row.Owner})
	return info, false, nil
}

// forget takes back the row of a session that could not start.
func (m *Manager) forget(ctx context.Context, id string, why error) {
	ctx = context.WithoutCancel(ctx)
	_, err := m.store.MarkEnded(ctx, id, Exited, nil, "", time.Now(), 0, why.Error())
	if err == nil {
		err = m.store.DeleteSession(ctx, id)
	}
	if err != nil {
		m.log.Error("remove a session that did not start", zap.String("session", id), zap.Error(err))
	}
}

func newEpoch() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return max(binary.LittleEndian.Uint64(b[:]), 1)
}

// digestOf identifies a request, so that a key cannot stand for two of them.
func digestOf(spec Spec) (string, error) {
	spec.IdempotencyKey = ""
	b, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encode the request: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// infoOf joins a row with the live session, which is ahead of it.
func (m *Manager) infoOf(row Record) Info {
	if s, ok := m.sessions.Load(row.ID); ok {
		return s.Info()
	}
	i := Info{Record: row, Offset: row.FinalOffset, Oldest: row.FinalOffset}
	if m.archive != nil && row.State.Ended() {
		if from, to, ok := m.archive.dir.Extent(row.ID, row.Epoch); ok {
			i.Oldest, i.Offset = from, to
		}
	}
	return i
}

// kept returns a session whose output can be read, from memory or from the disk;
// nil where none of it is kept. release must be called.
func (m *Manager) kept(ctx context.Context, id string) (s *Session, row Record, release func(), err error) {
	if s, ok := m.sessions.Load(id); ok {
		return s, Record{}, func() {}, nil
	}
	if row, err = m.store.GetSession(ctx, id); err != nil {
		return nil, row, func() {}, err
	}
	s, release, err = m.shelf.get(ctx, row)
	return s, row, release, err
}

// Session returns the session of an id whose output is kept, or nil. One that
// is only on the disk is read; it stays in memory while it has viewers, and for
// a while after it was asked for.
func (m *Manager) Session(id string) *Session {
	s, _, release, err := m.kept(context.Background(), id)
	release()
	if err != nil {
		return nil
	}
	return s
}

// Get returns a session by id.
func (m *Manager) Get(ctx context.Context, id string) (Info, error) {
	if s, ok := m.sessions.Load(id); ok {
		return s.Info(), nil
	}
	row, err := m.store.GetSession(ctx, id)
	if err != nil {
		return Info{}, err
	}
	return m.infoOf(row), nil
}

// Resolve finds a session by id or by name. With an owner, sessions of others
// are not found.
func (m *Manager) Resolve(ctx context.Context, owner, ref string) (Info, error) {
	missing := problem.New(problem.NotFound, "there is no session %q", ref).WithHint("ptyd ls lists them")
	if looksLikeID(ref) {
		i, err := m.Get(ctx, ref)
		if err == nil && owner != "" && i.Owner != owner {
			return Info{}, missing
		}
		if problem.Is(err, problem.NotFound) {
			return Info{}, missing
		}
		return i, err
	}
	row, err := m.store.FindByName(ctx, owner, ref)
	if problem.Is(err, problem.NotFound) {
		return Info{}, missing
	}
	if err != nil {
		return Info{}, err
	}
	return m.infoOf(row), nil
}

// List returns sessions in the order of their creation, and the cursor of the
// next page, "" at the end.
func (m *Manager) List(ctx context.Context, f Filter) ([]Info, string, error) {
	rows, next, err := m.store.ListSessions(ctx, f)
	if err != nil {
		return nil, "", err
	}
	infos := make([]Info, 0, len(rows))
	for _, r := range rows {
		i := m.infoOf(r)
		if len(f.States) > 0 && !hasState(f.States, i.State) {
			continue // it moved on since the row was written
		}
		infos = append(infos, i)
	}
	return infos, next, nil
}

func hasState(states []State, s State) bool {
	for _, x := range states {
		if x == s {
			return true
		}
	}
	return false
}

// Rename gives a session another name.
func (m *Manager) Rename(ctx context.Context, id, name string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	return m.edit(ctx, id, func() error { return m.store.RenameSession(ctx, id, name) }, func(r *Record) { r.Name = name })
}

// SetLabels replaces a session's labels.
func (m *Manager) SetLabels(ctx context.Context, id string, labels map[string]string) (Info, error) {
	if err := checkLabels(labels); err != nil {
		return Info{}, err
	}
	return m.edit(ctx, id, func() error { return m.store.SetLabels(ctx, id, labels) }, func(r *Record) { r.Labels = labels })
}

// edit changes a session's row, then its memory; two edits cannot cross.
func (m *Manager) edit(ctx context.Context, id string, row func() error, memory func(*Record)) (Info, error) {
	unlock, err := m.editing.Lock(ctx, id)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	if err := row(); err != nil {
		return Info{}, err
	}
	s, ok := m.sessions.Load(id)
	if !ok {
		s = m.shelf.peek(id)
	}
	if s != nil {
		s.mu.Lock()
		memory(&s.rec)
		s.mu.Unlock()
	}
	i, err := m.Get(ctx, id)
	if err == nil {
		m.hub.Publish(events.Change{Type: "session", ID: id, Owner: i.Owner})
	}
	return i, err
}

// live returns a session that can still be acted upon.
func (m *Manager) live(ctx context.Context, id string) (*Session, error) {
	if s, ok := m.sessions.Load(id); ok {
		select {
		case <-s.done:
		default:
			return s, nil
		}
	} else if _, err := m.store.GetSession(ctx, id); err != nil {
		return nil, err
	}
	return nil, ended(id)
}

func ended(id string) error {
	return problem.New(problem.SessionEnded, "session %s has ended", id)
}

// Resize sets a session's size in columns and rows.
func (m *Manager) Resize(ctx context.Context, id string, cols, rows uint16) error {
	s, err := m.live(ctx, id)
	if err != nil {
		return err
	}
	return s.Resize(cols, rows)
}

// Signal sends a signal, by name ("INT", "SIGINT") or number, to the
// foreground process group of the session's terminal.
func (m *Manager) Signal(ctx context.Context, id, name string) error {
	sig, err := ParseSignal(name)
	if err != nil {
		return err
	}
	s, err := m.live(ctx, id)
	if err != nil {
		return err
	}
	if err := s.Signal(sig); errors.Is(err, ErrEnded) {
		return ended(id)
	} else if errors.Is(err, unix.EPERM) {
		return problem.New(problem.Forbidden, "the foreground processes of session %s belong to another user", id)
	} else if err != nil {
		return fmt.Errorf("signal session %s: %w", id, err)
	}
	return nil
}

// Remove forgets an ended session and its output. With force a living one is
// closed first.
func (m *Manager) Remove(ctx context.Context, id string, force bool) error {
	i, err := m.Get(ctx, id)
	if err != nil {
		return err
	}
	if !i.State.Ended() {
		if !force {
			return problem.New(problem.SessionRunning, "session %s is running", id).WithHint("close it first, or force")
		}
		if _, err := m.Close(ctx, id, -1); err != nil && !problem.Is(err, problem.Forbidden) {
			return err
		}
	}
	if s, ok := m.sessions.Load(id); ok {
		// The row says it ended only when the scribe has been there.
		if err := m.scribe.wait(ctx, s); err != nil {
			return err
		}
	}
	if err := m.store.DeleteSession(context.WithoutCancel(ctx), id); err != nil {
		return err
	}
	failpoint.Hit("ptymgr.remove.deleted")
	m.unkeep(id, i.Owner)
	return nil
}

// unkeep lets go of what is kept of a session whose row is gone: descriptors,
// memory and files.
func (m *Manager) unkeep(id, owner string) {
	if s, ok := m.sessions.LoadAndDelete(id); ok {
		if err := m.vault.Drop(s.kept); err != nil {
			m.log.Warn("drop a session's descriptors", zap.String("session", id), zap.Error(err))
		}
		s.putAway()
	}
	m.archive.remove(id)
	m.shelf.drop(id)
	m.hub.Publish(events.Change{Type: "session", ID: id, Owner: owner})
}

// Stats are counts for the metrics.
type Stats struct {
	Running           int
	Kept              int // sessions whose output is kept here
	Viewers           int
	BytesIn, BytesOut uint64
	ReadErrors        uint64
	RingReused        uint64 // slots of output used again for want of memory
	RingLost          uint64 // bytes of output dropped for want of memory
	MaxLag            uint64 // bytes that the slowest viewer is behind
	Archive           Archive
}

// Stats counts.
func (m *Manager) Stats() Stats {
	st := Stats{Running: int(m.running.Load()), Viewers: int(m.viewers.Load()), BytesIn: m.bytesIn.Load(),
		BytesOut: m.loop.bytesOut.Load(), ReadErrors: m.loop.readErrs.Load(), Archive: m.archive.stats()}
	m.sessions.Range(func(_ string, s *Session) bool {
		st.Kept++
		a, b := s.ring.Shortage()
		st.RingReused += a
		st.RingLost += b
		if fs := s.followers.Load(); fs != nil {
			h := s.ring.Head()
			for _, f := range *fs {
				if p := f.Position(); p < h {
					st.MaxLag = max(st.MaxLag, h-p)
				}
			}
		}
		return true
	})
	return st
}

// Abandon says that the sessions that end from now on are lost, and why: they
// did not end by themselves, and nobody asked for it.
func (m *Manager) Abandon(why string) { m.abandoned.Store(&why) }

// refuse begins the end: nothing starts from now on. It returns when the
// creations in flight are through, false where the end has begun before.
func (m *Manager) refuse() bool {
	m.mu.Lock()
	was := m.shut
	m.shut = true
	m.mu.Unlock()
	if was {
		return false
	}
	m.busy.Wait()
	close(m.stop)
	return true
}

// Shutdown ends all sessions in order and all goroutines. Nothing starts once
// it has begun. When ctx ends, what is left is killed at once.
func (m *Manager) Shutdown(ctx context.Context) error {
	if !m.refuse() {
		return nil
	}
	var wg sync.WaitGroup
	m.sessions.Range(func(id string, s *Session) bool {
		wg.Go(func() {
			if _, err := m.Close(ctx, id, -1); err != nil {
				s.logger().Warn("end a session", zap.Error(err))
			}
		})
		return true
	})
	wg.Wait()
	return m.quit(true)
}

// Leave ends all goroutines and leaves the sessions to the next process.
// Nothing starts once it has begun.
func (m *Manager) Leave() error {
	if !m.refuse() {
		return nil
	}
	return m.quit(false)
}

// quit ends the goroutines. The rings' memory goes with the process, or stays
// with the vault; with last, what is not on the disk yet is written first.
func (m *Manager) quit(last bool) error {
	m.loop.stop()
	m.wg.Wait()
	err := m.scribe.stop()
	m.groups.leave()
	m.archive.stop(last)
	m.shelf.close()
	m.sessions.Range(func(_ string, s *Session) bool {
		s.closeMaster()
		s.ring.Close()
		return true
	})
	return err
}

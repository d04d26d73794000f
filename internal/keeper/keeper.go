package keeper

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/notifyproto"
)

// goal is what the keeper is about.
type goal int

const (
	goalServe goal = iota
	goalLeave      // go and leave the sessions to the service manager's store
	goalEnd        // end all sessions and go
)

// statusFailed is the exit status of a keeper that could not begin.
const statusFailed = 125

// keeper is the state of Run. Only Run's goroutine touches it; other
// goroutines send functions to calls.
type keeper struct {
	o   Options
	t   times
	log *zap.Logger

	server *notifyproto.Server
	exits  *notifyproto.Exits
	event  int      // the eventfd that tells the worker of a new record
	null   *os.File // the worker's standard input
	store  store
	up     *upward // nil: no service manager
	above  bool    // the service manager keeps descriptors too

	started  time.Time // when the first image began
	origin   string    // the path of that image, as it was started
	upgrades int       // how often the keeper executed itself anew
	image    image
	w        *worker // nil: none lives
	gen      uint64  // workers started
	restarts uint64  // of those, the ones that followed a death nobody had asked for
	trial    string  // the new binary, from the request until its worker is ready
	failed   string  // why the last upgrade failed, until the next is asked for
	backoff  time.Duration

	goal     goal
	hurried  int    // signals after the one that set the goal
	deciding func() // not nil while somebody is asked about a goal; ends the question
	sweeping bool
	done     bool
	code     int

	tty     bool // there was a controlling terminal
	stay    bool
	crowded bool // the record of ends is full
	due     deadlines
	helpers map[int]func(ended) // children that are not sessions' processes

	ctx     context.Context // ends with Run
	arrived chan struct{}   // datagrams
	died    chan os.Signal  // SIGCHLD
	signals caught          // the others
	calls   chan func()     // to do in Run's goroutine
	wg      sync.WaitGroup  // all goroutines that Run started
}

// Run starts a worker and keeps it, and what it stores, until told to stop. It
// returns the process's exit status. It takes over the process: its signals,
// its children, and the calling goroutine's thread, for ever.
func Run(ctx context.Context, o Options) int {
	// A worker is told of the end of the thread that started it. So that
	// thread never ends before the process, and it is the one that executes
	// the keeper anew, because execve ends all others.
	runtime.LockOSThread()
	ctx, cancel := context.WithCancel(ctx)
	k := &keeper{
		o: o, t: defaultTimes, log: o.Log, ctx: ctx, event: -1, helpers: map[int]func(ended){},
		arrived: make(chan struct{}, 1), died: make(chan os.Signal, 1), signals: early, calls: make(chan func()),
	}
	if o.times != nil {
		k.t = *o.times
	}
	k.t.trial = failpoint.Duration("keeper.trial", k.t.trial)
	if k.o.unit == nil {
		k.o.unit = unitName
	}
	if k.log == nil {
		k.log = zap.NewNop()
	}
	stop := k.catchSignals()
	defer stop()
	defer k.close(cancel)
	if err := k.begin(); err != nil {
		k.log.Error("the keeper can't begin", zap.Error(err))
		return statusFailed
	}
	k.loop(ctx.Done())
	if k.goal == goalLeave {
		flush, cancel := context.WithTimeout(context.Background(), k.t.flush)
		k.up.flush(flush)
		cancel()
	}
	k.log.Info("keeper ends", zap.Int("status", k.code))
	return k.code
}

// begin makes everything that a worker needs, or takes it over from the
// keeper's former self or from the service manager.
func (k *keeper) begin() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	// Nobody of the same user reads its memory or takes its descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shut out tracers: %w", err)
	}
	keepFromChildren()
	var err error
	if k.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("open standard input: %w", err)
	}
	k.started, k.origin = time.Now(), k.o.Binary
	k.image = newImage(k.o.Binary)
	k.store.max = storeMax(k.o.FDStoreMax)
	k.beginUpward()
	st, err := resumed()
	if err != nil {
		return err
	}
	if st != nil {
		err = k.resume(st)
	} else {
		err = k.beginFresh()
	}
	if err != nil {
		return err
	}
	k.wg.Go(func() { k.server.Watch(func() { poke(k.arrived) }) })
	if st == nil {
		k.start()
	}
	return nil
}

// keepFromChildren marks all that this process has inherited: a session must
// not hold open what the keeper's parent forgot to close.
func keepFromChildren() {
	if unix.CloseRange(firstFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	open, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstFD {
			unix.CloseOnExec(fd)
		}
	}
}

func (k *keeper) beginFresh() error {
	k.tty = ttyThere()
	k.takeStored()
	var err error
	if k.exits == nil {
		if k.exits, err = notifyproto.NewExits(); err != nil {
			return err
		}
		k.up.send(notifyproto.Encode("FDSTORE=1", "FDNAME="+nameExits, "FDPOLL=0"), k.exits.FD())
	}
	if k.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("open eventfd: %w", err)
	}
	k.server, err = notifyproto.Listen(filepath.Join(k.o.StateDir, "notify"))
	return err
}

// beginUpward connects to the service manager, if there is one.
func (k *keeper) beginUpward() {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	var err error
	if k.up, err = dialUp(path, k.log); err != nil {
		k.log.Error("the service manager can't be told anything: sessions end with the keeper", zap.Error(err))
		return
	}
	most := k.o.FDStoreMax
	if n, err := strconv.Atoi(os.Getenv("FDSTORE")); err == nil { // systemd 254 and later
		most = n
	}
	if k.above = most > 0; k.above {
		k.store.max = min(k.store.max, max(0, most-1)) // less the record of ends
	} else {
		k.log.Warn("the service manager keeps no descriptors, as far as is known: sessions end with the keeper (see FileDescriptorStoreMax)")
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if _, ok := pingEvery(); ok {
			k.due.in(duePing, 0)
		}
	}
}

// pingEvery is half of what the service manager waits for a sign of life.
func pingEvery() (time.Duration, bool) {
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	return time.Duration(us) * time.Microsecond / 2, err == nil && us > 0
}

// loop is the keeper's life. It looks at everything at every turn, so no wake
// is more than a hint, and one that is late judges nobody: notices are taken
// before deadlines are looked at.
func (k *keeper) loop(cancelled <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		k.receive()
		k.reap()
		k.overdue()
		k.sweepDone()
		if k.done {
			return
		}
		timer.Stop()
		if wait, ok := k.due.next(time.Now()); ok {
			timer.Reset(wait)
		}
		select {
		case <-k.arrived:
		case <-k.died:
		case <-timer.C:
		case <-k.signals.reload:
			k.hangUp()
		case s := <-k.signals.stop:
			k.stop(s.String())
		case f := <-k.calls:
			f()
		case <-cancelled:
			cancelled = nil
			if k.goal == goalServe {
				k.end("cancelled")
			}
		}
	}
}

// overdue does what has come to its time.
func (k *keeper) overdue() {
	for !k.done {
		what, ok := k.due.take(time.Now())
		if !ok {
			return
		}
		switch what {
		case dueReady:
			k.abort(fmt.Sprintf("not ready within %v", time.Since(k.w.started).Round(time.Millisecond)))
		case dueSign:
			k.abort(fmt.Sprintf("no sign of life for %v", k.o.WatchdogEvery))
		case dueGone:
			k.w.killed = "did not go in time"
			k.signal(unix.SIGKILL)
		case dueAborted:
			k.signal(unix.SIGKILL)
		case dueStart:
			k.start()
		case dueReap: // reap looks at every turn
		case duePing:
			k.up.send(notifyproto.Encode("WATCHDOG=1"))
			if every, ok := pingEvery(); ok {
				k.due.in(duePing, every)
			}
		case dueReexec:
			k.reexec()
		case dueSweep:
			k.sweepKill()
		case dueGiveUp:
			k.log.Error("processes of sessions could not be killed and are left")
			k.done = true
		case dueJob:
			k.jobIs("", "no answer")
		}
	}
}

// call has f done in Run's goroutine, or not at all when that ends first.
func (k *keeper) call(f func()) {
	select {
	case k.calls <- f:
	case <-k.ctx.Done():
	}
}

// close ends what begin started. It waits for all goroutines.
func (k *keeper) close(cancel func()) {
	cancel()
	k.up.close()
	if k.server != nil {
		_ = k.server.Close()
	}
	k.wg.Wait()
	k.store.close()
	if k.exits != nil {
		_ = k.exits.Close()
	}
	if k.event >= 0 {
		_ = unix.Close(k.event)
	}
	if k.null != nil {
		_ = k.null.Close()
	}
}

// catchSignals takes the process's signals over.
func (k *keeper) catchSignals() (stop func()) {
	k.stay = k.o.Stay || signal.Ignored(unix.SIGHUP)
	signal.Notify(k.died, unix.SIGCHLD)
	k.signals.notify()
	// A log that nobody reads any more must not end the keeper.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, unix.SIGPIPE)
	return func() {
		signal.Stop(k.died)
		signal.Stop(k.signals.reload)
		signal.Stop(k.signals.stop)
		signal.Stop(pipe)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

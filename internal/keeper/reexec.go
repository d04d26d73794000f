package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// errSignalled: a signal has come that the old image must still look at.
var errSignalled = errors.New("signalled meanwhile")

// reexecAgain is how long the keeper waits for the service manager to take its
// notices: they are in memory that execve takes away.
const reexecAgain = 20 * time.Millisecond

// reexec executes the binary of the worker in the keeper's place. Process id,
// children, the socket with what waits in it, and all descriptors stay.
//
// Where it fails the keeper goes on as it is: an old keeper with a new worker
// is what an upgrade looks like in its middle anyway.
func (k *keeper) reexec() {
	if k.up.pending() {
		k.due.in(dueReexec, reexecAgain)
		return
	}
	if k.w == nil || !k.w.ready || k.deciding != nil || len(k.helpers) > 0 {
		k.due.in(dueReexec, reexecAgain)
		return
	}
	if err := k.execNew(); errors.Is(err, errSignalled) {
		k.due.in(dueReexec, reexecAgain)
	} else if err != nil {
		k.log.Error("the keeper could not execute the new binary and goes on as the old one", zap.Error(err))
		k.failed = "the worker is new, the keeper is the old one: " + err.Error()
	}
}

func (k *keeper) execNew() error {
	if err := executable(k.image.path); err != nil {
		return err
	}
	s := &state{
		binary: k.image.path, worker: k.w.pid, gen: k.gen, restarts: k.restarts, notify: -1, notifyPath: k.server.Path(),
		exits: k.exits.FD(), event: k.event, lock: -1, stay: k.stay, tty: k.tty, fds: k.store.all,
		started: k.started.UnixMicro(), origin: k.origin, upgrades: k.upgrades + 1,
	}
	if err := k.server.Control(func(fd int) { s.notify = fd }); err != nil {
		return err
	}
	if k.o.Lock != nil {
		s.lock = int(k.o.Lock.Fd())
	}
	fd, err := unix.MemfdCreate("ptyd-keeper", 0)
	if err != nil {
		return fmt.Errorf("create memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "state")
	defer f.Close()
	if err := s.write(f); err != nil {
		return fmt.Errorf("write the keeper's state: %w", err)
	}
	argv := k.o.Self
	if argv == nil {
		argv = os.Args
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LISTEN_") {
			env = append(env, v)
		}
	}
	env = append(env, stateVar+"="+strconv.Itoa(fd))

	k.log.Info("keeper executes the new binary", zap.String("binary", k.image.path))
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	s.all(func(fd int) { setCloseOnExec(fd, false) })
	// A signal between execve and the new image's handlers would end the
	// process. Ignored it is lost, for about a millisecond.
	restore := ignoreSignals()
	if err = errSignalled; len(k.signals.reload)+len(k.signals.stop) == 0 {
		err = syscall.Exec(k.image.path, argv, env)
	}
	restore()
	s.all(func(fd int) { setCloseOnExec(fd, true) })
	setLimit(limit) // Exec has lowered it
	return &os.PathError{Op: "execute", Path: k.image.path, Err: err}
}

// resume goes on with what the keeper's former self knew.
func (k *keeper) resume(s *state) error {
	var err error
	if k.exits, err = notifyproto.OpenExits(s.exits); err != nil {
		return err
	}
	if k.server, err = notifyproto.FromFD(s.notify, s.notifyPath); err != nil {
		return err
	}
	k.image = newImage(s.binary) // what Options say is from before the upgrade
	k.event = s.event
	k.gen, k.restarts = s.gen, s.restarts
	k.stay, k.tty = s.stay, s.tty
	k.upgrades = s.upgrades
	if s.started > 0 {
		k.started = time.UnixMicro(s.started)
	}
	if k.origin = s.origin; k.origin == "" { // a release that did not say
		k.origin = s.binary
	}
	for _, h := range s.fds {
		k.store.all = append(k.store.all, h)
		k.store.names += len(h.name) + 1
	}
	k.w = &worker{pid: s.worker, ready: true, started: time.Now()}
	if k.o.WatchdogEvery > 0 {
		k.due.in(dueSign, k.o.WatchdogEvery)
	}
	own, _ := os.Readlink(ownImage)
	k.log.Info("keeper goes on with its new binary", zap.String("binary", own), zap.Int("worker", s.worker), zap.Uint64("generation", s.gen), zap.Int("descriptors", len(s.fds)))
	return nil
}

func setCloseOnExec(fd int, on bool) {
	flags := 0
	if on {
		flags = unix.FD_CLOEXEC
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags)
}

// signalsCaught are those that mean something to a keeper.
var signalsCaught = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM}

// caught are the channels of those signals: two, because a flood of the one
// must not fill the place of the other.
type caught struct {
	reload chan os.Signal // SIGHUP, of which one is as good as many
	stop   chan os.Signal
}

func (c caught) notify() {
	signal.Notify(c.reload, unix.SIGHUP)
	signal.Notify(c.stop, unix.SIGINT, unix.SIGTERM)
}

// early gets the signals of an image that was executed in a keeper's place from
// its first moments on, long before Run. Until the runtime is up they are
// ignored: execve keeps that, but a handler it can't keep, and what is blocked
// the runtime unblocks before it has handlers.
var early = func() caught {
	c := caught{reload: make(chan os.Signal, 1), stop: make(chan os.Signal, 16)}
	if os.Getenv(stateVar) != "" {
		c.notify()
	}
	return c
}()

// sigaction is the kernel's, opaque but for its first word: the handler.
type sigaction [8]uintptr

// ignoreSignals has the kernel ignore them, and restore undoes it. It bypasses
// package signal, whose Ignore has a moment in which a signal that is being
// delivered ends the process.
func ignoreSignals() (restore func()) {
	const ignore = 1 // SIG_IGN
	set := func(s os.Signal, to, old *sigaction) {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s.(syscall.Signal)), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	}
	old := make([]sigaction, len(signalsCaught))
	for i, s := range signalsCaught {
		set(s, &sigaction{ignore}, &old[i])
	}
	return func() {
		for i, s := range signalsCaught {
			set(s, &old[i], nil)
		}
	}
}

// setLimit bypasses package syscall, which would have children inherit it.
func setLimit(limit unix.Rlimit) {
	_, _, _ = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
}

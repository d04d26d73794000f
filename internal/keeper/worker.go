package keeper

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// firstFD is where LISTEN_FDS begins (sd_listen_fds(3)).
const firstFD = 3

// asked is what a worker was told to do.
type asked int

const (
	askedNothing asked = iota
	askedGo            // go, sessions are kept: another worker follows, or the service manager's next keeper
	askedEnd           // end all sessions and go
)

// worker is the process that lives now.
type worker struct {
	pid     int
	ready   bool
	asked   asked
	started time.Time // of a start that is not READY yet
	killed  string    // why the keeper killed it
}

// start starts a worker. The calling thread is the one whose end the worker is
// told of by SIGUSR2, which is why the keeper never leaves it.
func (k *keeper) start() {
	k.due.clear(dueStart)
	k.gen++
	path := k.image.exec()
	if k.trial != "" {
		path = k.trial
	}
	files := []uintptr{k.null.Fd(), 1, 2}
	var names []string
	pass := func(name string, fd int) {
		files = append(files, uintptr(fd))
		names = append(names, name)
	}
	for _, h := range k.store.all {
		pass(h.name, h.fd)
	}
	pass(nameExits, k.exits.FD())
	pass(nameEvent, k.event)
	if k.o.Lock != nil {
		pass(nameLock, int(k.o.Lock.Fd()))
	}
	argv := append([]string{"ptyd"}, k.o.Args...)
	attr := &syscall.ProcAttr{Env: k.workerEnv(names), Files: files, Sys: &syscall.SysProcAttr{
		Setpgid:   true, // Ctrl-C is for the keeper: it asks first
		Pdeathsig: syscall.SIGUSR2,
	}}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil && k.trial == "" && path != ownImage {
		// Better the keeper's version than none: the sessions are waiting.
		k.log.Error("the worker's binary can't be executed; the keeper's own is", zap.String("binary", path), zap.Error(err))
		path = ownImage
		pid, err = syscall.ForkExec(path, argv, attr)
	}
	if err != nil {
		k.log.Error("the worker can't be started", zap.String("binary", path), zap.Error(err))
		k.neverReady("start: "+err.Error(), 126)
		return
	}
	k.w = &worker{pid: pid, started: time.Now()}
	within := k.t.start
	if k.trial != "" {
		within = k.t.trial
	}
	k.due.in(dueReady, within)
	k.log.Info("worker started", zap.Int("pid", pid), zap.Uint64("generation", k.gen), zap.String("binary", path), zap.Int("descriptors", len(k.store.all)))
}

// protocolVars are never inherited: they speak of the keeper's own manager.
var protocolVars = []string{
	"NOTIFY_SOCKET=", "LISTEN_FDS=", "LISTEN_PID=", "LISTEN_PIDFDID=", "LISTEN_FDNAMES=", "WATCHDOG_USEC=", "WATCHDOG_PID=", "FDSTORE=",
	"PTYD_KEEPER=", "PTYD_GENERATION=", "PTYD_RESTARTS=", "PTYD_FDSTORE_MAX=", "PTYD_UPGRADE_FAILED=", "PTYD_SUPERVISED=", stateVar + "=",
}

// CleanEnv returns env without the variables of the protocol: what a program
// that is no worker may see.
func CleanEnv(env []string) []string {
	var out []string
next:
	for _, v := range env {
		for _, p := range protocolVars {
			if strings.HasPrefix(v, p) {
				continue next
			}
		}
		out = append(out, v)
	}
	return out
}

func (k *keeper) workerEnv(names []string) []string {
	env := k.o.Env
	if env == nil {
		env = os.Environ()
	}
	env = append(CleanEnv(env),
		"NOTIFY_SOCKET="+k.server.Path(),
		"LISTEN_FDS="+strconv.Itoa(len(names)),
		"LISTEN_FDNAMES="+strings.Join(names, ":"),
		"PTYD_KEEPER="+strconv.Itoa(os.Getpid()),
		"PTYD_GENERATION="+strconv.FormatUint(k.gen, 10),
		"PTYD_RESTARTS="+strconv.FormatUint(k.restarts, 10),
		"PTYD_FDSTORE_MAX="+strconv.Itoa(max(1, k.store.max-sharedFDs)),
	)
	if k.o.WatchdogEvery > 0 {
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(k.o.WatchdogEvery.Microseconds(), 10))
	}
	if k.above {
		env = append(env, "PTYD_SUPERVISED=1")
	}
	if k.failed != "" {
		env = append(env, "PTYD_UPGRADE_FAILED="+k.failed)
	}
	return env
}

// workerEnded decides what follows.
func (k *keeper) workerEnded(e ended) {
	w := k.w
	k.w = nil
	k.due.clear(dueReady, dueGone, dueAborted, dueSign)
	how := e.String()
	if w.killed != "" {
		how = w.killed + "; " + how
	}
	log := k.log.Warn
	if w.asked != askedNothing {
		log = k.log.Info
	}
	log("worker ended", zap.Int("pid", w.pid), zap.String("how", how), zap.Bool("asked", w.asked != askedNothing))
	switch {
	case k.goal == goalEnd:
		k.code = e.exitCode()
		k.sweep()
	case k.goal == goalLeave:
		k.done = true
	case w.asked != askedNothing: // an upgrade or a restart
		k.start()
	case w.ready:
		k.restarts++
		k.start()
	case k.gen == 1 && !e.signalled() && w.killed == "":
		// It has said itself what is wrong, and nothing runs yet.
		k.code, k.done = e.exitCode(), true
	default:
		k.neverReady(how, e.exitCode())
	}
}

// neverReady goes on after a worker that did not get to READY: back to the old
// binary, or the same again after a while.
func (k *keeper) neverReady(how string, code int) {
	switch {
	case k.goal == goalEnd:
		k.code = code
		k.sweep()
	case k.goal == goalLeave:
		k.done = true
	case k.trial != "":
		k.rollBack(how)
	case k.gen == 1 && code == 126: // not even started
		k.code, k.done = code, true
	default:
		k.restarts++
		k.backoff = min(max(2*k.backoff, k.t.backoffMin), k.t.backoffMax)
		k.due.in(dueStart, k.backoff)
		k.log.Warn("the worker was never ready and is started again", zap.Duration("after", k.backoff))
	}
}

// ask sends the worker sig and gives it time to go.
func (k *keeper) ask(what asked, sig unix.Signal, within time.Duration) {
	k.w.asked = what
	k.due.clear(dueReady, dueSign)
	k.due.in(dueGone, within)
	k.signal(sig)
}

// signal sends the worker sig. Its id is its own until the keeper has buried it.
func (k *keeper) signal(sig unix.Signal) {
	if err := unix.Kill(k.w.pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		k.log.Error("the worker can't be signalled", zap.Error(err))
	}
}

// abort ends a worker that hangs: SIGABRT, so that it says where, then SIGKILL.
func (k *keeper) abort(why string) {
	k.log.Error("the worker hangs and is replaced", zap.Int("pid", k.w.pid), zap.String("why", why))
	k.w.killed = why
	k.due.clear(dueReady, dueSign)
	k.due.in(dueAborted, k.t.abort)
	k.signal(unix.SIGABRT)
}

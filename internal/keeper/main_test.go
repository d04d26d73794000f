package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// The test binary is also the keeper and the worker of the tests: real
// processes, which the tests signal, kill and replace.
const (
	roleVar   = "KEEPER_TEST_ROLE"
	configVar = "KEEPER_TEST_CONFIG"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "keeper":
		os.Exit(keeperMain())
	case "worker":
		os.Exit(workerMain())
	}
	// Under nohup or a shell's & these are ignored, and a keeper that inherits
	// that keeps its sessions when its terminal closes. Caught, they are not.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	goleak.VerifyTestMain(m)
}

// config is what a test wants of its keeper. It travels in the environment.
type config struct {
	Dir      string // state directory; also has ctl.sock, the test's end
	Watchdog time.Duration
	FDMax    int
	Stay     bool
	Confirm  bool   // ask by a file: confirm.asked appears, confirm.yes or confirm.no answers
	Unit     string // of a service manager
	Binary   string
	Args     []string

	Start, Stop, End, Abort, BackoffMin, BackoffMax, Sweep, Job time.Duration
}

// statusLeak is the exit status of a keeper whose goroutines outlived Run.
const statusLeak = 97

func keeperMain() int {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(configVar)), &c); err != nil {
		panic(err)
	}
	logFile, err := os.OpenFile(c.Dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(logFile), zap.DebugLevel))
	lock, again := Resumed()
	if !again {
		if lock, err = os.OpenFile(c.Dir+"/lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			panic(err)
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			panic(err)
		}
	}
	t := defaultTimes
	set := func(to *time.Duration, d time.Duration) {
		if d > 0 {
			*to = d
		}
	}
	set(&t.start, c.Start)
	set(&t.trial, c.Start)
	set(&t.stop, c.Stop)
	set(&t.end, c.End)
	set(&t.abort, c.Abort)
	set(&t.backoffMin, c.BackoffMin)
	set(&t.backoffMax, c.BackoffMax)
	set(&t.sweep, c.Sweep)
	set(&t.job, c.Job)
	o := Options{
		Version: "test", Binary: c.Binary, Args: append([]string{"worker"}, c.Args...), StateDir: c.Dir, Lock: lock, Log: log,
		Env:           append(withoutVar(os.Environ(), roleVar), roleVar+"=worker"),
		WatchdogEvery: c.Watchdog, FDStoreMax: c.FDMax, Stay: c.Stay, times: &t,
	}
	if c.Unit != "" {
		o.unit = func() (string, bool) { return c.Unit, false }
	}
	if c.Confirm {
		o.Confirm = func(ctx context.Context, sessions int) bool { return sessions == 1 && confirmByFile(ctx, c.Dir) }
	}
	code := Run(context.Background(), o)
	if err := goleak.Find(); err != nil {
		log.Error("leak", zap.Error(err))
		return statusLeak
	}
	return code
}

func withoutVar(env []string, name string) []string {
	var out []string
	for _, v := range env {
		if !strings.HasPrefix(v, name+"=") {
			out = append(out, v)
		}
	}
	return out
}

func confirmByFile(ctx context.Context, dir string) bool {
	_ = os.WriteFile(dir+"/confirm.asked", nil, 0o600)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		for _, answer := range []string{"yes", "no"} {
			if os.Remove(dir+"/confirm."+answer) == nil {
				return answer == "yes"
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// hello is what a worker tells when it has come up.
type hello struct {
	PID, Gen, Restarts, Keeper, FDMax int
	PPID                              int
	Failed, Exe, Watchdog             string
	Args, Names                       []string
	Leaked                            []string // what it inherited beyond what it was told of
	Lock                              bool     // the lock that it got is held
	Supervised                        bool
}

// order is a test's command to a worker, and reply its answer or, with Event,
// what happened meanwhile.
type order struct {
	Do   string
	Args []string
}
type reply struct {
	Event string
	Err   string
	Out   []string
}

func workerMain() int {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(configVar)), &c); err != nil {
		panic(err)
	}
	if os.Getenv("PTYD_KEEPER") != strconv.Itoa(os.Getppid()) {
		return 4 // the keeper died meanwhile
	}
	w := &testWorker{fds: map[string][]int{}, on: map[string]string{"SIGTERM": "exit 0", "SIGINT": "exit 0", "SIGUSR2": "exit 0"}}
	return w.run(c)
}

type testWorker struct {
	names []string
	fds   map[string][]int
	conn  *notifyproto.Conn
	exits *notifyproto.Exits
	out   *json.Encoder
	on    map[string]string
}

func (w *testWorker) run(c config) int {
	sigs := make(chan os.Signal, 16)
	signal.Notify(sigs, unix.SIGINT, unix.SIGTERM, unix.SIGUSR2)
	hups := make(chan os.Signal, 1) // a flood of these must not drop the others
	signal.Notify(hups, unix.SIGHUP)
	n, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if n > 0 {
		w.names = strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	}
	if len(w.names) != n {
		panic(fmt.Sprintf("%d descriptors and names %q", n, w.names))
	}
	h := hello{PID: os.Getpid(), PPID: os.Getppid(), Names: w.names, Failed: os.Getenv("PTYD_UPGRADE_FAILED"), Watchdog: os.Getenv("WATCHDOG_USEC"), Args: os.Args}
	h.Exe, _ = os.Readlink("/proc/self/exe")
	h.Supervised = os.Getenv("PTYD_SUPERVISED") != ""
	for v, to := range map[string]*int{"PTYD_GENERATION": &h.Gen, "PTYD_RESTARTS": &h.Restarts, "PTYD_KEEPER": &h.Keeper, "PTYD_FDSTORE_MAX": &h.FDMax} {
		*to, _ = strconv.Atoi(os.Getenv(v))
	}
	for i, name := range w.names {
		unix.CloseOnExec(firstFD + i)
		w.fds[name] = append(w.fds[name], firstFD+i)
	}
	for fd := firstFD + n; fd < firstFD+n+64; fd++ {
		link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && !strings.Contains(link, "anon_inode") && !strings.HasPrefix(link, "/sys/fs/cgroup/") { // the runtime's own
			h.Leaked = append(h.Leaked, strconv.Itoa(fd)+" "+link)
		}
	}
	if f, err := os.Open(c.Dir + "/lock"); err == nil {
		h.Lock = len(w.fds[nameLock]) == 1 && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK &&
			unix.Flock(w.fds[nameLock][0], unix.LOCK_EX|unix.LOCK_NB) == nil
		_ = f.Close()
	}
	var err error
	if w.exits, err = notifyproto.OpenExits(w.fds[nameExits][0]); err != nil {
		panic(err)
	}
	if w.conn, err = notifyproto.Dial(os.Getenv("NOTIFY_SOCKET")); err != nil {
		panic(err)
	}
	ctl, err := net.Dial("unix", c.Dir+"/ctl.sock")
	if err != nil {
		return 5 // the test is over
	}
	w.out = json.NewEncoder(ctl)
	_ = w.out.Encode(h)
	orders := make(chan order)
	go func() {
		in := bufio.NewScanner(ctl)
		for in.Scan() {
			var o order
			if err := json.Unmarshal(in.Bytes(), &o); err != nil {
				panic(err)
			}
			orders <- o
		}
		close(orders)
	}()
	var pings <-chan time.Time
	for {
		select {
		case o, ok := <-orders:
			if !ok {
				return 6
			}
			if o.Do == "pings" {
				d, _ := time.ParseDuration(o.Args[0])
				pings = time.Tick(d)
				_ = w.out.Encode(reply{})
				continue
			}
			if o.Do == "hang" {
				select {}
			}
			out, err := w.do(o)
			r := reply{Out: out}
			if err != nil {
				r.Err = err.Error()
			}
			_ = w.out.Encode(r)
		case <-pings:
			_ = w.conn.Send(notifyproto.Encode("WATCHDOG=1"))
		case <-hups:
			_ = w.out.Encode(reply{Event: "SIGHUP"})
		case s := <-sigs:
			name := unix.SignalName(s.(syscall.Signal))
			_ = w.out.Encode(reply{Event: name})
			what, arg, _ := strings.Cut(w.on[name], " ")
			n, _ := strconv.Atoi(arg)
			switch what {
			case "exit":
				return n
			case "kill":
				_ = unix.Kill(os.Getpid(), unix.Signal(n))
			}
		}
	}
}

func (w *testWorker) do(o order) (out []string, err error) {
	a := o.Args
	switch o.Do {
	case "on": // signal, reaction
		w.on[a[0]] = a[1]
	case "send":
		return nil, w.conn.Send([]byte(strings.Join(a, "\n")))
	case "store": // name, contents: one memfd each, in one datagram
		var fds []int
		for _, text := range a[1:] {
			fd, err := unix.MemfdCreate(a[0], unix.MFD_CLOEXEC)
			if err != nil {
				return nil, err
			}
			_, _ = unix.Write(fd, []byte(text))
			fds = append(fds, fd)
		}
		w.fds[a[0]] = append(w.fds[a[0]], fds...)
		return nil, w.conn.Send(notifyproto.Encode("FDSTORE=1", "FDNAME="+a[0], "FDPOLL=0"), fds...)
	case "again": // name: store once more what it was given
		return nil, w.conn.Send(notifyproto.Encode("FDSTORE=1", "FDNAME="+a[0], "FDPOLL=0"), w.fds[a[0]]...)
	case "read": // name
		for _, fd := range w.fds[a[0]] {
			b := make([]byte, 100)
			n, err := unix.Pread(fd, b, 0)
			if err != nil {
				return nil, err
			}
			out = append(out, string(b[:n]))
		}
	case "barrier":
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return nil, w.conn.Barrier(ctx)
	case "ask":
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		answer, err := w.conn.Ask(ctx, []byte(a[0]))
		return []string{answer}, err
	case "spawn": // argv: a child of the keeper
		pid, err := syscall.ForkExec(a[0], a, &syscall.ProcAttr{
			Env:   os.Environ(),
			Files: []uintptr{0, 1, 2},
			Sys:   &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_PARENT},
		})
		return []string{strconv.Itoa(pid)}, err
	case "next": // the next record, consumed
		r, ok := w.exits.Next()
		if !ok {
			return nil, errors.New("none")
		}
		w.exits.Consume()
		return []string{strconv.Itoa(int(r.PID)), strconv.Itoa(int(r.Code)), strconv.Itoa(int(r.Status))}, nil
	case "event": // wait for the eventfd
		fd := w.fds[nameEvent][0]
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20000); err != nil {
			return nil, err
		}
		var b [8]byte
		_, err := unix.Read(fd, b[:])
		return nil, err
	case "exit":
		n, _ := strconv.Atoi(a[0])
		os.Exit(n)
	default:
		return nil, fmt.Errorf("unknown order %q", o.Do)
	}
	return out, nil
}

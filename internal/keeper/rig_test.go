package keeper

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// patience bounds every wait of a test. It is long, because the machine may be
// busy, and never slept through.
const patience = 20 * time.Second

// rig is a keeper process and the test's end of its workers.
type rig struct {
	t       *testing.T
	c       config
	cmd     *exec.Cmd
	ln      net.Listener
	workers chan *remote
	exited  chan struct{} // closed when the keeper is gone
	wg      sync.WaitGroup
}

// remote is one worker, seen from the test.
type remote struct {
	hello
	t       *testing.T
	conn    net.Conn
	replies chan reply
	events  chan string // closed at its death
}

// newRig starts a keeper. prepare may change its command.
func newRig(t *testing.T, c config, prepare ...func(*exec.Cmd)) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "keeper") // shorter than t.TempDir: socket addresses
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c.Dir = dir
	ln, err := net.Listen("unix", dir+"/ctl.sock")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, c: c, ln: ln, workers: make(chan *remote, 1000), exited: make(chan struct{})}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		if t.Failed() {
			select {
			case <-r.exited:
				t.Logf("the keeper ended: %v", r.cmd.ProcessState)
			default:
			}
			b, _ := os.ReadFile(dir + "/log")
			said, _ := os.ReadFile(dir + "/stderr")
			t.Logf("keeper's log:\n%s\nstandard error:\n%s", b, said)
		}
		_ = ln.Close()
		r.wg.Wait()
	})
	r.launch(prepare...)
	return r
}

// launch starts the keeper's process; it is ended with the test.
func (r *rig) launch(prepare ...func(*exec.Cmd)) {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	if r.c.Binary == "" {
		r.c.Binary = self
	}
	text, _ := json.Marshal(r.c)
	r.cmd = exec.Command(self, "serve")
	stderr, err := os.OpenFile(r.c.Dir+"/stderr", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer stderr.Close()
	r.cmd.Stdout, r.cmd.Stderr = stderr, stderr
	r.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", roleVar+"=keeper", configVar+"="+string(text))
	for _, p := range prepare {
		p(r.cmd)
	}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	cmd, exited := r.cmd, make(chan struct{})
	r.exited = exited
	r.wg.Go(func() { _ = cmd.Wait(); close(exited) })
	r.t.Cleanup(func() {
		select {
		case <-exited:
			return
		default:
		}
		// Its children first: killed alone, it would leave them to nobody.
		for _, pid := range childrenOf(cmd.Process.Pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = cmd.Process.Kill()
		<-exited
	})
}

func (r *rig) accept() {
	for {
		c, err := r.ln.Accept()
		if err != nil {
			return
		}
		in := bufio.NewScanner(c)
		in.Buffer(nil, 1<<20)
		w := &remote{t: r.t, conn: c, replies: make(chan reply, 1), events: make(chan string, 100)}
		if !in.Scan() || json.Unmarshal(in.Bytes(), &w.hello) != nil {
			_ = c.Close() // killed on its way
			continue
		}
		r.wg.Go(func() {
			defer c.Close()
			defer close(w.events)
			defer close(w.replies)
			for in.Scan() {
				var m reply
				if json.Unmarshal(in.Bytes(), &m) != nil {
					return
				}
				if m.Event == "" {
					w.replies <- m
					continue
				}
				select {
				case w.events <- m.Event:
				default: // a test that makes a storm of them does not count them
				}
			}
		})
		r.workers <- w
	}
}

// worker waits for the next worker.
func (r *rig) worker() *remote {
	r.t.Helper()
	select {
	case w := <-r.workers:
		return w
	case <-time.After(patience):
		r.t.Fatal("no worker came up")
		return nil
	}
}

// ready waits for the next worker and has it say that it is ready.
func (r *rig) ready() *remote {
	r.t.Helper()
	w := r.worker()
	w.must("send", "READY=1")
	w.must("barrier")
	return w
}

// code waits for the keeper's end.
func (r *rig) code() int {
	r.t.Helper()
	select {
	case <-r.exited:
	case <-time.After(patience):
		r.t.Fatal("the keeper does not end")
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *rig) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// logged waits until the keeper's log has a line with all of words.
func (r *rig) logged(words ...string) {
	r.t.Helper()
	r.loggedTimes(1, words...)
}

func (r *rig) loggedTimes(n int, words ...string) {
	r.t.Helper()
	await(r.t, "log line "+strings.Join(words, " … "), func() bool {
		b, _ := os.ReadFile(r.c.Dir + "/log")
		found := 0
		for line := range strings.Lines(string(b)) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				found++
			}
		}
		return found >= n
	})
}

// try has the worker do something; it fails when the worker dies meanwhile.
func (w *remote) try(do string, args ...string) ([]string, error) {
	b, _ := json.Marshal(order{Do: do, Args: args})
	if _, err := w.conn.Write(append(b, '\n')); err != nil {
		return nil, err
	}
	select {
	case m, ok := <-w.replies:
		if !ok {
			return nil, fmt.Errorf("worker %d died", w.PID)
		}
		if m.Err != "" {
			return nil, fmt.Errorf("%s %q: %s", do, args, m.Err)
		}
		return m.Out, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%s %q: no reply", do, args)
	}
}

func (w *remote) must(do string, args ...string) []string {
	w.t.Helper()
	out, err := w.try(do, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// kill sends a signal and waits for the worker's death.
func (w *remote) kill(s syscall.Signal) {
	w.t.Helper()
	if err := unix.Kill(w.PID, s); err != nil {
		w.t.Fatal(err)
	}
	w.died()
}

// died waits for the worker's end and returns the events until then.
func (w *remote) died() (events []string) {
	w.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				return events
			}
			events = append(events, e)
		case <-timeout:
			w.t.Fatal("the worker does not end")
		}
	}
}

// event waits for one.
func (w *remote) event(want string) {
	w.t.Helper()
	select {
	case e := <-w.events:
		if e != want {
			w.t.Fatalf("event %q, want %q", e, want)
		}
	case <-time.After(patience):
		w.t.Fatalf("no event %q", want)
	}
}

// stored are the names that are not the keeper's own.
func (w *remote) stored() []string {
	return slices.DeleteFunc(slices.Clone(w.Names), func(n string) bool { return n == nameExits || n == nameEvent || n == nameLock })
}

// exits opens the record of ends that the worker was given.
func (w *remote) exits() *notifyproto.Exits {
	w.t.Helper()
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", w.PID, firstFD+slices.Index(w.Names, nameExits)), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := notifyproto.OpenExits(fd)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = e.Close() })
	return e
}

// await looks again until ok holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func childrenOf(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		for f := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// procState is the letter of a process's state, or "" when it is gone.
func procState(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}

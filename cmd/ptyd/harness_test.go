package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what must come; only a failure takes
// so long.
const patience = 60 * time.Second

// binary is the program under test, built once, as it is shipped.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ptyd-cli")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "ptyd")
		build := exec.Command("go", "build", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if raceEnabled { // under -race the program is watched as well
			build = exec.Command("go", "build", "-race", "-o", binary, ".")
			// By itself every command would sleep a second when it ends.
			_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
		}
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build ptyd: %v\n%s", err, out)
			return 1
		}
		// Nothing of whoever runs the tests reaches the commands.
		for _, kv := range os.Environ() {
			if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "PTYD_") {
				_ = os.Unsetenv(k)
			}
		}
		status := m.Run()
		if err := goleak.Find(); err != nil && status == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return status
	}())
}

// testDaemon is a running daemon.
type testDaemon struct {
	t     *testing.T
	state string
	addr  string // http://127.0.0.1:port
	args  []string
	cmd   *exec.Cmd
}

// startDaemon starts a daemon in a state directory of its own. It is stopped
// at the end of the test.
func startDaemon(t *testing.T, args ...string) *testDaemon {
	t.Helper()
	d := &testDaemon{t: t, state: filepath.Join(t.TempDir(), "s"), args: args}
	d.start()
	t.Cleanup(d.stop)
	return d
}

func (d *testDaemon) start() {
	d.t.Helper()
	d.cmd = exec.Command(binary, append([]string{"serve", "--state-dir", d.state, "--listen", "127.0.0.1:0"}, d.args...)...)
	var stderr bytes.Buffer
	d.cmd.Stderr = &stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		_ = d.cmd.Wait()
		d.t.Fatalf("the daemon did not start: %v\n%s", err, &stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the daemon
	_, url, ok := strings.Cut(strings.TrimSpace(string(line[:n])), "http://")
	if !ok {
		d.t.Fatalf("the daemon printed %q", line[:n])
	}
	host, _, _ := strings.Cut(url, "/")
	d.addr = "http://" + host
}

func (d *testDaemon) stop() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(unix.SIGTERM)
	kill := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	err := d.cmd.Wait()
	kill.Stop()
	d.cmd = nil
	if err != nil {
		d.t.Errorf("the daemon ended with %v", err)
	}
}

// result is how a command ended.
type result struct {
	out, err string
	status   int
}

func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.status != 0 || r.err != "" {
		t.Errorf("exit status %d\nstdout: %s\nstderr: %s", r.status, r.out, r.err)
	}
	return r
}

func (r result) fails(t *testing.T, status int, parts ...string) result {
	t.Helper()
	if r.status != status {
		t.Errorf("exit status %d, want %d\nstdout: %s\nstderr: %s", r.status, status, r.out, r.err)
	}
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			t.Errorf("standard error %q lacks %q", r.err, p)
		}
	}
	return r
}

// call is a command to run.
type call struct {
	args  []string
	stdin string
	env   []string
	dir   string
}

// ptyd runs a command of the daemon d.
func (d *testDaemon) ptyd(args ...string) result {
	d.t.Helper()
	return d.call(call{args: args})
}

func (d *testDaemon) call(c call) result {
	d.t.Helper()
	return run(d.t, call{append([]string{"--state-dir", d.state}, c.args...), c.stdin, c.env, c.dir})
}

// run runs the binary.
func run(t *testing.T, c call) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Dir = c.dir
	cmd.Stdin = strings.NewReader(c.stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("ptyd %q did not end: %s %s", c.args, &out, &errs)
	}
	return result{out.String(), errs.String(), statusOf(t, err)}
}

// statusOf is the exit status as a shell would tell it.
func statusOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return e.ExitCode()
}

// command is a command of d, not started.
func (d *testDaemon) command(args ...string) *exec.Cmd {
	return exec.Command(binary, append([]string{"--state-dir", d.state}, args...)...)
}

// session starts a session in the background and returns its id.
func (d *testDaemon) session(name string, argv ...string) string {
	d.t.Helper()
	r := d.ptyd(append([]string{"run", "-d", "--name", name, "--"}, argv...)...).ok(d.t)
	return strings.TrimSpace(r.out)
}

// info is one session from ls.
type info struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	State    string            `json:"state"`
	PID      int               `json:"pid"`
	Cwd      string            `json:"cwd"`
	Argv     []string          `json:"argv"`
	Labels   map[string]string `json:"labels"`
	Cols     int               `json:"cols"`
	Rows     int               `json:"rows"`
	ExitCode *int              `json:"exit_code"`
	Signal   *string           `json:"signal"`
}

func (d *testDaemon) list(args ...string) []info {
	d.t.Helper()
	return decode[[]info](d.t, d.ptyd(append([]string{"ls", "--json"}, args...)...).ok(d.t).out)
}

func (d *testDaemon) info(name string) info {
	d.t.Helper()
	l := d.list("--name", name)
	if len(l) != 1 {
		d.t.Fatalf("%d sessions are called %q", len(l), name)
	}
	return l[0]
}

// decode decodes output that must be one line of JSON.
func decode[T any](t *testing.T, line string) (v T) {
	t.Helper()
	if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
		t.Fatalf("%q is not one line", line)
	}
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return v
}

// flappingSocket is a state directory whose socket passes connections on to
// the daemon, and loses them when told to.
type flappingSocket struct {
	state string
	l     net.Listener
	to    string

	mu    sync.Mutex // guards conns and down
	conns map[net.Conn]bool
	down  bool
	wg    sync.WaitGroup
}

func (d *testDaemon) flapping() *flappingSocket {
	d.t.Helper()
	f := &flappingSocket{state: d.t.TempDir(), to: filepath.Join(d.state, "ptyd.sock"), conns: map[net.Conn]bool{}}
	var err error
	if f.l, err = net.Listen("unix", filepath.Join(f.state, "ptyd.sock")); err != nil {
		d.t.Fatal(err)
	}
	f.wg.Go(f.accept)
	d.t.Cleanup(func() {
		_ = f.l.Close()
		f.cut(true)
		f.wg.Wait()
	})
	return f
}

func (f *flappingSocket) accept() {
	for {
		a, err := f.l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("unix", f.to)
		f.mu.Lock()
		if err != nil || f.down {
			f.mu.Unlock()
			_ = a.Close()
			if b != nil {
				_ = b.Close()
			}
			continue
		}
		f.conns[a], f.conns[b] = true, true
		f.mu.Unlock()
		pipe := func(dst, src net.Conn) {
			_, _ = io.Copy(dst, src)
			_ = dst.Close()
			_ = src.Close()
		}
		f.wg.Go(func() { pipe(a, b) })
		f.wg.Go(func() { pipe(b, a) })
	}
}

// cut loses all connections; down refuses new ones until the next call.
func (f *flappingSocket) cut(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	for c := range f.conns {
		_ = c.Close()
		delete(f.conns, c)
	}
}

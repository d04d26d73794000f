package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// daemonOptions say how a daemon differs from the usual one.
type daemonOptions struct {
	Binary   string     // default: the -race build
	StateDir string     // default: a new one
	Args     []string   // more arguments of serve
	Env      []string   // more environment
	Files    []*os.File // descriptors that the daemon inherits, from 3 on
}

// Daemon is one running `ptyd serve`: the process that was started is the
// keeper, and its child is the worker.
type Daemon struct {
	StateDir string
	URL      string // http://127.0.0.1:port
	Binary   string

	t      testing.TB
	cmd    *exec.Cmd
	log    string        // file with what it printed
	exited chan struct{} // closed when the process is reaped
	seen   map[identity]process
	ended  atomic.Bool
}

// stateDir makes a short-named directory: a socket's path holds 107 bytes.
func stateDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "ptyd-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// start starts a daemon and returns when it answers. The test's end stops it
// and checks that it stopped in order and left no process behind.
func start(t testing.TB, opts ...daemonOptions) *Daemon {
	t.Helper()
	d := launch(t, opts...)
	if !holds(30*time.Second, func() bool { return d.ended.Load() || d.ready() }) || d.ended.Load() {
		t.Fatalf("the daemon did not become ready:\n%s", d.Log())
	}
	d.URL = d.listenURL()
	return d
}

// launch starts a daemon without waiting for it.
func launch(t testing.TB, opts ...daemonOptions) *Daemon {
	t.Helper()
	var o daemonOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Binary == "" {
		o.Binary = testBinary
	}
	if o.StateDir == "" {
		o.StateDir = stateDir(t)
	}
	d := &Daemon{StateDir: o.StateDir, Binary: o.Binary, t: t, exited: make(chan struct{}), seen: map[identity]process{}}
	f, err := os.CreateTemp("", "ptyd-e2e-log-")
	if err != nil {
		t.Fatal(err)
	}
	d.log = f.Name()
	d.cmd = exec.Command(o.Binary, append([]string{"serve", "--state-dir", o.StateDir, "--listen", "127.0.0.1:0"}, o.Args...)...)
	d.cmd.Env = append(cleanEnv(), o.Env...)
	d.cmd.Stdout, d.cmd.Stderr = f, f
	d.cmd.ExtraFiles = o.Files
	// Its own group: a Ctrl-C of the person who runs the tests must not race
	// with the tests' own clean-up.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatalf("start the daemon: %v", err)
	}
	_ = f.Close()
	go func() {
		_ = d.cmd.Wait()
		d.ended.Store(true)
		close(d.exited)
	}()
	t.Cleanup(d.cleanup)
	return d
}

// cleanEnv is an environment without what the person who runs the tests has set.
func cleanEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "LANG=C.UTF-8", "SHELL=/bin/bash",
		"GORACE=halt_on_error=0 exitcode=66 atexit_sleep_ms=0",
	}
}

// ready reports whether the daemon answers on its socket.
func (d *Daemon) ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://ptyd/readyz", nil)
	resp, err := d.unixHTTP().Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// listenURL asks the daemon where it listens.
func (d *Daemon) listenURL() string {
	st := d.status()
	for _, l := range st.Listen {
		if i := strings.LastIndex(l, "127.0.0.1:"); i >= 0 {
			return "http://" + strings.TrimSuffix(l[i:], "/")
		}
	}
	d.t.Fatalf("status names no TCP listener: %v", st.Listen)
	return ""
}

// Addr is the host and port of the TCP listener.
func (d *Daemon) Addr() string { return strings.TrimPrefix(d.URL, "http://") }

// Socket is the path of the Unix socket.
func (d *Daemon) Socket() string { return filepath.Join(d.StateDir, "ptyd.sock") }

// Keeper is the process that was started; without a keeper it is the worker too.
func (d *Daemon) Keeper() int { return d.cmd.Process.Pid }

// status is what the tests read of GET /v1/status.
type status struct {
	Keeper *struct {
		PID, Upgrades int
		Version, Path string
		StartedAt     *time.Time `json:"started_at"`
	}
	Worker struct {
		PID, Generation, Restarts, Adopted, Lost int
		Version                                  string
		BytesRecovered                           int64 `json:"bytes_recovered"`
	}
	Survives      struct{ Worker, Upgrade, Keeper bool }
	UpgradeFailed string `json:"upgrade_failed"`
	Listen        []string
	Notes         []string
}

func (d *Daemon) status() (st status) {
	d.t.Helper()
	d.get("/v1/status", &st)
	return st
}

// Worker is the process that does the work now.
func (d *Daemon) Worker() int {
	d.t.Helper()
	return d.status().Worker.PID
}

// workerNow finds the worker without asking it: 0 while there is none.
func (d *Daemon) workerNow() int {
	for _, p := range processes() {
		// The last two tell it from its own child that is a session's to be.
		if p.PPID == d.Keeper() && p.Group == p.PID && p.Session != p.PID && p.State != 'Z' && strings.HasPrefix(p.Cmd, "ptyd serve") && strings.HasSuffix(p.Cmd, "--worker") {
			return p.PID
		}
	}
	return 0
}

// KillWorker ends the worker by SIGKILL and returns when another one answers.
func (d *Daemon) KillWorker() {
	d.t.Helper()
	d.note()
	pid := d.Worker()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		d.t.Fatalf("kill the worker: %v", err)
	}
	d.anotherThan(pid)
}

// anotherThan waits until a worker other than pid answers.
func (d *Daemon) anotherThan(pid int) {
	d.t.Helper()
	eventually(d.t, 30*time.Second, "another worker answers", func() bool {
		if d.ended.Load() {
			d.t.Fatalf("the keeper ended:\n%s", d.Log())
		}
		p, ok := readProcess(pid)
		return (!ok || p.State == 'Z' || p.PPID != d.Keeper()) && d.ready()
	})
}

// Log is what the daemon printed so far.
func (d *Daemon) Log() string {
	b, _ := os.ReadFile(d.log)
	return string(b)
}

// unixHTTP is a client of the Unix socket that keeps no connection, so that
// counts of descriptors are the daemon's own.
func (d *Daemon) unixHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var nd net.Dialer
			return nd.DialContext(ctx, "unix", d.Socket())
		},
	}}
}

// note remembers the processes below the daemon, for the check at the end.
func (d *Daemon) note() {
	if d.cmd == nil {
		return // a machine's, which ends with the machine
	}
	for _, p := range descendants(d.Keeper()) {
		d.seen[p.identity()] = p
	}
}

// Signal sends a signal to the process that was started.
func (d *Daemon) Signal(sig syscall.Signal) {
	d.t.Helper()
	d.note()
	if err := d.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Fatalf("signal %v: %v", sig, err)
	}
}

// Wait waits for the daemon's end and returns its exit status.
func (d *Daemon) Wait(limit time.Duration) int {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(limit):
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // the stacks go to the log
		select {
		case <-d.exited:
		case <-time.After(5 * time.Second):
			_ = d.cmd.Process.Kill()
			<-d.exited
		}
		d.t.Fatalf("the daemon did not end within %v:\n%s", limit, d.Log())
	}
	return d.cmd.ProcessState.ExitCode()
}

// Stop ends the daemon by SIGTERM and expects an orderly end.
func (d *Daemon) Stop() {
	d.t.Helper()
	d.Signal(syscall.SIGTERM)
	if code := d.Wait(30 * time.Second); code != 0 {
		d.t.Errorf("after SIGTERM the daemon exited with %d:\n%s", code, d.Log())
	}
}

// KillKeeper ends the process that was started by SIGKILL. Its worker follows by
// itself, and ends the sessions.
func (d *Daemon) KillKeeper() {
	d.t.Helper()
	d.Signal(syscall.SIGKILL)
	d.Wait(10 * time.Second)
}

// cleanup stops the daemon where the test did not, and checks what is left.
func (d *Daemon) cleanup() {
	defer func() { _ = os.Remove(d.log) }()
	if !d.ended.Load() {
		d.Stop()
	}
	log := d.Log()
	for _, sign := range []string{"DATA RACE", "panic: ", "fatal error: ", "goroutine leak"} {
		if strings.Contains(log, sign) {
			d.t.Errorf("the daemon reported %q", sign)
		}
	}
	var left []process
	gone := func() bool {
		left = left[:0]
		for _, p := range d.seen {
			if p.alive() {
				left = append(left, p)
			}
		}
		return len(left) == 0
	}
	if !holds(10*time.Second, gone) {
		for _, p := range left {
			d.t.Errorf("left behind by the daemon: %v", p)
			_ = unix.Kill(p.PID, unix.SIGKILL)
		}
		holds(5*time.Second, gone)
	}
	if d.t.Failed() {
		d.t.Logf("the daemon's log:\n%s", tailOf(log, 8<<10))
	}
}

func tailOf(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// result is what a command printed and its exit status.
type result struct {
	Stdout, Stderr string
	Code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit status %d\nstdout: %s\nstderr: %s", r.Code, r.Stdout, r.Stderr)
}

// CLI runs `ptyd args…` against this daemon.
func (d *Daemon) CLI(args ...string) result {
	d.t.Helper()
	return d.CLIWith(cliOptions{}, args...)
}

// cliOptions say how a command differs from the usual one.
type cliOptions struct {
	Stdin string
	Env   []string
	NoDir bool // do not name the state directory by the environment
}

// CLIWith runs a command with options.
func (d *Daemon) CLIWith(o cliOptions, args ...string) result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.Binary, args...)
	cmd.Env = append(cleanEnv(), o.Env...)
	if !o.NoDir {
		cmd.Env = append(cmd.Env, "PTYD_STATE_DIR="+d.StateDir)
	}
	cmd.Stdin = strings.NewReader(o.Stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatalf("run ptyd %v: %v", args, err)
	}
	if strings.Contains(errOut.String(), "DATA RACE") {
		d.t.Errorf("ptyd %v:\n%s", args, errOut.String())
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// mustCLI runs a command that has to succeed and returns its output.
func (d *Daemon) mustCLI(args ...string) string {
	d.t.Helper()
	r := d.CLI(args...)
	if r.Code != 0 {
		d.t.Fatalf("ptyd %v: %v", args, r)
	}
	return r.Stdout
}

package keeper

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// copyOf makes another file of the test binary: a new release.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// status asks the keeper.
func (w *remote) status() Status {
	w.t.Helper()
	text := w.must("ask", notifyproto.KeyStatus+"=1")
	st, ok := ParseStatus(text[0])
	if !ok {
		w.t.Fatalf("the keeper said %q", text)
	}
	return st
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ptyd")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// masks are what a process blocks and ignores.
func masks(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range bytes.Lines(b) {
		if bytes.HasPrefix(line, []byte("SigBlk")) || bytes.HasPrefix(line, []byte("SigIgn")) {
			out = append(out, strings.Join(strings.Fields(string(line)), " "))
		}
	}
	return strings.Join(out, ", ")
}

// An upgrade changes both processes' binary and nothing else, again and again.
func TestUpgrade(t *testing.T) {
	r := newRig(t, config{Watchdog: time.Minute})
	b := newBrood(t)
	w := r.ready()
	w.must("store", "0", "a", "b")
	w.must("store", "g", "c")
	w.must("spawn", b.argv("early")...)
	early := b.pid("early")
	clean := masks(t, early)
	keeper := r.cmd.Process.Pid
	self, started := w.Exe, w.status().Started
	if time.Since(started) > time.Minute || time.Until(started) > 0 {
		t.Errorf("the keeper says that it began at %v", started)
	}
	for gen := 2; gen < 8; gen += 2 {
		binary := copyOf(t, filepath.Join(t.TempDir(), "ptyd"+strconv.Itoa(gen)))
		if got := w.must("ask", "X_PTYD_UPGRADE="+binary); got[0] != "" {
			t.Fatalf("refused: %s", got[0])
		}
		if got := w.died(); !slices.Equal(got, []string{"SIGTERM"}) {
			t.Errorf("the old worker saw %q", got)
		}
		w = r.worker()
		if st := w.status(); st.Failed != "" || st.Upgrades != gen/2-1 {
			t.Errorf("before it is ready: %+v", st)
		}
		if w.Exe != binary || w.Gen != gen || w.Restarts != gen/2-1 || w.Keeper != keeper || !slices.Equal(w.stored(), []string{"0", "0", "g"}) || len(w.Leaked) > 0 || !w.Lock {
			t.Errorf("new worker: %+v", w.hello)
		}
		w.must("send", "READY=1")
		r.logged("keeper goes on with its new binary", binary, `"generation":`+strconv.Itoa(gen)+`,`)
		st := w.status() // the old connection, the new keeper
		if st.Upgrades != gen/2 || st.Binary != binary || st.Origin != self || st.Version != "test" || !st.Started.Equal(started) {
			t.Errorf("status %+v, it began at %v as %s", st, started, self)
		}
		w.must("store", "z"+strconv.Itoa(gen), "x")
		w.must("send", "FDSTOREREMOVE=1", "FDNAME=z"+strconv.Itoa(gen))
		name := strconv.Itoa(gen)
		w.must("spawn", b.argv(name)...)
		if got := masks(t, b.pid(name)); got != clean {
			t.Errorf("sessions inherit %s, before the upgrade %s", got, clean)
		}
		// A crash comes back as the new one, from the new keeper.
		w.kill(unix.SIGKILL)
		w = r.ready()
		if w.Exe != binary || w.Gen != gen+1 || w.Restarts != gen/2 || w.Keeper != keeper || !slices.Equal(w.stored(), []string{"0", "0", "g"}) || len(w.Leaked) > 0 || !w.Lock {
			t.Errorf("after a crash: %+v", w.hello)
		}
		if got := w.must("read", "0"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("0 holds %q", got)
		}
		w.must("spawn", b.argv("l"+name)...)
		if got := masks(t, b.pid("l"+name)); got != clean {
			t.Errorf("sessions inherit %s, before the upgrade %s", got, clean)
		}
	}
	// Children from before are children still.
	b.die("early", "21")
	e := w.exits()
	await(t, "the record of an early child", func() bool { rec, ok := e.Find(early); return ok && rec.Status == 21 })
	// The worker is told when the keeper dies, whichever thread started it.
	w.must("on", "SIGUSR2", "exit 0")
	r.signal(unix.SIGKILL)
	if got := w.died(); !slices.Equal(got, []string{"SIGUSR2"}) {
		t.Errorf("at the keeper's death the worker saw %q", got)
	}
	for i := range w.Gen {
		for _, name := range []string{strconv.Itoa(i), "l" + strconv.Itoa(i)} {
			if b.born(name) != 0 {
				b.die(name, "0")
			}
		}
	}
}

// The worker that lives through the keeper's own execution is told of its death.
func TestDeathSignalAfterUpgrade(t *testing.T) {
	r := newRig(t, config{})
	w := r.ready()
	binary := copyOf(t, filepath.Join(t.TempDir(), "ptyd"))
	w.must("ask", "X_PTYD_UPGRADE="+binary)
	w = r.worker()
	w.must("send", "READY=1")
	r.logged("keeper goes on with its new binary")
	w.must("barrier")
	select {
	case e := <-w.events:
		t.Fatalf("event %q at the keeper's execution", e)
	default:
	}
	r.signal(unix.SIGKILL)
	if got := w.died(); !slices.Equal(got, []string{"SIGUSR2"}) {
		t.Errorf("at the keeper's death the worker saw %q", got)
	}
}

// A signal that comes while the keeper executes itself is not lost and not its end.
func TestSignalsDuringUpgrade(t *testing.T) {
	for range 3 {
		r := newRig(t, config{})
		w := r.ready()
		w.must("ask", "X_PTYD_UPGRADE="+copyOf(t, filepath.Join(t.TempDir(), "ptyd")))
		w = r.worker()
		w.must("on", "SIGINT", "exit 33")
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					_ = r.cmd.Process.Signal(unix.SIGHUP)
				}
			}
		}()
		w.must("send", "READY=1")
		r.logged("keeper goes on with its new binary")
		close(stop)
		<-ended
		w.must("barrier")
		r.signal(unix.SIGTERM)
		if code := r.code(); code != 33 {
			t.Errorf("exit status %d", code)
		}
	}
}

// A binary that does not come up is replaced by the old one, which is told why,
// and so are those after it, until another upgrade is asked for.
func TestRollBack(t *testing.T) {
	r := newRig(t, config{Start: 2 * time.Second, Abort: 100 * time.Millisecond})
	w := r.ready()
	w.must("store", "0", "a")
	self := w.Exe
	for i, c := range []struct{ text, why string }{
		{"exit 3", "exited with status 3"},
		{"kill -11 $$", "SIGSEGV"},
		{"trap '' ABRT; while :; do read x </dev/zero; done", "not ready within"},
	} {
		bad := script(t, c.text)
		if got := w.must("ask", "X_PTYD_UPGRADE="+bad); got[0] != "" {
			t.Fatalf("refused: %s", got[0])
		}
		w.died()
		w = r.ready()
		if !strings.Contains(w.Failed, c.why) || !strings.Contains(w.Failed, bad) || w.Exe != self || w.Gen != 3+4*i || w.Restarts != i || !slices.Equal(w.stored(), []string{"0"}) {
			t.Errorf("%s: %+v", c.text, w.hello)
		}
		// Two crashes, only to see that it is back to normal.
		w.must("store", "1", "b")
		w.must("send", "FDSTOREREMOVE=1", "FDNAME=1")
		w.must("barrier")
		w.kill(unix.SIGKILL)
		w = r.ready()
		if st := w.status(); !strings.Contains(w.Failed, c.why) || st.Failed != w.Failed || st.Upgrades != 0 || st.Binary != self {
			t.Errorf("after a crash: told %q, status %+v", w.Failed, st)
		}
		w.must("ask", "X_PTYD_RESTART=1")
		w.died()
		w = r.ready()
		if w.Restarts != i+1 {
			t.Errorf("a restart that was asked for counts: %+v", w.hello)
		}
	}
	// What can't be a binary stops nothing.
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"ptyd", filepath.Join(dir, "none"), dir, plain} {
		if got := w.must("ask", "X_PTYD_UPGRADE="+path); got[0] == "" {
			t.Errorf("%s was not refused", path)
		}
	}
	w.must("barrier")
}

// While a worker comes or goes, another change is refused.
func TestUpgradeWhenBusy(t *testing.T) {
	r := newRig(t, config{Stop: 50 * time.Millisecond})
	w := r.worker()
	for _, what := range []string{"X_PTYD_RESTART=1", "X_PTYD_UPGRADE=" + w.Exe} {
		if got := w.must("ask", what); got[0] == "" {
			t.Errorf("%s before READY was not refused", what)
		}
	}
	w.must("send", "READY=1")
	w.must("on", "SIGTERM", "stay")
	if got := w.must("ask", "X_PTYD_RESTART=1"); got[0] != "" {
		t.Fatalf("refused: %s", got[0])
	}
	w.event("SIGTERM")
	// It does not go, so it is killed.
	w.died()
	if w = r.ready(); w.Gen != 2 {
		t.Errorf("%+v", w.hello)
	}
	r.logged("did not go in time")
}

// A file that was replaced is not what a crash starts.
func TestReplacedBinary(t *testing.T) {
	path := copyOf(t, filepath.Join(t.TempDir(), "ptyd"))
	r := newRig(t, config{Binary: path})
	r.ready()
	// The rig's keeper is the test binary, so this one is foreign; make it own.
	w := upgradeTo(t, r, path)
	w.kill(unix.SIGKILL)
	w = r.ready()
	if w.Exe != path {
		t.Fatalf("runs %s", w.Exe)
	}
	copyOf(t, path)
	w.kill(unix.SIGKILL)
	w = r.ready()
	if w.Exe != path+" (deleted)" {
		t.Errorf("a crash started %s", w.Exe)
	}
	// Asked for, it is.
	w.must("ask", "X_PTYD_UPGRADE="+path)
	w.died()
	if w = r.ready(); w.Exe != path {
		t.Errorf("the upgrade started %s", w.Exe)
	}
	w.must("barrier")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.kill(unix.SIGKILL)
	r.ready()
}

func upgradeTo(t *testing.T, r *rig, path string) *remote {
	t.Helper()
	// The worker that lives is the last one that said hello.
	pids := childrenOf(r.cmd.Process.Pid)
	if len(pids) != 1 {
		t.Fatalf("children %v", pids)
	}
	if err := unix.Kill(pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w := r.ready()
	w.must("ask", "X_PTYD_UPGRADE="+path)
	w.died()
	w = r.worker()
	w.must("send", "READY=1")
	r.logged("keeper goes on with its new binary", path)
	w.must("barrier")
	return w
}

// Where the execution fails, signals have their handlers again.
func TestIgnoreSignals(t *testing.T) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGHUP)
	defer signal.Stop(c)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // a storm, in which a moment without a handler would be fatal
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Kill(os.Getpid(), unix.SIGHUP)
			}
		}
	}()
	for range 2000 {
		ignoreSignals()()
	}
	restore := ignoreSignals()
	// Others may be ignored too: whatever started the test hands its own down.
	const fatal = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGTERM-1)
	b := masks(t, os.Getpid())
	_, hex, _ := strings.Cut(b, "SigIgn: ")
	if ign, err := strconv.ParseUint(hex, 16, 64); err != nil || ign&fatal != fatal {
		t.Errorf("not ignored: %s, %v", b, err)
	}
	close(stop)
	<-ended
	restore()
	select {
	case <-c:
	default:
	}
	_ = unix.Kill(os.Getpid(), unix.SIGHUP)
	select {
	case <-c:
	case <-time.After(patience):
		t.Error("the handler is gone")
	}
}

// The keeper goes on as it is where it can't follow its worker.
func TestKeeperCannotFollow(t *testing.T) {
	r := newRig(t, config{})
	w := r.ready()
	path := copyOf(t, filepath.Join(t.TempDir(), "ptyd"))
	w.must("ask", "X_PTYD_UPGRADE="+path)
	w = r.worker()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.must("send", "READY=1")
	r.logged("could not execute the new binary")
	if st := w.status(); !strings.Contains(st.Failed, "the keeper is the old one") || st.Upgrades != 0 || st.Binary != path {
		t.Errorf("status %+v", st)
	}
	w.must("store", "0", "a")
	w.must("barrier")
	w.kill(unix.SIGKILL)
	if w = r.ready(); w.Gen != 3 || !slices.Equal(w.stored(), []string{"0"}) {
		t.Errorf("%+v", w.hello)
	}
}

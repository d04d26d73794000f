package keeper

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// What a worker has stored is there after its death, by name and in order.
func TestDescriptorsSurviveKills(t *testing.T) {
	r := newRig(t, config{FDMax: 100, Watchdog: time.Minute, Args: []string{"--flag"}})
	w := r.ready()
	if w.Gen != 1 || w.Restarts != 0 || w.Keeper != r.cmd.Process.Pid || w.PPID != w.Keeper || w.FDMax != 100-sharedFDs || w.Watchdog != "60000000" || !w.Lock {
		t.Errorf("first worker: %+v", w.hello)
	}
	if !slices.Equal(w.Args, []string{"ptyd", "worker", "--flag"}) {
		t.Errorf("arguments %q", w.Args)
	}
	w.must("store", "g", "global")
	w.must("store", "0", "a", "b")
	w.must("store", "1", "c")
	w.must("store", "0", "d")
	w.must("send", "FDSTOREREMOVE=1", "FDNAME=1")
	w.must("store", "2", "e")
	for gen := 2; gen < 6; gen++ {
		w.must("barrier")
		w.kill(unix.SIGKILL)
		w = r.ready()
		if want := []string{"g", "0", "0", "0", "2"}; w.Gen != gen || w.Restarts != gen-1 || !slices.Equal(w.stored(), want) || len(w.Leaked) > 0 || !w.Lock {
			t.Fatalf("generation %d: %+v", gen, w.hello)
		}
		for name, want := range map[string][]string{"g": {"global"}, "0": {"a", "b", "d"}, "2": {"e"}} {
			if got := w.must("read", name); !slices.Equal(got, want) {
				t.Errorf("generation %d: %s holds %q", gen, name, got)
			}
		}
		w.must("again", "0") // the same descriptors once more are no more
	}
	// What was sent right before a death counts, without a barrier.
	w.must("store", "3", "last")
	w.kill(unix.SIGKILL)
	if w = r.ready(); !slices.Contains(w.Names, "3") {
		t.Errorf("names %q", w.Names)
	}
}

// A worker may go by itself, too.
func TestWorkerGoes(t *testing.T) {
	r := newRig(t, config{})
	w := r.ready()
	w.kill(unix.SIGTERM)
	if w = r.ready(); w.Gen != 2 || w.Restarts != 1 {
		t.Errorf("%+v", w.hello)
	}
	if _, err := w.try("exit", "1"); err == nil {
		t.Error("it has not gone")
	}
	if w = r.ready(); w.Gen != 3 {
		t.Errorf("%+v", w.hello)
	}
}

// A first worker that says that it can't run ends the keeper with its status.
func TestFirstWorkerFails(t *testing.T) {
	r := newRig(t, config{})
	_, _ = r.worker().try("exit", "78")
	if code := r.code(); code != 78 {
		t.Errorf("exit status %d", code)
	}
	r = newRig(t, config{Binary: "/nonexistent/ptyd"})
	r.ready() // the keeper's own image does
	r.logged("can't be executed")
}

// Later ones are started again, ever more slowly, and at once when one was ready.
func TestBackoff(t *testing.T) {
	const first, most = 60 * time.Millisecond, 120 * time.Millisecond
	r := newRig(t, config{BackoffMin: first, BackoffMax: most})
	w := r.worker()
	w.kill(unix.SIGKILL) // killed is not failed: again, also the first
	for i, want := range []time.Duration{first, most, most} {
		died := time.Now()
		w = r.worker()
		if took := time.Since(died); took < want-10*time.Millisecond {
			t.Errorf("start %d came after %v, want %v", i, took, want)
		}
		_, _ = w.try("exit", "3")
	}
	w = r.ready()
	if w.Gen != 5 || w.Restarts != 4 {
		t.Errorf("%+v", w.hello)
	}
	w.kill(unix.SIGKILL)
	r.ready()
	w = nil
	r.logged(`"after":0.06`)
	r.logged(`"after":0.12`)
}

// Nobody but the worker is heard, and what strangers send is closed.
func TestStrangers(t *testing.T) {
	r := newRig(t, config{})
	w := r.worker()
	c, err := notifyproto.Dial(filepath.Join(r.c.Dir, "notify"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	for _, text := range []string{"FDSTORE=1\nFDNAME=0", "READY=1", "X_PTYD_UPGRADE=/bin/false", "garbage", "FDSTOREREMOVE=1\nFDNAME=0"} {
		if err := c.Send([]byte(text), int(pw.Fd())); err != nil {
			t.Fatal(err)
		}
	}
	_ = pw.Close()
	// The end of file says that the keeper has closed all copies.
	_ = pr.SetReadDeadline(time.Now().Add(patience))
	if n, err := pr.Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
		t.Errorf("read %d, %v", n, err)
	}
	w.must("store", "1", "mine")
	w.must("barrier")
	w.kill(unix.SIGKILL)
	if w = r.ready(); !slices.Equal(w.stored(), []string{"1"}) {
		t.Errorf("stored: %q", w.stored())
	}
	r.logged("a stranger's notice", strconv.Itoa(os.Getpid()))
}

// Nonsense from the worker itself harms nobody.
func TestGarbage(t *testing.T) {
	r := newRig(t, config{FDMax: sharedFDs})
	w := r.ready()
	for _, text := range []string{
		"x", "FDSTORE=1", "FDSTORE=1\nFDNAME=0", "FDSTOREREMOVE=1", "BARRIER=1", "X_PTYD_UPGRADE=/", "WATCHDOG=1",
		"EXTEND_TIMEOUT_USEC=99999999999999999999", "EXTEND_TIMEOUT_USEC=-1", "READY=2", "STATUS=", "A=\xff",
	} {
		w.must("send", text)
	}
	for _, name := range []string{nameExits, nameEvent, nameLock, "a:b", ""} {
		w.must("store", name, "x")
		w.must("send", "FDSTOREREMOVE=1", "FDNAME="+name)
	}
	// More than can be stored is refused whole.
	w.must("store", "1", "a", "b")
	w.must("store", append([]string{"2"}, make([]string, sharedFDs)...)...)
	w.must("barrier")
	w.kill(unix.SIGKILL)
	if w = r.ready(); !slices.Equal(w.stored(), []string{"1", "1"}) {
		t.Errorf("stored: %q", w.stored())
	}
	if w.FDMax != 1 { // none fits; 0 would say that there is no bound
		t.Errorf("room for %d", w.FDMax)
	}
}

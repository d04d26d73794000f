package keeper

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A worker that is silent, hangs or is stopped is replaced; one that gives
// signs of life is not.
func TestWatchdog(t *testing.T) {
	r := newRig(t, config{Watchdog: 400 * time.Millisecond, Abort: 50 * time.Millisecond})
	w := r.ready()
	w.must("store", "0", "a")
	w.must("barrier")
	if got := w.died(); len(got) != 0 {
		t.Errorf("the worker saw %q", got)
	}
	r.logged("worker ended", "no sign of life", "exited with status 2") // Go's way to die of SIGABRT
	said, err := os.ReadFile(r.c.Dir + "/stderr")
	if err != nil || !strings.Contains(string(said), "SIGABRT") || !strings.Contains(string(said), "goroutine 1 ") {
		t.Errorf("it did not say where it hung: %v", err)
	}
	w = r.ready()
	if w.Gen != 2 || w.Restarts != 1 || !slices.Equal(w.stored(), []string{"0"}) {
		t.Errorf("%+v", w.hello)
	}
	w.must("pings", "20ms")
	began := time.Now()
	for time.Since(began) < time.Second {
		w.must("barrier") // lives on for more than two intervals
	}
	if err := unix.Kill(w.PID, unix.SIGSTOP); err != nil { // deaf to SIGABRT
		t.Fatal(err)
	}
	w.died()
	w = r.ready()
	if w.Gen != 3 {
		t.Errorf("%+v", w.hello)
	}
	r.logged("no sign of life", "SIGKILL")
}

// A worker that does not get ready is replaced, unless it asks for time.
func TestStartTakesTooLong(t *testing.T) {
	r := newRig(t, config{Start: 300 * time.Millisecond, Abort: 50 * time.Millisecond, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})
	w := r.worker()
	w.died()
	r.logged("not ready within")
	w = r.worker()
	if w.Gen != 2 {
		t.Errorf("%+v", w.hello)
	}
	w.must("send", "EXTEND_TIMEOUT_USEC=60000000")
	began := time.Now()
	for time.Since(began) < 600*time.Millisecond {
		w.must("barrier")
	}
	w.must("send", "READY=1")
	w.must("barrier")
}

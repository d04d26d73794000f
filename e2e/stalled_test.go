package e2e

import (
	"sync"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/wire"
)

// stalledLimit bounds how much the daemon may grow while ten viewers follow a
// flood and one of them reads nothing: the session's output log (8 MiB), a
// window of 256 KiB for each viewer, what is in flight, and the Go runtime's
// slack of the same order again.
const stalledLimit = 40 << 20

// One viewer that reads nothing among ten: the others get all, the PTY is not
// held up, and the daemon does not grow.
func TestStalledViewer(t *testing.T) {
	n := uint64(full(16, 200)) << 20
	d := start(t, daemonOptions{Binary: shippedBinary}) // memory as users have it
	rng := newRand(t)
	// The child waits for the viewers: it starts with the first typed byte.
	s := d.run("bash", "-c", `stty raw -echo; echo ready; head -c 1 >/dev/null; exec "$@"`, "bash",
		selfPath(t), childWord, "flood", jsonNumber(*seed), jsonNumber(n))
	d.waitText(s.ID, "ready")
	begin := d.session(s.ID).Offset

	stalled := d.mustDial(dialing{RcvBuf: 4 << 10})
	stalled.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Kind: wire.KindInteractive, Cols: 80, Rows: 24})

	const healthy = 9
	vs := make([]*viewer, healthy)
	for i := range vs {
		v := newViewer(d, s.ID, newClientID(rng))
		vs[i] = v
		if i > 1 {
			continue // the content of two is enough; the ledger of each is kept
		}
		sc := streamCheck{seed: *seed}
		v.check = func(off uint64, b []byte) error {
			if off < begin { // what the shell printed
				k := min(begin-off, uint64(len(b)))
				off, b = off+k, b[k:]
			}
			return sc.check(off-begin, b)
		}
	}
	errs := make([]error, healthy)
	var wg sync.WaitGroup
	for i, v := range vs {
		wg.Go(func() { errs[i] = v.run() })
	}
	eventually(t, time.Minute, "all are attached", func() bool { return d.session(s.ID).Viewers == healthy+1 })
	worker := d.Worker()
	before := rss(worker)
	peak := before
	d.input(s.ID, "g")
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(20 * time.Millisecond):
			peak = max(peak, rss(worker))
		}
	}
	for i, v := range vs {
		if errs[i] != nil {
			t.Errorf("viewer %d: %v", i, errs[i])
		} else if v.final != n+begin || v.connects != 1 {
			t.Errorf("viewer %d: end at %d of %d, %d connections", i, v.final, n+begin, v.connects)
		}
	}
	if grown := peak - before; grown > stalledLimit {
		t.Errorf("the daemon grew by %d MiB, the limit is %d MiB", grown>>20, stalledLimit>>20)
	} else {
		t.Logf("the daemon grew by %d MiB", grown>>20)
	}
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 0" {
		t.Errorf("the session ended with %s", got.exit())
	}

	// When it reads again, the stalled viewer is told what it missed and gets
	// the rest: nothing is silently missing.
	at, sum := uint64(0), uint64(0)
	first := true
	for {
		f, err := stalled.next()
		if err != nil {
			t.Fatalf("the stalled viewer at offset %d: %v", at, err)
		}
		switch f.Type {
		case wire.TypeResync:
			a, err := wire.Parse[wire.Attached](f)
			if err != nil {
				t.Fatal(err)
			}
			if a.Skipped != a.Offset-at {
				t.Fatalf("RESYNC from %d to %d declares %d", at, a.Offset, a.Skipped)
			}
			sum += a.Skipped
			at = a.Offset
		case wire.TypeOutput:
			if first {
				at, sum, first = f.Offset, f.Offset, false
			}
			if f.Offset != at {
				t.Fatalf("OUTPUT at %d, expected %d", f.Offset, at)
			}
			at += uint64(len(f.Payload))
			sum += uint64(len(f.Payload))
			if err := stalled.send(wire.Frame{Type: wire.TypeAck, Channel: 1, Offset: at}); err != nil {
				t.Fatal(err)
			}
		case wire.TypeExit:
			if at != f.Offset || sum != f.Offset {
				t.Errorf("the stalled viewer has %d bytes up to %d, the end is %d", sum, at, f.Offset)
			}
			return
		}
	}
}

// Viewers that come and go all the time: no connection, no goroutine and no
// viewer stays behind.
func TestFlappingViewers(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", "while echo tick; do read -t 0.01 x; done")
	d.waitText(s.ID, "tick")
	base := d.goroutines()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range full(10, 100) {
				c, _, err := d.dial(dialing{})
				if err != nil {
					t.Errorf("viewer %d, round %d: %v", i, k, err)
					return
				}
				if err := c.send(wire.Control(wire.TypeAttach, 1, 0, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24})); err != nil {
					t.Errorf("viewer %d, round %d: %v", i, k, err)
				}
				if k%2 == 0 { // half of them leave before the answer
					c.until(t, wire.TypeOutput)
				}
				c.close()
			}
		})
	}
	wg.Wait()
	eventually(t, time.Minute, "no viewer is left", func() bool { return d.session(s.ID).Viewers == 0 })
	eventually(t, time.Minute, "the goroutines are back at the start", func() bool { return d.goroutines() <= base })
}

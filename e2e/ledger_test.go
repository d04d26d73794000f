package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// expectStream waits for viewers of a stream of n bytes and checks each ledger.
func expectStream(t *testing.T, n uint64, names []string, vs []*viewer, errs []error) {
	t.Helper()
	for i, v := range vs {
		switch {
		case errs[i] != nil:
			t.Errorf("%s: %v", names[i], errs[i])
		case v.final != n:
			t.Errorf("%s: the stream ended at %d, the child wrote %d", names[i], v.final, n)
		default:
			t.Logf("%s: %d delivered, %d declared as lost, %d connections, %d deltas, %d snapshots, %d resyncs",
				names[i], v.delivered, v.declared, v.connects, v.deltas, v.snapshots, v.resyncs)
		}
	}
}

// Every viewer, however fast, gets each byte or is told that it will not.
func TestFloodLedger(t *testing.T) {
	n := uint64(full(20, 200)) << 20
	d := start(t)
	rng := newRand(t)
	s := d.child("flood", *seed, n)

	fast, slow, flapping := newViewer(d, s.ID, newClientID(rng)), newViewer(d, s.ID, newClientID(rng)), newViewer(d, s.ID, newClientID(rng))
	vs := []*viewer{fast, slow, flapping}
	names := []string{"fast", "slow", "flapping"}
	for _, v := range vs {
		sc := streamCheck{seed: *seed}
		v.check = sc.check
	}
	// The slow one falls behind by far more than is kept: it waits for the
	// stream's next 16 MiB each time it has read a little.
	reads, until := 0, uint64(0)
	slow.dialing.RcvBuf = 16 << 10
	slow.slow = func() {
		if reads++; reads%64 != 0 {
			return
		}
		until = min(until+16<<20, n)
		holds(20*time.Second, func() bool { return fast.position() >= until })
	}
	stop := make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() { cutAtRandom(rng, flapping, n, stop) })

	errs := make([]error, len(vs))
	var wg sync.WaitGroup
	for i, v := range vs {
		wg.Go(func() { errs[i] = v.run() })
	}
	wg.Wait()
	close(stop)
	cutter.Wait()
	expectStream(t, n, names, vs, errs)
	if slow.resyncs == 0 && slow.declared == 0 {
		t.Error("the slow viewer never fell out of what is kept: this test tested nothing")
	}
	if flapping.connects < 3 {
		t.Errorf("the flapping viewer had %d connections", flapping.connects)
	}
	if fast.connects != 1 {
		t.Errorf("the fast viewer had %d connections", fast.connects)
	}
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 0" || got.Offset != n {
		t.Errorf("the session ended with %s at offset %d", got.exit(), got.Offset)
	}
}

// cutAtRandom breaks v's connection each time it has come a random way further.
func cutAtRandom(rng *rand.Rand, v *viewer, n uint64, stop chan struct{}) {
	for {
		target := v.position() + rng.Uint64N(n/20)
		for v.position() < target {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
		v.cut()
	}
}

// Output that comes while nobody has read it yet, and stops: the last bytes
// must arrive without any further output to push them.
func TestNoLostWakeup(t *testing.T) {
	t.Parallel()
	d := start(t)
	rng := newRand(t)
	for range full(5, 100) {
		n := 1 + rng.Uint64N(300<<10)
		s := d.child("flood", *seed, n)
		v := newViewer(d, s.ID, newClientID(rng))
		sc := streamCheck{seed: *seed}
		v.check = sc.check
		if err := v.run(); err != nil {
			t.Fatalf("a stream of %d bytes: %v", n, err)
		}
		if v.final != n || v.delivered != n {
			t.Fatalf("a stream of %d bytes: %d delivered, end at %d", n, v.delivered, v.final)
		}
	}
}

// Reconnects at random moments while the session writes and the viewer types:
// every byte of output and every keystroke exactly once.
func TestReconnectStorm(t *testing.T) {
	cuts := full(30, 200)
	d := start(t)
	rng := newRand(t)
	// 4 KiB a millisecond at most; the end of the output is beyond the last cut.
	inBytes, outBytes := cuts*2000, uint64(cuts)*192<<10
	file := stateDir(t) + "/typed"
	s := d.child("chat", *seed, outBytes, file, inBytes)
	v := newViewer(d, s.ID, newClientID(rng))
	sc := streamCheck{seed: *seed}
	v.check = sc.check
	done := make(chan error, 1)
	go func() { done <- v.run() }()
	// Before the child is in raw mode, the terminal would eat control characters.
	eventually(t, time.Minute, "the first output came", func() bool { return v.position() > 0 })

	input := typed(*seed, inBytes)
	var typing sync.WaitGroup
	typeRng := rand.New(rand.NewPCG(*seed, 7))
	typing.Go(func() {
		for rest := input; len(rest) > 0; {
			k := min(1+typeRng.IntN(200), len(rest))
			if !v.typeIn(rest[:k]) {
				return
			}
			rest = rest[k:]
			// A typist waits for the echo now and then; this one for the way
			// to the daemon, so that typing lasts as long as the cuts.
			if typeRng.IntN(4) == 0 {
				holds(50*time.Millisecond, func() bool { return v.pendingInput() == 0 })
			}
		}
	})
	made := 0
	step := outBytes / uint64(cuts+2)
	for made < cuts {
		target := v.position() + 1 + rng.Uint64N(2*step)
		if !holds(30*time.Second, func() bool { return v.position() >= min(target, outBytes) || len(done) > 0 }) || v.position() == outBytes {
			break
		}
		if v.cut() {
			made++
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	typing.Wait()
	if v.declared != 0 || v.delivered != outBytes {
		t.Errorf("%d bytes delivered and %d declared as lost of %d", v.delivered, v.declared, outBytes)
	}
	t.Logf("%d cuts, %d connections, %d deltas, %d snapshots", made, v.connects, v.deltas, v.snapshots)
	if made < cuts/2 {
		t.Errorf("only %d cuts of %d were made", made, cuts)
	}
	expectFile(t, file, input)
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 0" {
		t.Errorf("the session ended with %s", got.exit())
	}
}

// One line a second, with probes as often as that: a deadline that some probe
// left behind must not end a steady stream.
func TestSteadyTrickle(t *testing.T) {
	t.Parallel()
	n := full(5, 75)
	d := start(t, daemonOptions{Args: []string{"--ping-interval", "1s"}})
	s := d.run("bash", "-c", fmt.Sprintf("for i in $(seq %d); do echo $i; sleep 1; done", n))
	v := newViewer(d, s.ID, newClientID(newRand(t)))
	v.keep = true
	if err := v.run(); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range n {
		fmt.Fprintf(&want, "%d\r\n", i+1)
	}
	if string(v.text) != want.String() || v.connects != 1 {
		t.Errorf("%d connections, %q", v.connects, v.text)
	}
}

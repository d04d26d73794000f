package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// killer kills the worker at random instants, most of them while it serves and
// some while it takes over. It returns how many it killed.
func (d *Daemon) killer(rng *rand.Rand, kills int, stop func() bool) int {
	made := 0
	for last := 0; made < kills && !stop() && !d.ended.Load(); {
		pid := d.workerNow()
		if pid == 0 || pid == last {
			time.Sleep(time.Millisecond)
			continue
		}
		if rng.IntN(5) > 0 {
			holds(20*time.Second, d.ready)
			time.Sleep(time.Duration(rng.Int64N(int64(250 * time.Millisecond))))
		} else {
			time.Sleep(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
		}
		if unix.Kill(pid, unix.SIGKILL) == nil {
			made++
			last = pid
		}
	}
	return made
}

// persist makes a call again and again until it is answered: a worker that dies
// takes the connection with it.
func (d *Daemon) persist(r request) (answer, error) {
	var a answer
	var err error
	if !holds(time.Minute, func() bool {
		a, err = d.tryCall(r)
		return err == nil && a.Status != 503
	}) {
		return a, fmt.Errorf("%s %s: not answered: %v, %v", r.Method, r.Path, a, err)
	}
	return a, nil
}

// short is a session with a known end.
type short struct {
	id, want, mark, says string
}

// churn starts sessions with known ends until it is stopped.
func churn(d *Daemon, rng *rand.Rand, dir string, stop chan struct{}) ([]short, error) {
	var all []short
	signals := []string{"KILL", "TERM", "SEGV", "HUP", "USR1"}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return all, nil
		default:
		}
		s := short{mark: fmt.Sprintf("%s/ran%d", dir, i), says: fmt.Sprintf("number %d", i)}
		end := fmt.Sprintf("exit %d", i%100)
		s.want = fmt.Sprintf("status %d", i%100)
		if rng.IntN(3) == 0 {
			sig := signals[rng.IntN(len(signals))]
			end, s.want = "kill -"+sig+" $$; sleep 10", "signal SIG"+sig
		}
		script := fmt.Sprintf("echo ran >>%s; echo %s; sleep 0.%02d; %s", s.mark, s.says, rng.IntN(30), end)
		a, err := d.persist(request{Method: "POST", Path: "/v1/sessions", Header: map[string]string{"Idempotency-Key": s.mark},
			Body: spec{"argv": []string{"bash", "-c", script}}})
		if err != nil {
			return all, err
		}
		var got session
		if err := a.decode(&got); err != nil {
			return all, err
		}
		s.id = got.ID
		all = append(all, s)
	}
}

// expectEnds checks the ends of short sessions: each ran once and ended as it
// said, or it is lost and never ran.
func expectEnds(t *testing.T, d *Daemon, all []short) {
	t.Helper()
	lost := 0
	for _, s := range all {
		var got session
		eventually(t, 20*time.Second, s.says+" has ended", func() bool {
			got = d.session(s.id)
			return got.State == "exited" || got.State == "lost"
		})
		ran, _ := os.ReadFile(s.mark)
		if got.State == "lost" {
			if lost++; len(ran) > 0 {
				t.Errorf("%s is lost (%s), and it ran", s.says, got.Error)
			}
			continue
		}
		if got.exit() != s.want || got.EndedAt == nil {
			t.Errorf("%s (%s) ended with %s, want %s; error %q, ran %q", s.says, s.id, got.exit(), s.want, got.Error, ran)
		}
		if string(ran) != "ran\n" {
			t.Errorf("%s ran %d times", s.says, strings.Count(string(ran), "ran"))
		}
		if out := string(d.output(s.id, 0)); out != s.says+"\r\n" {
			t.Errorf("%s said %q", s.says, out)
		}
	}
	t.Logf("%d sessions started and ended, %d never came to run", len(all), lost)
}

// held are the descriptors of both processes, in all and of terminals.
type held struct{ worker, workerTTY, keeper, keeperTTY int }

// fresh counts the descriptors of a new worker and its keeper, once calm.
func fresh(t *testing.T, d *Daemon) (h held) {
	t.Helper()
	d.KillWorker()
	pid := d.Worker()
	eventually(t, 10*time.Second, "the counts are calm", func() bool {
		last := h
		h.worker, h.workerTTY = descriptors(pid)
		h.keeper, h.keeperTTY = descriptors(d.Keeper())
		time.Sleep(20 * time.Millisecond)
		return h == last
	})
	return h
}

// expectNothingLeft removes all sessions and compares with before.
func expectNothingLeft(t *testing.T, d *Daemon, before held) {
	t.Helper()
	for _, s := range d.sessions() {
		if a := d.call(request{Method: "DELETE", Path: "/v1/sessions/" + s.ID + "?force=true"}); a.Status != 204 {
			t.Errorf("remove %s: %v", s.ID, a)
		}
	}
	if after := fresh(t, d); after != before {
		t.Errorf("descriptors: %+v before, %+v after", before, after)
	}
	if !holds(5*time.Second, func() bool { return len(descendants(d.Keeper())) == 1 }) {
		t.Errorf("below the keeper: %v", descendants(d.Keeper()))
	}
}

// SIGKILL of the worker at random instants, while sessions write at full speed
// and trickle, start, exit and die: no byte is lost or repeated, every status
// is right, nothing is left.
func TestWorkerKilledAtRandom(t *testing.T) {
	kills := full(40, 1000)
	d := start(t, daemonOptions{Binary: shippedBinary, Args: []string{"--output-limit", "32MiB"}}) // fast to start: most kills meet it at work
	rng := newRand(t)
	dir := stateDir(t)
	before := fresh(t, d)

	// Four at full speed in bursts that the ring keeps while nobody reads, two
	// that trickle.
	var vs []*viewer
	var files, names []string
	for i, size := range []uint64{128 << 10, 128 << 10, 64 << 10, 64 << 10, 64, 64} {
		file := fmt.Sprintf("%s/stop%d", dir, i)
		s := d.child("burst", *seed+uint64(i), file, size)
		v := newViewer(d, s.ID, newClientID(rng))
		sc := streamCheck{seed: *seed + uint64(i)}
		v.check = sc.check
		v.patience = 2 * time.Hour
		vs, files, names = append(vs, v), append(files, file), append(names, fmt.Sprintf("burst %d", i))
	}
	errs := make([]error, len(vs))
	var following sync.WaitGroup
	for i, v := range vs {
		following.Go(func() { errs[i] = v.run() })
	}
	stop := make(chan struct{})
	var churning sync.WaitGroup
	var ends []short
	var churnErr error
	churnRng := rand.New(rand.NewPCG(*seed, 11))
	churning.Go(func() { ends, churnErr = churn(d, churnRng, dir, stop) })

	made := d.killer(rng, kills, func() bool { return t.Failed() })
	close(stop)
	churning.Wait()
	for _, f := range files {
		writeFile(t, f, "")
	}
	following.Wait()
	if churnErr != nil {
		t.Error(churnErr)
	}
	if made != kills {
		t.Errorf("%d kills of %d were made", made, kills)
	}
	for i, v := range vs {
		n := uint64(0)
		if _, err := fmt.Sscan(string(readFile(t, files[i]+".n")), &n); err != nil {
			t.Fatal(err)
		}
		expectStream(t, n, names[i:i+1], vs[i:i+1], errs[i:i+1])
		if v.declared != 0 {
			t.Errorf("%s: %d bytes are declared as lost", names[i], v.declared)
		}
		if got := d.session(v.session); got.exit() != "status 0" {
			t.Errorf("%s ended with %s", names[i], got.exit())
		}
	}
	expectEnds(t, d, ends)
	st := d.status()
	t.Logf("%d kills, generation %d, %d ended sessions", made, st.Worker.Generation, len(ends))
	if st.Worker.Generation != made+2 {
		t.Errorf("%d kills, and the generation is %d", made, st.Worker.Generation)
	}
	expectNothingLeft(t, d, before)
}

// The same while two viewers are attached, one of which types: every keystroke
// arrives once, every byte of output too.
func TestTypingWhileWorkerIsKilled(t *testing.T) {
	kills := full(30, 500)
	d := start(t, daemonOptions{Binary: shippedBinary})
	rng := newRand(t)
	inBytes, outBytes := kills*4000, uint64(kills)*512<<10
	file := stateDir(t) + "/typed"
	s := d.child("chat", *seed, outBytes, file, inBytes)
	vs := []*viewer{newViewer(d, s.ID, newClientID(rng)), newViewer(d, s.ID, newClientID(rng))}
	errs := make([]error, len(vs))
	var following sync.WaitGroup
	for i, v := range vs {
		sc := streamCheck{seed: *seed}
		v.check = sc.check
		v.patience = 2 * time.Hour
		following.Go(func() { errs[i] = v.run() })
	}
	v := vs[0]
	// Before the child is in raw mode, the terminal would eat control characters.
	eventually(t, time.Minute, "the first output came", func() bool { return v.position() > 0 })

	input := typed(*seed, inBytes)
	stop := make(chan struct{})
	var typing sync.WaitGroup
	typeRng := rand.New(rand.NewPCG(*seed, 7))
	typing.Go(func() {
		// As long as there are kills, the last bytes wait: typing lasts as long.
		for rest := input; len(rest) > 0; {
			k := min(1+typeRng.IntN(200), len(rest))
			if len(rest) < 2000 {
				<-stop
			}
			if !v.typeIn(rest[:k]) {
				return
			}
			rest = rest[k:]
			if typeRng.IntN(2) == 0 {
				holds(time.Minute, func() bool { return v.pendingInput() == 0 })
				time.Sleep(time.Duration(typeRng.Int64N(int64(10 * time.Millisecond))))
			}
		}
	})
	made := d.killer(rng, kills, func() bool { return t.Failed() })
	close(stop)
	following.Wait()
	typing.Wait()
	expectStream(t, outBytes, []string{"typist", "reader"}, vs, errs)
	for _, v := range vs {
		if v.declared != 0 {
			t.Errorf("%d bytes are declared as lost", v.declared)
		}
	}
	expectFile(t, file, input)
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 0" {
		t.Errorf("the session ended with %s", got.exit())
	}
	if made != kills {
		t.Errorf("%d kills of %d were made", made, kills)
	}
}

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

// startArmed starts a daemon whose workers die at failpoints.
func startArmed(t *testing.T, points string, args ...string) *Daemon {
	t.Helper()
	return start(t, daemonOptions{Env: []string{"PTYD_TEST_FAILPOINTS=" + points}, Args: args})
}

// died waits until n workers of d have died.
func (d *Daemon) died(n int) {
	d.t.Helper()
	eventually(d.t, time.Minute, "the worker died at the failpoint", func() bool {
		return strings.Count(d.Log(), `"msg":"worker ended"`) >= n
	})
}

// The worker dies at each step of a session's way from a create to its removal:
// afterwards the session ran once or not at all, the state says which, and there
// is one end.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for point, runs := range map[string]bool{
		"ptymgr.create.inserted": false, "ptymgr.start.kept": false, "ptymgr.start.forked": false, "ptymgr.start.settled": false,
		"ptymgr.start.released": false, "ptymgr.start.opened": true, "ptymgr.create.started": true,
		"ptymgr.read.spliced": true, "ptymgr.read.copied": true,
		"ptymgr.end.reaped": true, "ptymgr.end.written": true, "ptymgr.end.recorded": true, "ptymgr.put.kept": true,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			d := startArmed(t, point+"=kill@"+dir+"/killed")
			create := request{
				Method: "POST", Path: "/v1/sessions", Header: map[string]string{"Idempotency-Key": "k"},
				Body: spec{"argv": []string{"bash", "-c", "echo ran >>" + dir + "/runs; echo said; exit 3"}, "name": "x"},
			}
			_, err := d.tryCall(create)
			d.died(1)
			eventually(t, 30*time.Second, "another worker answers", d.ready)
			if !runs && err == nil {
				t.Error("the create was answered")
			}
			// The retry of the client meets the same session, not a second one.
			a, err := d.persist(create)
			if err != nil {
				t.Fatal(err)
			}
			var s session
			a.into(t, &s)
			if list := d.sessions(); len(list) != 1 || list[0].ID != s.ID {
				t.Fatalf("after the restart: %+v", list)
			}
			eventually(t, 20*time.Second, "it has ended", func() bool { s = d.session(s.ID); return s.EndedAt != nil })
			ran, _ := os.ReadFile(dir + "/runs")
			if !runs {
				if s.State != "lost" || s.ExitCode != nil || s.Signal != nil || len(ran) > 0 {
					t.Errorf("it is %s (%q), and ran: %q", s.exit(), s.Error, ran)
				}
			} else {
				if s.exit() != "status 3" || string(ran) != "ran\n" {
					t.Errorf("it is %s (%q), and ran: %q", s.exit(), s.Error, ran)
				}
				if out := string(d.output(s.ID, 0)); out != "said\r\n" {
					t.Errorf("output %q", out)
				}
			}
			// Its end stays what it is over another restart, and so does its output.
			d.KillWorker()
			if again := d.session(s.ID); again.exit() != s.exit() || !again.EndedAt.Equal(*s.EndedAt) {
				t.Errorf("it ended with %s at %v, after one more restart with %s at %v", s.exit(), s.EndedAt, again.exit(), again.EndedAt)
			}
			if out := string(d.output(s.ID, 0)); runs && out != "said\r\n" {
				t.Errorf("output %q after one more restart", out)
			}
			if a := d.call(request{Method: "DELETE", Path: "/v1/sessions/" + s.ID}); a.Status != 204 {
				t.Error(a)
			}
			if !holds(5*time.Second, func() bool {
				_, tty := descriptors(d.Keeper())
				return tty == 0 && len(descendants(d.Keeper())) == 1
			}) {
				t.Errorf("left below the keeper: %v", descendants(d.Keeper()))
			}
		})
	}
}

// Without a key the row is written beside the making of the process: when the
// worker dies meanwhile, the session is lost or never was, it never ran, and
// nothing of it stays.
func TestKilledBesideTheRow(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"ptymgr.create.inserted", "ptymgr.start.kept", "ptymgr.start.forked", "ptymgr.start.settled"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			d := startArmed(t, point+"=kill@"+dir+"/killed")
			_, err := d.tryCall(request{
				Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"bash", "-c", "echo ran >>" + dir + "/runs"}},
			})
			if err == nil {
				t.Error("the create was answered")
			}
			d.died(1)
			eventually(t, 30*time.Second, "another worker answers", d.ready)
			if list := d.sessions(); len(list) > 1 || len(list) == 1 && list[0].State != "lost" {
				t.Errorf("after the restart: %+v", list)
			}
			if ran, err := os.ReadFile(dir + "/runs"); err == nil {
				t.Errorf("it ran: %q", ran)
			}
			if !holds(5*time.Second, func() bool {
				_, tty := descriptors(d.Keeper())
				return tty == 0 && len(descendants(d.Keeper())) == 1
			}) {
				t.Errorf("left below the keeper: %v", descendants(d.Keeper()))
			}
			if s := d.run("bash", "-c", "exit 3"); d.waitState(s.ID, "exited").exit() != "status 3" {
				t.Error("the next session")
			}
		})
	}
}

// It dies between a removed row and the descriptors: they go with the next.
func TestKilledInRemove(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	d := startArmed(t, "ptymgr.remove.deleted=kill@"+dir+"/killed")
	keep := d.run("bash", "-c", "echo kept; exit 1")
	s := d.run("bash", "-c", "echo up; exit 3")
	d.waitState(keep.ID, "exited")
	d.waitState(s.ID, "exited")
	a, err := d.persist(request{Method: "DELETE", Path: "/v1/sessions/" + s.ID})
	if err != nil || a.Status != 404 && a.Status != 204 {
		t.Errorf("remove: %v, %v", a, err)
	}
	d.died(1)
	eventually(t, 30*time.Second, "another worker answers", d.ready)
	if list := d.sessions(); len(list) != 1 || list[0].ID != keep.ID || string(d.output(keep.ID, 0)) != "kept\r\n" {
		t.Errorf("after the restart: %+v", list)
	}
	if !strings.Contains(d.Log(), "stored descriptors are dropped") {
		t.Error("nothing was dropped")
	}
}

// It dies while it takes over, and again the next one takes over all.
func TestKilledInAdoption(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	d := startArmed(t, "ptymgr.adopt.taken=kill@"+dir+"/killed")
	// The first worker met the failpoint with nothing to take.
	d.died(1)
	s := d.run("bash", "-c", "stty -echo; echo before; read x; echo after; exit 4")
	d.waitText(s.ID, "before")
	if err := os.Remove(dir + "/killed"); err != nil {
		t.Fatal(err)
	}
	d.KillWorker()
	d.died(3)
	d.input(s.ID, "\n")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 4" || string(d.output(s.ID, 0)) != "before\r\nafter\r\n" {
		t.Errorf("it is %s with %q", got.exit(), d.output(s.ID, 0))
	}
}

// Every worker dies after so many steps of the way of output or input, in the
// middle of one; all bytes come once.
func TestKilledInTransfer(t *testing.T) {
	t.Parallel()
	for point, n := range map[string]string{
		"ptymgr.read.spliced": "90", "ptymgr.read.copied": "90", "ptymgr.input.written": "20", "ptymgr.input.spliced": "20",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			rng := newRand(t)
			d := startArmed(t, point+"="+n+"*kill")
			inBytes, outBytes := 24<<10, uint64(2<<20)
			if strings.Contains(point, "input") {
				outBytes = 64 << 10
			}
			file := stateDir(t) + "/typed"
			s := d.child("chat", *seed, outBytes, file, inBytes)
			v := newViewer(d, s.ID, newClientID(rng))
			sc := streamCheck{seed: *seed}
			v.check = sc.check
			done := make(chan error, 1)
			go func() { done <- v.run() }()
			eventually(t, time.Minute, "the first output came", func() bool { return v.position() > 0 })
			input := typed(*seed, inBytes)
			for rest := input; len(rest) > 0; {
				k := min(1+rng.IntN(300), len(rest))
				if !v.typeIn(rest[:k]) {
					break
				}
				rest = rest[k:]
				holds(time.Minute, func() bool { return v.pendingInput() < 200 || len(done) > 0 })
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if v.final != outBytes || v.declared != 0 {
				t.Errorf("%d bytes of %d, %d declared as lost", v.final, outBytes, v.declared)
			}
			expectFile(t, file, input)
			if got := d.waitState(s.ID, "exited"); got.exit() != "status 0" {
				t.Errorf("it ended with %s", got.exit())
			}
			if n := strings.Count(d.Log(), `"msg":"worker ended"`); n < 2 {
				t.Errorf("the worker died %d times: this test tested little", n)
			} else {
				t.Logf("the worker died %d times", n)
			}
		})
	}
}

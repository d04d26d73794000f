package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/wire"
)

// tree is a command that leaves its session in every way there is: a child in
// the background, one with a process group of its own, one with a session of
// its own, and one whose parent is gone; all ignore what asks politely.
const tree = `trap '' TERM HUP INT
sleep 1001 &
setsid sleep 1002 &
setsid bash -c 'trap "" TERM HUP; sleep 1003 & wait' &
(setsid bash -c 'trap "" TERM HUP; while :; do sleep 1004; done' &) &
sleep 0.2
echo all up
wait`

// Close ends all of it: TERM, grace, KILL, whatever left the session's group.
func TestCloseEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close", "kill command", "SIGTERM to the daemon"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := start(t, daemonOptions{Args: []string{"--grace", "300ms"}})
			s := d.run("bash", "-c", tree)
			d.waitText(s.ID, "all up")
			ids := map[string]bool{s.ID: true}
			var all []process
			eventually(t, time.Minute, "the tree has all its sleepers", func() bool {
				all = withSession(ids)
				text := fmt.Sprint(all)
				return strings.Contains(text, "sleep 1001") && strings.Contains(text, "sleep 1002") &&
					strings.Contains(text, "sleep 1003") && strings.Contains(text, "sleep 1004")
			})
			switch how {
			case "close":
				begin := time.Now()
				got := d.closeSession(s.ID, 300)
				if got.exit() != "signal SIGKILL" {
					t.Errorf("a session that ignores TERM was closed with %s", got.exit())
				}
				if took := time.Since(begin); took < 300*time.Millisecond {
					t.Errorf("close took %v, the grace is 300 ms", took)
				}
			case "kill command":
				d.mustCLI("kill", s.ID)
				d.waitState(s.ID, "exited")
			case "SIGTERM to the daemon":
				d.Stop()
			}
			if !holds(10*time.Second, func() bool { return len(withSession(ids)) == 0 }) {
				t.Errorf("still there: %v", withSession(ids))
			}
			for _, p := range all {
				if p.alive() {
					t.Errorf("still alive: %v", p)
				}
			}
		})
	}
}

// A polite session ends within the grace, with its own status.
func TestCloseGivesGrace(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", `trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done`)
	d.waitText(s.ID, "up")
	if got := d.closeSession(s.ID, 30000); got.exit() != "status 3" {
		t.Errorf("closed with %s, want status 3", got.exit())
	}
	if out := string(d.output(s.ID, 0)); !strings.Contains(out, "bye") {
		t.Errorf("the last words are missing: %q", out)
	}
	d.closeSession(s.ID, 0) // closing what has ended changes nothing
	if got := d.session(s.ID); got.exit() != "status 3" {
		t.Errorf("after a second close: %s", got.exit())
	}
}

// The status is the kernel's, whatever the way out.
func TestExitStatusIsExact(t *testing.T) {
	t.Parallel()
	d := start(t)
	for script, want := range map[string]string{
		"exit 0":        "status 0",
		"exit 255":      "status 255",
		"kill -KILL $$": "signal SIGKILL",
		"kill -SEGV $$": "signal SIGSEGV",
		"kill -TERM $$": "signal SIGTERM",
		"kill -HUP $$":  "signal SIGHUP",
		// More than a read's worth of output right before the end.
		"head -c 300000 /dev/zero | tr '\\0' x; exit 9": "status 9",
		// The leader ends while a child still holds the terminal open.
		"trap '' HUP; (trap '' HUP; exec sleep 1000) & exit 4": "status 4",
		// The leader closes its terminal and lives on for a while.
		"exec </dev/null >/dev/null 2>&1; sleep 0.3; exit 6": "status 6",
		// It closes its terminal, opens it again and writes.
		"tty=$(tty); exec </dev/null >/dev/null 2>&1; sleep 0.3; echo back >$tty; exit 8": "status 8",
	} {
		s := d.run("bash", "-c", script)
		got := d.waitState(s.ID, "exited")
		if got.exit() != want {
			t.Errorf("%q ended with %s, want %s", script, got.exit(), want)
		}
		out := string(d.output(s.ID, 0))
		if strings.Contains(script, "300000") && strings.Count(out, "x") != 300000 {
			t.Errorf("%q gave %d bytes", script, len(out))
		}
		if strings.Contains(script, "back") && !strings.Contains(out, "back") {
			t.Errorf("%q gave %q: what came after the reopening is missing", script, out)
		}
		if got.EndedAt == nil || got.EndedAt.Before(got.CreatedAt) {
			t.Errorf("%q: ended at %v, created at %v", script, got.EndedAt, got.CreatedAt)
		}
		d.call(request{Method: "DELETE", Path: "/v1/sessions/" + s.ID})
		// A child that ignores the hang-up lives on after its leader, as after
		// a logout; it is nobody's session any more.
		for _, p := range withSession(map[string]bool{s.ID: true}) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

// EXIT comes after the last byte, to viewers that are there and that come later.
func TestExitComesLast(t *testing.T) {
	t.Parallel()
	d := start(t)
	rng := newRand(t)
	for range full(10, 300) {
		n := 4096 + rng.Uint64N(1<<20)
		s := d.child("flood", *seed, n)
		v := newViewer(d, s.ID, newClientID(rng))
		if err := v.run(); err != nil {
			t.Fatal(err)
		}
		late := newViewer(d, s.ID, newClientID(rng))
		if err := late.run(); err != nil {
			t.Fatal(err)
		}
		if v.final != n || late.final != n || late.delivered != n {
			t.Fatalf("%d bytes: ends at %d and %d, the late viewer got %d", n, v.final, late.final, late.delivered)
		}
		if v.exit.Code == nil || *v.exit.Code != 0 || v.exit.State != "exited" {
			t.Fatalf("EXIT says %+v", v.exit)
		}
	}
}

// Signals reach the foreground process group, also past a full input queue.
func TestSignal(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", `trap 'echo got-usr1' USR1; trap 'echo got-int' INT; stty -echo; echo up; while :; do sleep 0.05; done`)
	d.waitText(s.ID, "up")
	for sig, want := range map[string]string{"USR1": "got-usr1", "SIGINT": "got-int"} {
		if a := d.call(request{Method: "POST", Path: "/v1/sessions/" + s.ID + "/signal", Body: spec{"signal": sig}}); a.Status != 204 {
			t.Fatal(a)
		}
		d.waitText(s.ID, want)
	}
	d.call(request{Method: "POST", Path: "/v1/sessions/" + s.ID + "/signal", Body: spec{"signal": "NONSENSE"}}).want(t, 400, "invalid_argument")
	// Nobody reads: the queue fills up, and SIGNAL goes past it.
	c := d.mustDial(dialing{})
	c.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24})
	for off := 0; off < 60<<10; off += 1 << 10 {
		line := append(make([]byte, 0, 1<<10), strings.Repeat("x", 1<<10-1)+"\n"...)
		if err := c.send(wire.Frame{Type: wire.TypeInput, Channel: 1, Offset: uint64(off), Payload: line}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.send(wire.Control(wire.TypeSignal, 1, 0, wire.Signal{Signal: "KILL"})); err != nil {
		t.Fatal(err)
	}
	f := c.until(t, wire.TypeExit)
	e, err := wire.Parse[wire.Exit](f)
	if err != nil || e.Signal == nil || *e.Signal != "SIGKILL" {
		t.Errorf("EXIT says %s", f.Payload)
	}
	if got := d.session(s.ID).PID; got != s.PID {
		t.Errorf("the pid changed from %s to %s", strconv.Itoa(s.PID), strconv.Itoa(got))
	}
}

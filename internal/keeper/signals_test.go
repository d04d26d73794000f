package keeper

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// By hand, SIGINT and SIGTERM end the sessions by the worker, whose status is
// the keeper's.
func TestEndByHand(t *testing.T) {
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		r := newRig(t, config{})
		w := r.ready()
		w.must("on", "SIGINT", "exit 41")
		r.signal(s)
		if got := w.died(); !slices.Equal(got, []string{"SIGINT"}) {
			t.Errorf("%v: the worker saw %q", s, got)
		}
		if code := r.code(); code != 41 {
			t.Errorf("%v: exit status %d", s, code)
		}
		if _, err := os.Stat(filepath.Join(r.c.Dir, "notify")); err == nil {
			t.Errorf("%v: the socket is left", s)
		}
	}
}

// A second signal hurries the worker, a third one does not wait for it.
func TestHurry(t *testing.T) {
	r := newRig(t, config{})
	w := r.ready()
	w.must("on", "SIGINT", "stay")
	for range 2 {
		r.signal(unix.SIGTERM)
		w.event("SIGINT")
	}
	r.signal(unix.SIGTERM)
	if code := r.code(); code != 128+int(unix.SIGKILL) {
		t.Errorf("exit status %d", code)
	}
}

// One that takes too long is killed without being asked.
func TestEndTakesTooLong(t *testing.T) {
	r := newRig(t, config{End: 50 * time.Millisecond})
	w := r.ready()
	w.must("on", "SIGINT", "stay")
	r.signal(unix.SIGINT)
	if code := r.code(); code != 128+int(unix.SIGKILL) {
		t.Errorf("exit status %d", code)
	}
	r.logged("did not go in time")
}

// Where the worker crashes on its way, or dies first, the keeper ends the
// sessions itself: first in kindness, then all that is left, and their orphans.
func TestSweep(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(r *rig) (w *remote)
	}{
		{"crash", func(r *rig) *remote {
			w := r.ready()
			w.must("on", "SIGINT", "kill 9")
			return w
		}},
		{"no worker", func(r *rig) *remote {
			w := r.ready()
			return w
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, config{Sweep: 100 * time.Millisecond, BackoffMin: time.Hour, BackoffMax: time.Hour})
			b := newBrood(t)
			w := c.start(r)
			w.must("spawn", b.argv("kind")...)
			w.must("spawn", "/bin/sh", "-c", "trap '' TERM HUP; "+b.script("stubborn"))
			w.must("spawn", "/bin/sh", "-c", "trap '' TERM HUP; ("+b.script("orphan")+") & wait")
			pids := []int{b.pid("kind"), b.pid("stubborn"), b.pid("orphan")}
			pids = append(pids, childrenOf(pids[2])...)
			if len(pids) != 4 {
				t.Fatalf("processes %v", pids)
			}
			if c.name == "no worker" {
				w.kill(unix.SIGKILL)
				r.worker().kill(unix.SIGKILL) // unready: the next comes in an hour
				r.logged("started again")
			}
			r.signal(unix.SIGTERM)
			r.code()
			for _, pid := range pids {
				if s := procState(pid); s != "" && s != "Z" {
					t.Errorf("process %d is in state %s", pid, s)
				}
			}
		})
	}
}

// Whoever sits there is asked while sessions run, and only then.
func TestConfirm(t *testing.T) {
	r := newRig(t, config{Confirm: true})
	w := r.ready()
	r.signal(unix.SIGINT)
	if code := r.code(); code != 0 {
		t.Errorf("without sessions: exit status %d", code)
	}
	_ = w

	r = newRig(t, config{Confirm: true})
	asked := filepath.Join(r.c.Dir, "confirm.asked")
	wait := func() {
		t.Helper()
		await(t, "the question", func() bool { return os.Remove(asked) == nil })
	}
	w = r.ready()
	w.must("store", "g", "not a session's", "nor this")
	w.must("store", "1", "one that has ended")
	w.must("store", "0", "a session's", "two")
	w.must("on", "SIGINT", "exit 42")
	w.must("barrier")
	for i, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		r.signal(s)
		wait()
		if err := os.WriteFile(filepath.Join(r.c.Dir, "confirm.no"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.loggedTimes(i+1, "was not to end")
		w.must("barrier") // all goes on
	}
	// A worker may die meanwhile.
	r.signal(unix.SIGINT)
	wait()
	w.kill(unix.SIGKILL)
	w = r.ready()
	w.must("on", "SIGINT", "exit 43")
	if err := os.WriteFile(filepath.Join(r.c.Dir, "confirm.yes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := r.code(); code != 43 {
		t.Errorf("confirmed: exit status %d", code)
	}

	r = newRig(t, config{Confirm: true})
	asked = filepath.Join(r.c.Dir, "confirm.asked")
	w = r.ready()
	w.must("store", "0", "a session's", "two")
	w.must("on", "SIGINT", "exit 44")
	w.must("barrier")
	r.signal(unix.SIGINT)
	wait()
	r.signal(unix.SIGINT) // and the question is withdrawn
	if code := r.code(); code != 44 {
		t.Errorf("twice: exit status %d", code)
	}
}

// SIGHUP is passed on to a worker that has a handler for it.
func TestHangUpReloads(t *testing.T) {
	r := newRig(t, config{})
	w := r.worker()
	r.signal(unix.SIGHUP)
	w.must("barrier")
	w.must("send", "READY=1")
	w.must("barrier")
	r.signal(unix.SIGHUP)
	w.event("SIGHUP")
	w.must("barrier")
}

// terminal gives the keeper a terminal of its own and returns its master.
func terminal(t *testing.T) (master int, attach func(*exec.Cmd)) {
	t.Helper()
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, func(cmd *exec.Cmd) {
		cmd.Stdin = slave
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
}

// A closed terminal ends what was not told to stay, once.
func TestTerminalCloses(t *testing.T) {
	master, attach := terminal(t)
	r := newRig(t, config{}, attach)
	w := r.ready()
	w.must("on", "SIGINT", "exit 45")
	_ = unix.Close(master)
	if code := r.code(); code != 45 {
		t.Errorf("exit status %d", code)
	}

	master, attach = terminal(t)
	r = newRig(t, config{Stay: true}, attach)
	w = r.ready()
	r.signal(unix.SIGHUP) // from somebody, with the terminal still there
	w.event("SIGHUP")
	_ = unix.Close(master)
	r.logged("the terminal closed")
	w.must("barrier")
	r.signal(unix.SIGHUP)
	w.event("SIGHUP")
}

// Ctrl-C reaches the keeper and not the worker, which would not ask.
func TestInterruptCharacter(t *testing.T) {
	master, attach := terminal(t)
	r := newRig(t, config{Confirm: true}, attach)
	w := r.ready()
	w.must("store", "0", "a session's", "two")
	w.must("barrier")
	if _, err := unix.Write(master, []byte{3}); err != nil {
		t.Fatal(err)
	}
	await(t, "the question", func() bool { return os.Remove(filepath.Join(r.c.Dir, "confirm.asked")) == nil })
	w.must("barrier")
	select {
	case e := <-w.events:
		t.Errorf("the worker saw %s", e)
	default:
	}
	_ = unix.Close(master)
	r.code()
}

// The keeper's death, however sudden, is told to the worker.
func TestKeeperKilled(t *testing.T) {
	r := newRig(t, config{})
	w := r.ready()
	r.signal(unix.SIGKILL)
	if got := w.died(); !slices.Equal(got, []string{"SIGUSR2"}) {
		t.Errorf("the worker saw %q", got)
	}
}

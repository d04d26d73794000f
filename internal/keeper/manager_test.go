package keeper

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// manager is a service manager, as far as a keeper sees one.
type manager struct {
	t     *testing.T
	s     *notifyproto.Server
	store []held // as systemd keeps them: over a keeper's death
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "manager")
	if err != nil {
		t.Fatal(err)
	}
	s, err := notifyproto.Listen(filepath.Join(dir, "notify"))
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{t: t, s: s}
	t.Cleanup(func() {
		_ = s.Close()
		for _, h := range m.store {
			_ = unix.Close(h.fd)
		}
		_ = os.RemoveAll(dir)
	})
	return m
}

// expect receives notices until one has all of vars, and does what they say.
// Any that is not listed in others is an error.
func (m *manager) expect(pid int, vars string, others ...string) {
	m.t.Helper()
	want, err := notifyproto.Decode([]byte(vars))
	if err != nil {
		m.t.Fatal(err)
	}
	for {
		got, cred, err := m.receive()
		if err != nil {
			m.t.Fatalf("%q: %v", vars, err)
		}
		if int(cred.Pid) != pid {
			m.t.Errorf("a notice of %d, not of the keeper %d", cred.Pid, pid)
		}
		name := got.Vars["FDNAME"]
		switch {
		case got.Vars["FDSTORE"] == "1":
			if got.Vars["FDPOLL"] != "0" {
				m.t.Errorf("without FDPOLL=0: %v", got.Vars)
			}
			for _, fd := range got.FDs {
				m.store = append(m.store, held{name, fd})
			}
			got.FDs = nil
		case got.Vars["FDSTOREREMOVE"] == "1":
			m.store = slices.DeleteFunc(m.store, func(h held) bool {
				if h.name == name {
					_ = unix.Close(h.fd)
				}
				return h.name == name
			})
		}
		got.Close()
		if maps.Equal(got.Vars, want) {
			return
		}
		if !slices.ContainsFunc(others, func(o string) bool { _, ok := got.Vars[o]; return ok }) {
			m.t.Fatalf("got %v, want %v", got.Vars, want)
		}
	}
}

func (m *manager) receive() (notifyproto.Message, unix.Ucred, error) {
	type result struct {
		m    notifyproto.Message
		cred unix.Ucred
		err  error
	}
	c := make(chan result, 1)
	go func() {
		got, cred, err := m.s.Receive()
		c <- result{got, cred, err}
	}()
	select {
	case r := <-c:
		return r.m, r.cred, r.err
	case <-time.After(patience):
		_ = m.s.Close()
		<-c
		return notifyproto.Message{}, unix.Ucred{}, fmt.Errorf("no notice within %v", patience)
	}
}

// under has a keeper started by the manager, with what it holds.
func (m *manager) under(env ...string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.s.Path())
		cmd.Env = append(cmd.Env, env...)
		if len(m.store) == 0 {
			return
		}
		var names []string
		for _, h := range m.store {
			fd, err := unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				m.t.Fatal(err)
			}
			names = append(names, h.name)
			cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), h.name))
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
		// Only the process itself can know its id.
		cmd.Args = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
}

func (m *manager) names() []string {
	var out []string
	for _, h := range m.store {
		out = append(out, h.name)
	}
	return out
}

// fakeSystemctl answers list-jobs.
func fakeSystemctl(t *testing.T, answer string) (path string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\n"+answer+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

const unit = "ptyd.service"

// Everything that must outlive the keeper goes upward before the worker is told
// that it is safe, and comes back to the next keeper.
func TestManagerKeeps(t *testing.T) {
	m := newManager(t)
	r := newRig(t, config{Unit: unit}, m.under("FDSTORE=30"))
	pid := r.cmd.Process.Pid
	m.expect(pid, "FDSTORE=1\nFDNAME=x\nFDPOLL=0")
	w := r.worker()
	if w.FDMax != 29-sharedFDs {
		t.Errorf("room for %d", w.FDMax)
	}
	w.must("store", "0", "a", "b")
	w.must("store", "1", "c")
	w.must("send", "FDSTOREREMOVE=1", "FDNAME=1")
	w.must("send", "STATUS=well")
	w.must("send", "WATCHDOG=1") // is between worker and keeper
	w.must("send", "STOPPING=1") // the worker's going is not the unit's
	w.must("send", "READY=1")
	settled := make(chan error, 1)
	go func() { _, err := w.try("barrier"); settled <- err }()
	m.expect(pid, "FDSTORE=1\nFDNAME=0\nFDPOLL=0")
	m.expect(pid, "FDSTORE=1\nFDNAME=1\nFDPOLL=0")
	m.expect(pid, "FDSTOREREMOVE=1\nFDNAME=1")
	m.expect(pid, "STATUS=well")
	m.expect(pid, "READY=1")
	select {
	case err := <-settled:
		t.Fatalf("the barrier fell before the manager had it: %v", err)
	default:
	}
	m.expect(pid, "BARRIER=1")
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	if got := m.names(); !slices.Equal(got, []string{"x", "0", "0"}) {
		t.Errorf("the manager holds %q", got)
	}

	// An end that is recorded survives the keeper.
	w.must("spawn", "/bin/sh", "-c", "exit 17")
	e := w.exits()
	await(t, "the record", func() bool { return e.Len() == 1 })
	r.signal(unix.SIGKILL)
	w.died()
	r.code()
	r.launch(m.under("FDSTORE=30"))
	w = r.ready2(m)
	if !slices.Equal(w.stored(), []string{"0", "0"}) || w.Gen != 1 {
		t.Errorf("%+v", w.hello)
	}
	if got := w.must("read", "0"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("0 holds %q", got)
	}
	if got := w.must("next"); got[2] != "17" {
		t.Errorf("the record is %q", got)
	}
}

// ready2 is ready under a manager, which the barrier needs.
func (r *rig) ready2(m *manager) *remote {
	r.t.Helper()
	w := r.worker()
	w.must("send", "READY=1")
	m.expect(r.cmd.Process.Pid, "READY=1", "FDSTORE", "FDSTOREREMOVE", "WATCHDOG")
	return w
}

// Foreign and damaged descriptors are dropped, here and above.
func TestForeignDescriptors(t *testing.T) {
	m := newManager(t)
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "xe", "lock", "0", "lt0"} {
		fd, err := unix.FcntlInt(uintptr(null), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		m.store = append(m.store, held{name, fd})
	}
	_ = unix.Close(null)
	r := newRig(t, config{Unit: unit}, m.under())
	w := r.ready2(m)
	if !slices.Equal(w.stored(), []string{"0", "lt0"}) {
		t.Errorf("%+v", w.hello)
	}
	if got := m.names(); !slices.Equal(got, []string{"0", "lt0", "x"}) {
		t.Errorf("the manager holds %q", got)
	}
}

// SIGTERM is a stop only when the manager says so.
func TestManagerStops(t *testing.T) {
	for _, c := range []struct {
		answer string
		signal string // what the worker sees
		code   int
		most   int // FileDescriptorStoreMax, as the unit hands it over
	}{
		{"echo '12 other.service stop running'; echo '13 ptyd.service stop running'", "SIGINT", 46, 30},
		{"echo '13 ptyd.service restart running'; echo '12 other.service stop running'", "SIGTERM", 0, 30},
		{"echo '12 other.service stop running'", "SIGTERM", 0, 30},
		{"exit 1", "SIGTERM", 0, 30},
		{"exec sleep 1000", "SIGTERM", 0, 30},
		// Nobody would keep them: they end.
		{"echo '13 ptyd.service restart running'", "SIGINT", 46, 0},
	} {
		m := newManager(t)
		r := newRig(t, config{Unit: unit, Confirm: true, Job: 300 * time.Millisecond, FDMax: c.most}, m.under(fakeSystemctl(t, c.answer)))
		pid := r.cmd.Process.Pid
		w := r.ready2(m)
		if w.Supervised != (c.most > 0) {
			t.Errorf("with a store of %d the worker is told: %t", c.most, w.Supervised)
		}
		w.must("on", "SIGINT", "exit 46")
		w.must("store", "0", "a")
		m.expect(pid, "FDSTORE=1\nFDNAME=0\nFDPOLL=0")
		r.signal(unix.SIGTERM)
		m.expect(pid, "STOPPING=1")
		if got := w.died(); !slices.Equal(got, []string{c.signal}) {
			t.Errorf("%s: the worker saw %q", c.answer, got)
		}
		if c.signal == "SIGTERM" {
			m.expect(pid, "BARRIER=1") // the keeper goes when the manager has all
		}
		if code := r.code(); code != c.code {
			t.Errorf("%s: exit status %d", c.answer, code)
		}
		if got := m.names(); !slices.Equal(got, []string{"x", "0"}) {
			t.Errorf("%s: the manager holds %q", c.answer, got)
		}
	}
}

// An upgrade is nothing that the manager would notice, and a manager that reads
// nothing for a while delays it.
func TestUpgradeUnderManager(t *testing.T) {
	m := newManager(t)
	r := newRig(t, config{Unit: unit}, m.under("WATCHDOG_USEC=100000", "FDSTORE=100"))
	pid := r.cmd.Process.Pid
	w := r.ready2(m)
	binary := copyOf(t, filepath.Join(t.TempDir(), "ptyd"))
	w.must("ask", "X_PTYD_UPGRADE="+binary)
	w.died()
	w = r.worker()
	w.must("store", "0", "a")
	w.must("send", "READY=1")
	m.expect(pid, "FDSTORE=1\nFDNAME=0\nFDPOLL=0", "WATCHDOG")
	m.expect(pid, "READY=1", "WATCHDOG")
	r.logged("keeper goes on with its new binary")
	for range 3 {
		m.expect(pid, "WATCHDOG=1") // the new keeper lives
	}
	w.must("store", "1", "b")
	m.expect(pid, "FDSTORE=1\nFDNAME=1\nFDPOLL=0", "WATCHDOG")
	if got := m.names(); !slices.Equal(got, []string{"x", "0", "1"}) {
		t.Errorf("the manager holds %q", got)
	}
}

func TestUnit(t *testing.T) {
	for _, c := range []struct {
		cgroups, unit string
		user          bool
	}{
		{"0::/system.slice/ptyd.service\n", "ptyd.service", false},
		{"0::/system.slice/ptyd.service/keeper\n", "ptyd.service", false},
		{"12:cpu:/\n1:name=systemd:/system.slice/ptyd@a.service\n0::/x\n", "ptyd@a.service", false},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/ptyd.service\n", "ptyd.service", true},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/run.scope\n", "user@1000.service", false},
		{"0::/user.slice/user-0.slice/session-1.scope\n", "", false},
		{"0::/\n", "", false},
		{"9:name=systemd:/\n8:pids:/\n0::/system.slice/ptyd.service\n", "ptyd.service", false},
		{"", "", false},
	} {
		if unit, user := unitOf(c.cgroups); unit != c.unit || user != c.user {
			t.Errorf("%q: %q, %v", c.cgroups, unit, user)
		}
	}
}

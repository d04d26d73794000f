package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/wire"
)

// A second daemon on the same state directory is refused, and says why.
func TestSecondDaemonIsRefused(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("sleep", "1000")
	second := launch(t, daemonOptions{StateDir: d.StateDir})
	if code := second.Wait(30 * time.Second); code != 125 {
		t.Errorf("the second daemon exited with %d, want 125", code)
	}
	if log := second.Log(); !strings.Contains(log, d.StateDir) || !strings.Contains(log, "another") {
		t.Errorf("the second daemon says: %s", log)
	}
	if got := d.session(s.ID); got.State != "running" {
		t.Errorf("the session is %s", got.State)
	}
}

// SIGTERM: viewers are told, sessions end with their whole tree, rows say so.
func TestSigterm(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Args: []string{"--grace", "2s"}})
	polite := d.run("bash", "-c", `trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done`)
	d.waitText(polite.ID, "up")
	plain := d.run("sleep", "1000")
	done := d.run("bash", "-c", "exit 3")
	d.waitState(done.ID, "exited")
	c := d.mustDial(dialing{})
	c.attach(t, 1, wire.Attach{Session: polite.ID, Visible: true, Cols: 80, Rows: 24})
	d.Signal(syscall.SIGTERM)
	if code, _ := c.end(t); code != wire.CloseShutdown {
		t.Errorf("the viewer's connection ended with %d, want %d", code, wire.CloseShutdown)
	}
	if code := d.Wait(30 * time.Second); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := os.Stat(d.Socket()); err == nil {
		t.Error("the socket is still there")
	}
	if r := d.CLI("ls"); r.Code != 125 {
		t.Errorf("ls without a daemon: %v", r)
	}
	again := start(t, daemonOptions{StateDir: d.StateDir})
	for id, want := range map[string]string{polite.ID: "status 5", plain.ID: "signal SIGTERM", done.ID: "status 3"} {
		if got := again.session(id); got.exit() != want || got.EndedAt == nil {
			t.Errorf("after the restart %v is %s, want %s", got.Argv, got.exit(), want)
		}
	}
}

// Between the choice of the first offset and the first frame, output comes: it
// must be delivered exactly once.
func TestAttachSeam(t *testing.T) {
	t.Parallel()
	pause := stateDir(t) + "/pause"
	d := start(t, daemonOptions{Env: []string{"PTYD_TEST_FAILPOINTS=ws.attach.subscribed=1*pause:" + pause}})
	s := d.run("bash", "-c", `stty -echo; echo before; read x; echo "in the seam"; read x; echo after; exit 0`)
	d.waitText(s.ID, "before")
	v := newViewer(d, s.ID, newClientID(newRand(t)))
	var kept lockedText
	v.check = func(_ uint64, b []byte) error { kept.add(b); return nil }
	done := make(chan error, 1)
	go func() { done <- v.run() }()
	eventually(t, time.Minute, "the attach stands in the seam", func() bool { _, err := os.Stat(pause); return err == nil })
	d.input(s.ID, "\n")
	d.waitText(s.ID, "in the seam")
	if err := os.Remove(pause); err != nil {
		t.Fatal(err)
	}
	d.input(s.ID, "\n")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := kept.String(); got != "before\r\nin the seam\r\nafter\r\n" {
		t.Errorf("the viewer got %q", got)
	}
}

// Everything in the state directory is the owner's alone.
func TestStateDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.waitState(d.run("true").ID, "exited")
	err := filepath.WalkDir(d.StateDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if perm := info.Mode().Perm(); perm&0o077 != 0 {
			t.Errorf("%s has mode %o", path, perm)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Mistakes in the configuration are errors that name the key, before anything starts.
func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	file := stateDir(t) + "/config.toml"
	writeFile(t, file, "grace = \"1s\"\nsession_limit = 5\n")
	for want, o := range map[string]daemonOptions{
		"listen":        {Args: []string{"--listen", "0.0.0.0:0"}},
		"grace":         {Args: []string{"--grace", "soon"}},
		"session_limit": {Args: []string{"--config", file}},
		"min_free":      {Env: []string{"PTYD_MIN_FREE=much"}},
		"tls_key":       {Args: []string{"--tls-cert", "/nowhere.pem"}},
		"sessionz":      {Env: []string{"PTYD_SESSIONZ=3"}},
		"--nonsense":    {Args: []string{"--nonsense"}},
	} {
		d := launch(t, o)
		if code := d.Wait(30 * time.Second); code != 125 || !strings.Contains(d.Log(), want) {
			t.Errorf("%v %v: exit status %d, says %q, want 125 and %q", o.Args, o.Env, code, d.Log(), want)
		}
	}
}

// A full disk refuses new sessions, with a clear error; what runs goes on.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("left out: TestFullDisk mounts a small file system, which needs root")
	}
	dir := stateDir(t)
	if err := unix.Mount("ptyd-e2e", dir, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		t.Fatalf("mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	d := start(t, daemonOptions{StateDir: dir, Args: []string{"--min-free", "4MiB"}})
	s := d.create(spec{"argv": []string{"bash", "-c", "stty -echo; echo up; cat"}, "name": "runs"})
	d.waitText(s.ID, "up")

	fill := func(leave int64) {
		t.Helper()
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("filler-%d", leave)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if n := int64(st.Bavail)*st.Bsize - leave; n > 0 {
			if err := unix.Fallocate(int(f.Fd()), 0, 0, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused := func(when string) {
		t.Helper()
		a := d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"sleep", "1000"}}})
		a.want(t, 507, "disk_full")
		if r := d.CLI("run", "-d", "--", "sleep", "1000"); r.Code != 125 || !strings.Contains(r.Stderr, "disk") {
			t.Errorf("%s: run: %v", when, r)
		}
		d.input(s.ID, when+"\n")
		d.waitText(s.ID, when)
	}
	fill(2 << 20)
	refused("nearly full")
	fill(0)
	refused("wholly full")
	var st struct{ Disk struct{ OK bool } }
	d.get("/v1/status", &st)
	if st.Disk.OK {
		t.Error("status says the disk is well")
	}
	for _, leave := range []int64{2 << 20, 0} {
		_ = os.Remove(filepath.Join(dir, fmt.Sprintf("filler-%d", leave)))
	}
	eventually(t, time.Minute, "creating works again", func() bool {
		return d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"sleep", "1000"}}}).Status == 201
	})
	d.Stop()
}

// Ended sessions go by themselves after the configured time; running ones stay.
func TestRetention(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Args: []string{"--remove-after", "4s"}})
	keep := d.run("sleep", "1000")
	s := d.run("bash", "-c", "echo short; exit 3")
	got := d.waitState(s.ID, "exited")
	if out := string(d.output(s.ID, 0)); out != "short\r\n" {
		t.Errorf("the ended session's output is %q", out)
	}
	eventually(t, 2*time.Minute, "the ended session is removed", func() bool {
		return d.call(request{Path: "/v1/sessions/" + s.ID}).Status == 404
	})
	if kept := time.Since(*got.EndedAt); kept < 4*time.Second {
		t.Errorf("it was removed after %v, want 4 s", kept)
	}
	if got := d.session(keep.ID); got.State != "running" {
		t.Errorf("the running session is %s", got.State)
	}
}

// Limits on sessions are per owner and in all; the error says which.
func TestSessionLimits(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Args: []string{"--sessions-per-owner", "2", "--sessions-total", "3"}})
	first := d.run("sleep", "1000")
	d.run("sleep", "1000")
	body := request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"sleep", "1000"}}}
	a := d.call(body).want(t, 429, "limit_reached")
	if !strings.Contains(string(a.Body), "2") {
		t.Errorf("the limit is not named: %v", a)
	}
	d.closeSession(first.ID, 100)
	if a := d.call(body); a.Status != 201 {
		t.Errorf("after one ended: %v", a)
	}
	d.note()
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"true"}, "name": strings.Repeat("n", 5000)}}).want(t, 400, "invalid_argument")
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"true"}, "cols": 100000}}).want(t, 400, "invalid_argument")
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{}}}).want(t, 400, "invalid_argument")
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"true"}, "colour": "red"}}).want(t, 400, "invalid_argument")
}

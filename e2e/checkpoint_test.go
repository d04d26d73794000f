package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/checkpoint"
	"github.com/ptyd/ptyd/internal/wire"
)

// counter prints numbers for ever, two hundred in ten milliseconds at most.
const counter = `for ((i=1;;i++)); do printf '%07d\n' $i; ((i % 200)) || sleep 0.01; done`

// reboot ends keeper and worker as a machine does that loses its power: neither
// does anything any more.
func (d *Daemon) reboot() {
	d.t.Helper()
	worker, _ := readProcess(d.Worker())
	d.note()
	for _, pid := range []int{d.Keeper(), worker.PID} {
		_ = unix.Kill(pid, unix.SIGSTOP)
	}
	_ = unix.Kill(worker.PID, unix.SIGKILL)
	d.KillKeeper()
	eventually(d.t, 10*time.Second, "the worker is gone", func() bool { return !worker.alive() })
}

func (d *Daemon) checkpoints() string { return filepath.Join(d.StateDir, "checkpoints") }

// files are the names of a session's checkpoint.
func (d *Daemon) files(id string) []string {
	d.t.Helper()
	names, err := filepath.Glob(filepath.Join(d.checkpoints(), id+"*"))
	if err != nil {
		d.t.Fatal(err)
	}
	return names
}

// saved is how far a session's checkpoint reaches.
func (d *Daemon) saved(s session) uint64 {
	var epoch uint64
	if _, err := fmt.Sscanf(s.Epoch, "%x", &epoch); err != nil {
		d.t.Fatal(err)
	}
	_, end, _ := checkpoint.Open(d.checkpoints()).Extent(s.ID, epoch)
	return end
}

// expectCount checks that output is lines that count up by one, from the first
// number on where it begins at offset 0.
func expectCount(t *testing.T, out string, from uint64, width int) {
	t.Helper()
	line := width + 2
	skip := (line - int(from%uint64(line))) % line
	n := int(from)/line + 1
	if skip > 0 {
		n++
	}
	for rest := out[min(skip, len(out)):]; len(rest) >= line; n++ {
		if want := fmt.Sprintf("%0*d\r\n", width, n); rest[:line] != want {
			t.Fatalf("at offset %d: %q, want %q", int(from)+len(out)-len(rest), rest[:line], want)
		}
		rest = rest[line:]
	}
}

// After a reboot the sessions are lost and readable in every way, without a gap
// from the first offset that is kept, up to the last round of checkpoints; what
// lived on is dead; and they run again when somebody says so, once a key.
func TestLostSessionsAfterReboot(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Args: []string{"--checkpoint-interval", "100ms", "--output-limit", "512KiB"}})
	dir := stateDir(t)
	n := d.create(spec{"argv": []string{"bash", "-c", `echo "$SECRET in $PWD" >>` + dir + "/ran; " + counter}, "name": "n", "cwd": dir,
		"env": map[string]string{"SECRET": "swordfish"}, "labels": map[string]string{"k": "v"}, "cols": 90, "rows": 20})
	flood := d.create(spec{"argv": []string{"bash", "-c", `seq -f %010.0f 1 150000; exec sleep 1000`}, "name": "flood"})
	stays := d.create(spec{"argv": []string{"bash", "-c", `trap '' HUP; echo stays; while :; do sleep 1000; done`}, "name": "stays"})
	secret := d.create(spec{"argv": []string{"bash", "-c", `echo secret; exec sleep 1000`}, "no_checkpoint": true})
	done := d.run("bash", "-c", "echo done; exit 3")
	d.waitText(flood.ID, "0000150000")
	d.waitText(stays.ID, "stays")
	d.waitText(secret.ID, "secret")
	d.waitState(done.ID, "exited")
	// What is there now is on the disk an interval later.
	until := d.session(n.ID).Offset
	eventually(t, 20*time.Second, "the checkpoints are written", func() bool {
		return d.saved(n) >= until && d.saved(flood) == 150000*12 && d.saved(stays) > 0 && d.saved(done) == 6
	})
	d.note()
	d.reboot()

	again := start(t, daemonOptions{StateDir: d.StateDir, Args: []string{"--checkpoint-interval", "100ms", "--output-limit", "512KiB"}})
	for _, s := range []session{n, flood, stays, secret} {
		if got := again.session(s.ID); got.State != "lost" || got.ExitCode != nil || got.Epoch != s.Epoch {
			t.Errorf("%s is %+v", s.Name, got)
		}
	}
	if left := withSession(map[string]bool{n.ID: true, flood.ID: true, stays.ID: true, secret.ID: true}); len(left) > 0 {
		t.Errorf("of lost sessions live %v", left)
	}
	if r := again.mustCLI("ls"); strings.Count(r, "lost") != 4 {
		t.Errorf("ls:\n%s", r)
	}
	// The command line and REST.
	got := again.session(n.ID)
	out := again.mustCLI("tail", "n", "--raw", "--from", "0")
	if got.Offset < until || uint64(len(out)) != got.Offset-got.OldestOffset {
		t.Errorf("%d bytes of [%d, %d), %d were there before", len(out), got.OldestOffset, got.Offset, until)
	}
	expectCount(t, out, got.OldestOffset, 7)
	if rest := string(again.output(n.ID, got.OldestOffset)); rest != out {
		t.Errorf("REST gives %d bytes, tail %d", len(rest), len(out))
	}
	f := again.session(flood.ID)
	out = again.mustCLI("tail", "flood", "--raw", "--from", "0")
	if f.Offset != 150000*12 || f.OldestOffset == 0 || f.Offset-f.OldestOffset > 512<<10 || !strings.HasSuffix(out, "0000150000\r\n") {
		t.Errorf("the flood: %+v", f)
	}
	expectCount(t, out, f.OldestOffset, 10)
	if out := string(again.output(done.ID, 0)); out != "done\r\n" {
		t.Errorf("the ended one: %q", out)
	}
	if out := string(again.output(secret.ID, 0)); out != "" || len(again.files(secret.ID)) > 0 {
		t.Errorf("the secret: %q in %v", out, again.files(secret.ID))
	}
	// A viewer.
	c := again.mustDial(dialing{})
	a := c.attach(t, 1, wire.Attach{Session: flood.ID, Kind: wire.KindInteractive, Cols: 40, Rows: 10, Visible: true})
	if string(a.Session) != flood.ID || a.State != "lost" || a.Head != f.Offset || a.TruncatedFrom != f.OldestOffset || a.Offset < f.OldestOffset {
		t.Errorf("attached: %+v", a)
	}
	if frame := c.until(t, wire.TypeOutput); frame.Offset < f.OldestOffset || len(frame.Payload) == 0 {
		t.Errorf("output at %d", frame.Offset)
	}
	c.close()
	if s := again.session(n.ID); s.Cols != 90 || s.Rows != 20 {
		t.Errorf("looking at it made it %dx%d", s.Cols, s.Rows)
	}

	// Run again, once a key.
	post := request{Method: "POST", Path: "/v1/sessions/" + n.ID + "/run-again", Header: map[string]string{"Idempotency-Key": "k1"}}
	var first, second session
	again.call(post).want(t, 201, "").into(t, &first)
	a2 := again.call(post).want(t, 200, "")
	a2.into(t, &second)
	again.note()
	if first.ID == n.ID || second.ID != first.ID || first.Name != "n" || first.Cwd != dir || first.Labels["k"] != "v" || first.Cols != 90 || first.Rows != 20 ||
		a2.Header.Get("Idempotency-Replayed") != "true" || !strings.Contains(string(a2.Body), `"rerun_of":"`+n.ID+`"`) || strings.Contains(string(a2.Body), "swordfish") {
		t.Errorf("run again: %+v, %s", first, a2.Body)
	}
	again.waitText(first.ID, "0000100")
	if ran := string(readFile(t, dir+"/ran")); ran != strings.Repeat("swordfish in "+dir+"\n", 2) {
		t.Errorf("it ran as %q", ran)
	}
	again.call(request{Method: "POST", Path: "/v1/sessions/" + n.ID + "/run-again"}).want(t, 409, "name_taken")
	again.call(request{Method: "POST", Path: "/v1/sessions/" + first.ID + "/run-again"}).want(t, 409, "session_running")
	id := strings.TrimSpace(again.mustCLI("rerun", "flood"))
	again.note()
	if s := again.session(id); s.Name != "flood" || s.State != "running" {
		t.Errorf("rerun printed %q: %+v", id, s)
	}
	// Removing one takes its files.
	if len(again.files(flood.ID)) == 0 {
		t.Error("no files of the flood")
	}
	again.mustCLI("rm", flood.ID)
	eventually(t, 10*time.Second, "its files are gone", func() bool { return len(again.files(flood.ID)) == 0 })
}

// A tail that was torn, and what is no checkpoint at all, harm nothing: the rest
// is read, and a session that goes on is written on. The end in order leaves all
// of it on the disk.
func TestTornCheckpoint(t *testing.T) {
	t.Parallel()
	args := []string{"--checkpoint-interval", "50ms"}
	d := start(t, daemonOptions{Args: args})
	torn := d.create(spec{"argv": []string{"bash", "-c", "echo whole; sleep 1000"}})
	d.waitText(torn.ID, "whole")
	eventually(t, 20*time.Second, "it is written", func() bool { return d.saved(torn) == 7 })
	d.reboot()
	name := d.files(torn.ID)[0]
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{200, 0, 0, 0, 1, 2, 3, 4, 7, 0, 0, 0, 0, 0, 0, 0, 'h', 'a', 'l', 'f'}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(d.checkpoints(), strings.Replace(filepath.Base(name), torn.ID[len(torn.ID)-4:], "0000", 1))
	writeFile(t, foreign, strings.Repeat("nonsense", 1000))
	writeFile(t, filepath.Join(d.checkpoints(), "notes.txt"), "of somebody else")

	d = start(t, daemonOptions{StateDir: d.StateDir, Args: args})
	if out := string(d.output(torn.ID, 0)); out != "whole\r\n" {
		t.Errorf("%q", out)
	}
	if !regexp.MustCompile("a checkpoint is damaged.*cut at byte").MatchString(d.Log()) {
		t.Error("the log does not say it")
	}
	eventually(t, 20*time.Second, "the file of nobody is gone", func() bool { _, err := os.Stat(foreign); return os.IsNotExist(err) })
	s := d.create(spec{"argv": []string{"bash", "-c", "stty -echo; echo one; while read x; do echo $x; done"}})
	d.waitText(s.ID, "one")
	eventually(t, 20*time.Second, "it is written", func() bool { return d.saved(s) > 0 })
	d.KillWorker() // the next one goes on with the same files
	d.input(s.ID, "two\n")
	d.waitText(s.ID, "two")
	eventually(t, 20*time.Second, "it is written on", func() bool { return d.saved(s) == 10 })
	if n := len(d.files(s.ID)); n != 1 {
		t.Errorf("%d files", n)
	}
	d.input(s.ID, "three\n")
	d.waitText(s.ID, "three")
	d.Stop()

	d = start(t, daemonOptions{StateDir: d.StateDir, Args: args})
	if out := string(d.output(s.ID, 0)); out != "one\r\ntwo\r\nthree\r\n" {
		t.Errorf("after an end in order: %q", out)
	}
	if got := d.session(s.ID); got.State != "exited" || got.Offset != 17 {
		t.Errorf("%+v", got)
	}
}

// A full disk ends checkpoints, says so, and harms no session; with room they go
// on.
func TestCheckpointsOnAFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("left out: TestCheckpointsOnAFullDisk mounts a small file system, which needs root")
	}
	dir := stateDir(t)
	if err := os.Mkdir(filepath.Join(dir, "checkpoints"), 0o700); err != nil {
		t.Fatal(err)
	}
	mount := filepath.Join(dir, "checkpoints")
	if err := unix.Mount("ptyd-e2e", mount, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Fatalf("mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	d := start(t, daemonOptions{StateDir: dir, Args: []string{"--checkpoint-interval", "50ms"}})
	// What fills it, and what runs meanwhile.
	big := d.run("bash", "-c", "seq -f %010.0f 1 60000")
	d.waitState(big.ID, "exited")
	checkpoints := func() (st struct {
		Checkpoints struct {
			OK    bool
			Error string
			Bytes int64
		}
	}) {
		d.get("/v1/status", &st)
		return st
	}
	eventually(t, 20*time.Second, "status says that none are written", func() bool { st := checkpoints().Checkpoints; return !st.OK && st.Error != "" })
	if v := d.metric("ptyd_checkpoint_ok"); v != 0 {
		t.Errorf("ptyd_checkpoint_ok is %v", v)
	}
	if !strings.Contains(d.Log(), "no checkpoints are written") {
		t.Error("the log does not say it")
	}
	if r := d.mustCLI("status"); !strings.Contains(r, "no checkpoints are written") {
		t.Errorf("status:\n%s", r)
	}
	s := d.run("bash", "-c", "for i in $(seq 1 300); do printf '%07d\\n' $i; ((i % 50)) || sleep 0.05; done; exit 9")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 9" || got.Offset != 300*9 {
		t.Errorf("the session that ran on the full disk: %+v", got)
	}
	expectCount(t, string(d.output(s.ID, 0)), 0, 7)
	if big := d.session(big.ID); big.Offset-big.OldestOffset != 60000*12 {
		t.Errorf("%+v", big)
	}
	d.mustCLI("rm", big.ID)
	eventually(t, 20*time.Second, "there is room again", func() bool { return checkpoints().Checkpoints.OK && d.saved(s) == 300*9 })
	d.Stop()
}

// A daemon on a copy of a living daemon's state directory calls the sessions
// lost, says so, and leaves them and their programs alone.
func TestCopiedStateHarmsNothing(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.create(spec{"argv": []string{"bash", "-c", "(sleep 1000; :) & echo here; exec sleep 1000"}, "name": "s"})
	d.waitText(s.ID, "here")
	dir := stateDir(t)
	for _, name := range []string{"ptyd.db", "ptyd.db-wal"} {
		b, err := os.ReadFile(filepath.Join(d.StateDir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before := len(withSession(map[string]bool{s.ID: true}))
	other := start(t, daemonOptions{StateDir: dir})
	if got := other.session(s.ID); got.State != "lost" {
		t.Errorf("in the copy the session is %s", got.State)
	}
	if log := other.Log(); !strings.Contains(log, "kept by another daemon") {
		t.Errorf("the copy's log does not say it:\n%s", log)
	}
	if r := other.CLI("rerun", "s"); r.Code == 0 {
		t.Errorf("what lives elsewhere ran again: %s", r)
	}
	if got := d.session(s.ID); got.State != "running" {
		t.Errorf("the session is %s", got.State)
	}
	if n := len(withSession(map[string]bool{s.ID: true})); n != before || n < 2 {
		t.Errorf("%d of its processes live, %d before", n, before)
	}
}

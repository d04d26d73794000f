package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// SIGKILL of the worker: sessions go on under the same ids, with their output;
// what ended meanwhile has its status.
func TestSigkillOfWorker(t *testing.T) {
	t.Parallel()
	mark := stateDir(t) + "/go"
	d := start(t)
	runs := d.create(spec{"argv": []string{"bash", "-c", "stty -echo; echo before; read x; echo after; sleep 1000"}, "name": "runs"})
	done := d.run("bash", "-c", "echo said; exit 3")
	ends := d.run("bash", "-c", "echo up; while [ ! -e "+mark+" ]; do sleep 0.01; done; echo last; exit 9")
	d.waitText(runs.ID, "before")
	d.waitState(done.ID, "exited")
	d.waitText(ends.ID, "up")
	st := d.status()
	if st.Keeper == nil || st.Keeper.PID != d.Keeper() || st.Worker.PID != d.workerNow() || st.Worker.Generation != 1 {
		t.Errorf("status: %+v, the processes are %d and %d", st, d.Keeper(), d.workerNow())
	}
	// While it is stopped it does not see the end; then it dies.
	if err := unix.Kill(st.Worker.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	writeFile(t, mark, "")
	eventually(t, 10*time.Second, "the leader is reaped by the keeper", func() bool { _, ok := readProcess(ends.PID); return !ok })
	if err := unix.Kill(st.Worker.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.anotherThan(st.Worker.PID)
	after := d.status()
	if after.Worker.PID == st.Worker.PID || after.Worker.Generation != 2 || after.Worker.Restarts != 1 || after.Worker.Adopted != 2 {
		t.Errorf("status after the kill: %+v", after.Worker)
	}
	if got := d.session(runs.ID); got.State != "running" || got.PID != runs.PID || got.Name != "runs" || got.Epoch != runs.Epoch {
		t.Errorf("the session is %+v, it was %+v", got, runs)
	}
	d.input(runs.ID, "\n")
	d.waitText(runs.ID, "after")
	if got := d.waitState(ends.ID, "exited"); got.exit() != "status 9" {
		t.Errorf("what ended meanwhile: %s", got.exit())
	}
	if got := d.session(done.ID); got.exit() != "status 3" {
		t.Errorf("what had ended before: %s", got.exit())
	}
	for id, want := range map[string]string{runs.ID: "before\r\nafter\r\n", done.ID: "said\r\n", ends.ID: "up\r\nlast\r\n"} {
		if out := string(d.output(id, 0)); out != want {
			t.Errorf("output %q, want %q", out, want)
		}
	}
	if r := d.CLI("status", "--json"); r.Code != 0 || !json.Valid([]byte(r.Stdout)) || !strings.Contains(r.Stdout, `"generation"`) {
		t.Errorf("status: %v", r)
	}
}

// SIGTERM to the worker alone keeps the sessions too.
func TestSigtermOfWorker(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", "stty -echo; echo before; read x; echo after; exit 4")
	d.waitText(s.ID, "before")
	pid := d.Worker()
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.anotherThan(pid)
	d.input(s.ID, "\n")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 4" {
		t.Errorf("the session ended with %s", got.exit())
	}
	if out := string(d.output(s.ID, 0)); out != "before\r\nafter\r\n" {
		t.Errorf("output %q", out)
	}
}

// lostWithKeeper checks what is told of sessions after a daemon that nobody
// survived.
func lostWithKeeper(t *testing.T, d *Daemon, ran, done session, mark string) {
	t.Helper()
	again := start(t, daemonOptions{StateDir: d.StateDir})
	got := again.session(ran.ID)
	if got.State != "lost" || got.ExitCode != nil || got.Signal != nil || got.EndedAt == nil {
		t.Errorf("after SIGKILL the running session is %+v", got)
	}
	if got := again.session(done.ID); got.exit() != "status 3" {
		t.Errorf("the ended one is %s", got.exit())
	}
	if r := again.CLI("ls", "--json"); !strings.Contains(r.Stdout, `"lost"`) {
		t.Errorf("ls: %v", r)
	}
	if out := again.output(ran.ID, 0); len(out) != 0 {
		t.Errorf("a lost session has output: %q", out)
	}
	// Its name is free, its row can be removed.
	d2 := again.create(spec{"argv": []string{"sleep", "1000"}, "name": "ran"})
	if a := again.call(request{Method: "DELETE", Path: "/v1/sessions/" + ran.ID}); a.Status != 204 {
		t.Error(a)
	}
	if d2.ID == ran.ID {
		t.Error("an id was used again")
	}
	if n := strings.Count(string(readFile(t, mark)), "ran"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// SIGKILL of the keeper, where no service manager stands behind it: the worker
// says so and ends everything, also what ignores the hang-up; the sessions are
// lost, and never started anew.
func TestSigkillOfKeeper(t *testing.T) {
	t.Parallel()
	mark := stateDir(t) + "/runs"
	d := start(t, daemonOptions{Args: []string{"--grace", "300ms"}})
	ran := d.create(spec{"argv": []string{"bash", "-c", "trap '' HUP TERM; echo ran >>" + mark + "; while :; do sleep 1; done"}, "name": "ran"})
	done := d.run("bash", "-c", "exit 3")
	d.waitState(done.ID, "exited")
	eventually(t, time.Minute, "the command ran", func() bool { return fileHas(mark, "ran") })
	worker, _ := readProcess(d.Worker())
	d.KillKeeper()
	eventually(t, 20*time.Second, "the worker has ended", func() bool { return !worker.alive() })
	if left := withSession(map[string]bool{ran.ID: true}); len(left) != 0 {
		t.Errorf("after the worker's end: %v", left)
	}
	if !strings.Contains(d.Log(), "the keeper died and nobody else keeps the sessions") {
		t.Errorf("the log does not say what happened:\n%s", d.Log())
	}
	lostWithKeeper(t, d, ran, done, mark)
}

// Keeper and worker die at the same time: nobody is left to end anything but
// the kernel's hang-up, and the rows are found lost.
func TestSigkillOfBoth(t *testing.T) {
	t.Parallel()
	mark := stateDir(t) + "/runs"
	d := start(t)
	ran := d.create(spec{"argv": []string{"bash", "-c", "echo ran >>" + mark + "; exec sleep 1000"}, "name": "ran"})
	done := d.run("bash", "-c", "exit 3")
	d.waitState(done.ID, "exited")
	eventually(t, time.Minute, "the command ran", func() bool { return fileHas(mark, "ran") })
	worker := d.Worker()
	d.note()
	_ = unix.Kill(worker, unix.SIGSTOP) // so that it does nothing when its keeper dies
	d.KillKeeper()
	if err := unix.Kill(worker, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lostWithKeeper(t, d, ran, done, mark)
}

// --no-keeper is one process; its sessions end with it.
func TestNoKeeper(t *testing.T) {
	t.Parallel()
	mark := stateDir(t) + "/runs"
	d := start(t, daemonOptions{Args: []string{"--no-keeper"}})
	st := d.status()
	if st.Keeper != nil || st.Worker.PID != d.Keeper() {
		t.Errorf("status %+v, the process is %d", st, d.Keeper())
	}
	ran := d.create(spec{"argv": []string{"bash", "-c", "echo ran >>" + mark + "; exec sleep 1000"}, "name": "ran"})
	done := d.run("bash", "-c", "exit 3")
	d.waitState(done.ID, "exited")
	eventually(t, time.Minute, "the command ran", func() bool { return fileHas(mark, "ran") })
	d.KillKeeper()
	lostWithKeeper(t, d, ran, done, mark)
}

// A binary that was built without a C compiler is its own stage.
func TestBinaryStagesItself(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "internal/ptymgr/stage/bin/stage"): ""}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, overlay, string(b))
	bin := filepath.Join(root, ".cache", "e2e", "ptyd-nostage")
	cmd := exec.Command("go", "build", "-overlay", overlay, "-trimpath", "-ldflags", "-s -w", "-o", bin, "./cmd/ptyd")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	d := start(t, daemonOptions{Binary: bin})
	s := d.run("bash", "-c", "echo up; sleep 0.3; echo $0 $#; exit 7", "name", "arg")
	d.waitText(s.ID, "up")
	d.KillWorker()
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 7" {
		t.Errorf("it ended with %s", got.exit())
	}
	if out := string(d.output(s.ID, 0)); out != "up\r\nname 1\r\n" {
		t.Errorf("output %q", out)
	}
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"/etc/passwd"}}}).want(t, 422, "exec_failed")
	if n := len(d.sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

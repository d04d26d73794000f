package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Both processes go by honest names, also when their binary was replaced.
func TestProcessNames(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	d := start(t, daemonOptions{Binary: install(t, shippedBinary, dir+"/ptyd")})
	names := func(when string) {
		t.Helper()
		for pid, want := range map[int]string{d.Keeper(): "ptyd-keeper", d.Worker(): "ptyd-worker"} {
			comm := strings.TrimSpace(string(readFile(t, fmt.Sprintf("/proc/%d/comm", pid))))
			p, _ := readProcess(pid)
			if comm != want || strings.HasSuffix(p.Cmd, " --worker") != (want == "ptyd-worker") {
				t.Errorf("%s: process %d is %q: %s", when, pid, comm, p.Cmd)
			}
		}
	}
	names("at the start")
	install(t, shippedBinary, d.Binary)
	d.KillWorker() // it comes back as the old image, by /proc/self/exe
	names("after the binary was replaced")
	d.upgrade()
	names("after an upgrade")
}

// A worker that hangs is replaced; its sessions do not notice.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Env: []string{"PTYD_TEST_TIMES=daemon.watchdog=5s"}})
	s := d.run("bash", "-c", "stty -echo; echo before; read x; echo after; exit 5")
	d.waitText(s.ID, "before")
	d.note()
	pid := d.Worker()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d.anotherThan(pid)
	if log := d.Log(); !strings.Contains(log, "no sign of life for 5s") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	if st := d.status(); st.Worker.Adopted != 1 || st.Worker.Restarts < 1 {
		t.Errorf("status %+v", st.Worker)
	}
	d.input(s.ID, "\n")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 5" || string(d.output(s.ID, 0)) != "before\r\nafter\r\n" {
		t.Errorf("it ended with %s and %q", got.exit(), d.output(s.ID, 0))
	}
}

// The second daemon on a state directory waits a little for one that is about
// to end, and then says who has it; also after an upgrade, which hands the lock on.
func TestSecondDaemonAfterUpgrade(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Binary: shippedBinary})
	s := d.run("sleep", "1000")
	refused := func(args ...string) {
		t.Helper()
		began := time.Now()
		second := launch(t, daemonOptions{Binary: shippedBinary, StateDir: d.StateDir, Args: args})
		if code := second.Wait(20 * time.Second); code != 125 {
			t.Errorf("%v: exit status %d", args, code)
		}
		if took := time.Since(began); took < 3*time.Second {
			t.Errorf("%v: it gave up after %v: one that was about to end got no time", args, took)
		}
		if want := fmt.Sprintf("another ptyd (pid %d) owns %s", d.Keeper(), d.StateDir); !strings.Contains(second.Log(), want) {
			t.Errorf("%v: it says\n%s\nnot %q", args, second.Log(), want)
		}
	}
	refused()
	d.upgrade()
	refused("--no-keeper")
	if got := d.session(s.ID); got.State != "running" || !d.ready() {
		t.Errorf("the first daemon's session is %s", got.State)
	}
}

// Descriptors that are none of ours, under names of ours, are dropped and told;
// the daemon starts, and a stranger's process is not touched.
func TestForeignDescriptorsAreDropped(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	script := impostor(t, testBinary, dir+"/ptyd", "export LISTEN_PID=$$")
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	var files []*os.File
	var names []string
	add := func(name string, fd int, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files, names = append(files, os.NewFile(uintptr(fd), name)), append(names, name)
	}
	text := func() (int, error) { return unix.Open("/etc/passwd", unix.O_RDONLY|unix.O_CLOEXEC, 0) }
	memfd := func(sealed bool) (int, error) {
		fd, err := unix.MemfdCreate("foreign", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err == nil {
			err = unix.Ftruncate(fd, 1<<20)
		}
		if err == nil && sealed {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
		}
		return fd, err
	}
	fd, err := memfd(false)
	add("0", fd, err)
	fd, err = memfd(true)
	add("1", fd, err)
	fd, err = unix.PidfdOpen(stranger.Process.Pid, 0)
	add("2", fd, err)
	fd, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	add("2", fd, err)
	fd, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	add("3", fd, err)
	for _, name := range []string{"x", "xe", "lock", "g", "po", "pi", "lu", "lt0", "what"} {
		fd, err = text()
		add(name, fd, err)
	}
	fd, err = memfd(true)
	add("g", fd, err)
	fd, err = memfd(true)
	add("x", fd, err)
	d := start(t, daemonOptions{Binary: script, Files: files, Env: []string{
		fmt.Sprintf("LISTEN_FDS=%d", len(files)), "LISTEN_FDNAMES=" + strings.Join(names, ":"),
	}})
	for _, f := range files {
		_ = f.Close()
	}
	log := d.Log()
	for _, want := range []string{
		"descriptors taken from the service manager", `a stored descriptor is of no use and is dropped","name":"x"`, `"name":"xe"`, `"name":"lock"`,
		`"which":"g: `, `"which":"po: `, `"which":"pi: `, `"which":"what: `, `"which":"lu: `, `"which":"lt0: `,
		`stored descriptors are dropped","name":"0"`, `stored descriptors are dropped","name":"1"`, `stored descriptors are dropped","name":"2"`, `stored descriptors are dropped","name":"3"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not hold %s", want)
		}
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger's process: %v", err)
	}
	// All works as after any other start, and over the next one.
	s := d.run("bash", "-c", "stty -echo; echo before; read x; echo after; exit 7")
	d.waitText(s.ID, "before")
	d.KillWorker()
	if st := d.status(); st.Worker.Adopted != 1 {
		t.Errorf("%+v", st.Worker)
	}
	d.input(s.ID, "\n")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 7" {
		t.Errorf("it ended with %s", got.exit())
	}
	if n := strings.Count(d.Log()[len(log):], "dropped\",\"name"); n != 0 {
		t.Errorf("%d descriptors are dropped again", n)
	}
}

// SIGHUP to the keeper reads the configuration again, also the one of an
// upgraded keeper.
func TestHangUpReadsTheConfiguration(t *testing.T) {
	t.Parallel()
	config := stateDir(t) + "/config.toml"
	writeFile(t, config, "grace = \"1s\"\n")
	d := start(t, daemonOptions{Binary: shippedBinary, Args: []string{"--config", config}})
	grace := func() int {
		var st struct {
			Limits struct {
				Grace int `json:"grace_ms"`
			}
		}
		d.get("/v1/status", &st)
		return st.Limits.Grace
	}
	pid := d.Worker()
	writeFile(t, config, "grace = \"2s\"\n")
	d.Signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "the new grace holds", func() bool { return grace() == 2000 })
	writeFile(t, config, "grace = nonsense\n")
	d.Signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "the mistake is told", func() bool { return strings.Contains(d.Log(), "the configuration stays as it was") })
	if grace() != 2000 || d.Worker() != pid {
		t.Errorf("grace %d, worker %d, it was %d", grace(), d.Worker(), pid)
	}
	writeFile(t, config, "grace = \"3s\"\n")
	d.upgrade()
	writeFile(t, config, "grace = \"4s\"\n")
	d.Signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "the grace after an upgrade holds", func() bool { return grace() == 4000 })
}

// Ctrl-C at the terminal of a daemon asks before it ends sessions, and the
// second one does not.
func TestInterruptAsksFirst(t *testing.T) {
	t.Parallel()
	outer := start(t, daemonOptions{Binary: shippedBinary})
	dir := stateDir(t)
	inner := func(args ...string) result {
		return outer.CLIWith(cliOptions{NoDir: true, Env: []string{"PTYD_STATE_DIR=" + dir}}, args...)
	}
	for _, answer := range []string{"y\n", "\x03"} {
		s := outer.run(shippedBinary, "serve", "--state-dir", dir, "--listen", "127.0.0.1:0")
		outer.waitText(s.ID, "ptyd: open http")
		if r := inner("run", "-d", "--name", "runs", "--", "sleep", "1000"); r.Code != 0 {
			t.Fatal(r)
		}
		outer.input(s.ID, "\x03")
		outer.waitText(s.ID, `1 session runs\. End it\? \[y/N\]`)
		outer.input(s.ID, "n\n")
		outer.waitText(s.ID, "it goes on")
		if r := inner("ls"); r.Code != 0 || !strings.Contains(r.Stdout, "running") {
			t.Errorf("after a no: %v", r)
		}
		asked := len(outer.output(s.ID, 0))
		outer.input(s.ID, "\x03")
		eventually(t, 20*time.Second, "the question", func() bool { return strings.Contains(string(outer.output(s.ID, uint64(asked))), "[y/N]") })
		outer.input(s.ID, answer)
		if got := outer.waitState(s.ID, "exited"); got.exit() != "status 0" {
			t.Errorf("after %q it ended with %s:\n%s", answer, got.exit(), outer.output(s.ID, 0))
		}
		if r := inner("ls"); r.Code != 125 {
			t.Errorf("after %q it answers: %v", answer, r)
		}
	}
	// With nothing to lose nobody is asked.
	s := outer.run(shippedBinary, "serve", "--state-dir", dir, "--listen", "127.0.0.1:0")
	outer.waitText(s.ID, "ptyd: open http")
	outer.input(s.ID, "\x03")
	if got := outer.waitState(s.ID, "exited"); got.exit() != "status 0" || strings.Contains(string(outer.output(s.ID, 0)), "[y/N]") {
		t.Errorf("with no session it ended with %s:\n%s", got.exit(), outer.output(s.ID, 0))
	}
}

// As process 1 of a container the daemon works: it reaps orphans, keeps
// sessions over a worker's death and an upgrade, and SIGTERM ends it in order.
func TestProcessOne(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("left out: only root can make a PID namespace")
	}
	if out, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("left out: no PID namespace can be made here: %v %s", err, out)
	}
	dir := stateDir(t)
	script := filepath.Join(dir, "container")
	impostor(t, shippedBinary, script, `[ "$1" = serve ] && exec unshare --pid --fork --kill-child --mount-proc `+shippedBinary+` "$@"`)
	d := start(t, daemonOptions{Binary: script})
	inside := func(end string) (found process) {
		t.Helper()
		for _, p := range descendants(d.Keeper()) {
			if strings.HasPrefix(filepath.Base(strings.Fields(p.Cmd)[0]), "ptyd") && strings.HasSuffix(p.Cmd, end) {
				found = p
			}
		}
		if found.PID == 0 {
			t.Fatalf("no process ends in %q: %v", end, descendants(d.Keeper()))
		}
		return found
	}
	one := inside("127.0.0.1:0")
	st := d.status()
	if st.Keeper == nil || st.Keeper.PID != 1 || st.Worker.Generation != 1 {
		t.Errorf("status %+v, keeper %+v", st, st.Keeper)
	}
	s := d.run("bash", "-c", "stty -echo; echo before; read x; echo after; exit 8")
	d.waitText(s.ID, "before")
	orphan := d.run("bash", "-c", "(setsid sleep 0.1 &) ; exit 3")
	if got := d.waitState(orphan.ID, "exited"); got.exit() != "status 3" {
		t.Errorf("it ended with %s", got.exit())
	}
	eventually(t, 10*time.Second, "orphans are gone", func() bool {
		for _, p := range descendants(one.PID) {
			if p.State == 'Z' || strings.Contains(p.Cmd, "sleep") {
				return false
			}
		}
		return true
	})
	if err := unix.Kill(inside("--worker").PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "another worker answers", func() bool { return d.ready() && d.status().Worker.Generation == 2 })
	if u := d.upgrade(); u.Keeper != 1 || u.Adopted != 1 {
		t.Errorf("upgrade: %+v", u)
	}
	d.input(s.ID, "\n")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 8" || string(d.output(s.ID, 0)) != "before\r\nafter\r\n" {
		t.Errorf("it ended with %s and %q", got.exit(), d.output(s.ID, 0))
	}
	stubborn := d.run("bash", "-c", "trap '' TERM HUP; echo up; while :; do sleep 1; done")
	d.waitText(stubborn.ID, "up")
	d.note()
	if err := unix.Kill(one.PID, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := d.Wait(30 * time.Second); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if !strings.Contains(d.Log(), "ptyd has ended in order") {
		t.Error("it did not end in order")
	}
}

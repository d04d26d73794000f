package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nextBinary is the shipped build under another version, "e2e-next".
var nextBinary = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, ".cache", "e2e", "ptyd-next")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X github.com/ptyd/ptyd/internal/config.Version=e2e-next", "-o", bin, "./cmd/ptyd")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the next version: %w\n%s", err, out)
	}
	return bin, nil
})

// executable writes a file that can be executed. No process is forked while it
// is open for writing: until it executes something else, a child of another test
// would hold it open too, and what is open for writing is "text file busy".
func executable(t testing.TB, path string, content io.Reader) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, content); err != nil {
		t.Fatal(err)
	}
	if err := out.Chmod(0o755); err != nil {
		t.Fatal(err)
	}
}

// install puts a copy of a binary at path, as a package manager does: another
// file under the same name, at once.
func install(t testing.TB, binary, path string) string {
	t.Helper()
	in, err := os.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	executable(t, path+".new", in)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// impostor is a script at path that behaves as binary, but for the lines that
// come first.
func impostor(t testing.TB, binary, path, first string) string {
	t.Helper()
	executable(t, path, strings.NewReader("#!/bin/sh\n"+first+"\nexec "+binary+` "$@"`+"\n"))
	return path
}

// upgraded is what the command prints.
type upgraded struct {
	From, To                                            struct{ Version, Path string }
	Generation, Sessions, Adopted, Lost, Keeper, Worker int
}

// upgrade runs the command, which must succeed.
func (d *Daemon) upgrade(args ...string) (u upgraded) {
	d.t.Helper()
	out := d.mustCLI(append([]string{"upgrade", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &u); err != nil {
		d.t.Fatalf("upgrade printed %q: %v", out, err)
	}
	return u
}

// Ten upgrades in a row to another version and back, while one session writes
// at full speed, another counts, and a client types: every byte and keystroke
// is there once, the keeper is the same process, and all is told.
func TestUpgradeTenTimes(t *testing.T) {
	t.Parallel()
	next, err := nextBinary()
	if err != nil {
		t.Fatal(err)
	}
	times := full(10, 200)
	dir := stateDir(t)
	bin := install(t, shippedBinary, dir+"/ptyd")
	d := start(t, daemonOptions{Binary: bin})
	rng := newRand(t)
	before := d.status()
	if before.Keeper == nil || before.Keeper.Version != "e2e" || before.Worker.Version != "e2e" || !before.Survives.Upgrade || before.Survives.Keeper {
		t.Errorf("status %+v", before)
	}
	counter := d.run("bash", "-c", "i=0; while [ ! -e "+dir+"/stop ]; do i=$((i+1)); echo $i; sleep 0.002; done; echo end $i; exit 9")
	inBytes, outBytes := times*3000, uint64(times)*512<<10
	file := dir + "/typed"
	s := d.child("chat", *seed, outBytes, file, inBytes)
	v := newViewer(d, s.ID, newClientID(rng))
	sc := streamCheck{seed: *seed}
	v.check = sc.check
	var streamErr error
	var following sync.WaitGroup
	following.Go(func() { streamErr = v.run() })
	eventually(t, time.Minute, "the first output came", func() bool { return v.position() > 0 })
	stop := make(chan struct{})
	input := typed(*seed, inBytes)
	typeRng := rand.New(rand.NewPCG(*seed, 17))
	following.Go(func() {
		for rest := input; len(rest) > 0; {
			k := min(1+typeRng.IntN(100), len(rest))
			if len(rest) < 2000 {
				<-stop
			}
			if !v.typeIn(rest[:k]) {
				return
			}
			rest = rest[k:]
			holds(time.Minute, func() bool { return v.pendingInput() == 0 })
		}
	})

	versions := []string{"e2e", "e2e-next"}
	for i := 1; i <= times; i++ {
		var u upgraded
		to := []string{shippedBinary, next}[i%2]
		if i%4 < 2 { // the file by which it was started is another one by now
			install(t, to, bin)
			u = d.upgrade()
		} else {
			u = d.upgrade(install(t, to, fmt.Sprintf("%s/ptyd%d", dir, i)))
		}
		want := versions[i%2]
		st := d.status()
		if u.From.Version != versions[(i+1)%2] || u.To.Version != want || u.Generation != i+1 || u.Adopted != 2 || u.Sessions != 2 || u.Lost != 0 || u.Keeper != d.Keeper() {
			t.Errorf("upgrade %d: %+v", i, u)
		}
		if st.Keeper == nil || st.Keeper.PID != d.Keeper() || st.Keeper.Version != want || st.Keeper.Upgrades != i || st.Keeper.Path != u.To.Path ||
			st.Worker.Version != want || st.Worker.Generation != i+1 || st.Worker.Restarts != 0 || st.UpgradeFailed != "" || !st.Keeper.StartedAt.Equal(*before.Keeper.StartedAt) {
			t.Fatalf("after upgrade %d: %+v, keeper %+v", i, st, st.Keeper)
		}
		for _, pid := range []int{st.Keeper.PID, st.Worker.PID} {
			if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe != u.To.Path {
				t.Errorf("process %d runs %s, not %s", pid, exe, u.To.Path)
			}
		}
	}
	// A restart is no upgrade.
	d.mustCLI("restart")
	if st := d.status(); st.Worker.Generation != times+2 || st.Keeper.Upgrades != times || st.Worker.Restarts != 0 || st.Worker.Adopted != 2 {
		t.Errorf("after a restart: %+v", st)
	}
	close(stop)
	following.Wait()
	expectStream(t, outBytes, []string{"typist"}, []*viewer{v}, []error{streamErr})
	if v.declared != 0 {
		t.Errorf("%d bytes are declared as lost", v.declared)
	}
	expectFile(t, file, input)
	writeFile(t, dir+"/stop", "")
	if got := d.waitState(counter.ID, "exited"); got.exit() != "status 9" || got.PID != counter.PID {
		t.Errorf("the counter ended with %s", got.exit())
	}
	lines := strings.Split(strings.TrimSpace(string(d.output(counter.ID, 0))), "\r\n")
	for i, line := range lines[:len(lines)-1] {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("line %d of the counter is %q", i+1, line)
		}
	}
	if lines[len(lines)-1] != fmt.Sprint("end ", len(lines)-1) {
		t.Errorf("the counter ended with %q after %d lines", lines[len(lines)-1], len(lines)-1)
	}
	if n := strings.Count(d.mustCLI("status"), "failed"); n != 0 {
		t.Error("the status tells of a failure")
	}
	var audit struct{ Items []struct{ Action string } }
	d.get("/v1/audit?limit=500", &audit)
	rows := 0
	for _, r := range audit.Items {
		if r.Action == "daemon.upgrade" {
			rows++
		}
	}
	if rows != times {
		t.Errorf("%d rows in the audit log for %d upgrades", rows, times)
	}
}

// A new binary that ends, or hangs, before it is ready: the old one goes on,
// the command says why, and the status too.
func TestUpgradeRollsBack(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	d := start(t, daemonOptions{Env: []string{"PTYD_TEST_TIMES=keeper.trial=8s"}})
	s := d.run("bash", "-c", "stty -echo; echo before; while read x; do echo got $x; done")
	d.waitText(s.ID, "before")
	generation := 1
	for i, c := range []struct{ first, why string }{
		{`case "$*" in *--worker*) echo no luck >&2; exit 3;; esac`, "exited with status 3"},
		{`case "$*" in *--worker*) kill -SEGV $$;; esac`, "SIGSEGV"},
		{`case "$*" in *--worker*) exec sleep 1000;; esac`, "not ready within 8"},
	} {
		bad := impostor(t, d.Binary, fmt.Sprintf("%s/bad%d", dir, i), c.first)
		r := d.CLI("upgrade", "--json", bad)
		generation += 2
		if r.Code != 125 || !strings.Contains(r.Stderr, c.why) || !strings.Contains(r.Stderr, bad) || !strings.Contains(r.Stderr, `"error"`) || r.Stdout != "" {
			t.Errorf("%s: %v", c.why, r)
		}
		st := d.status()
		if st.Worker.Generation != generation || st.Worker.Adopted != 1 || st.Keeper.Upgrades != 0 || !strings.Contains(st.UpgradeFailed, c.why) {
			t.Errorf("%s: %+v, keeper %+v", c.why, st, st.Keeper)
		}
		if out := d.mustCLI("status"); !strings.Contains(out, "failed: "+bad) {
			t.Errorf("the status says\n%s", out)
		}
		d.input(s.ID, fmt.Sprintf("%d\n", i))
		d.waitText(s.ID, fmt.Sprintf("got %d", i))
	}
	// It stays known over a crash, until another upgrade.
	d.KillWorker()
	if st := d.status(); !strings.Contains(st.UpgradeFailed, "not ready within") {
		t.Errorf("after a crash: %q", st.UpgradeFailed)
	}
	if u := d.upgrade(install(t, d.Binary, dir+"/good")); u.Adopted != 1 {
		t.Errorf("%+v", u)
	}
	if st := d.status(); st.UpgradeFailed != "" || st.Keeper.Upgrades != 1 {
		t.Errorf("after an upgrade: %+v", st)
	}
	d.input(s.ID, "last\n")
	d.waitText(s.ID, "got last")
}

// What can't take over is refused while all goes on as before.
func TestUpgradeRefused(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	config := dir + "/config.toml"
	writeFile(t, config, "grace = \"1s\"\n")
	d := start(t, daemonOptions{Args: []string{"--config", config}, Env: []string{"PTYD_TEST_TIMES=daemon.ask=5s"}})
	s := d.run("sleep", "1000")
	script := func(name, first string) string { return impostor(t, d.Binary, filepath.Join(dir, name), first) }
	// says is a ptyd that answers as this one does, but for an edit.
	says := func(name, edit string) string {
		return script(name, `case "$*" in *--can-adopt*) `+d.Binary+` "$@" | sed '`+edit+`'; exit;; esac`)
	}
	plain := dir + "/plain"
	writeFile(t, plain, "text")
	shared := script("shared", "")
	if err := os.Chmod(shared, 0o775); err != nil {
		t.Fatal(err)
	}
	open := dir + "/open"
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	in := impostor(t, d.Binary, open+"/ptyd", "")
	cases := []struct{ path, code, says string }{
		{dir + "/none", "invalid_argument", "no such file"},
		{dir, "invalid_argument", "is not a file"},
		{plain, "invalid_argument", "can't be executed"},
		{"/dev/null", "invalid_argument", "is not a file"},
		{shared, "invalid_argument", "can be written by others"},
		{in, "invalid_argument", "everybody can replace"},
		{script("true", "exit 0"), "invalid_argument", "it said something else"},
		{script("false", "echo wrong thing >&2; exit 4"), "invalid_argument", "exit status 4: wrong thing"},
		{script("slow", "exec sleep 1000"), "invalid_argument", "no answer within"},
		{script("long", "exec cat /dev/zero"), "invalid_argument", "too long"},
		{script("older", `case "$*" in *--can-adopt*) echo unknown flag: --can-adopt >&2; exit 125;; esac`), "invalid_argument", "unknown flag: --can-adopt"},
		{says("ring", `s/"ring":\[1\]/"ring":[2,3]/`), "unsupported", `version 1 of the format "ring"`},
		{says("keeper", `s/"keeper":/"other":/`), "unsupported", `version 1 of the format "keeper"`},
		{says("old", `s/"schema":[0-9]*/"schema":1/`), "unsupported", "knows the database's schema up to version 1"},
		{says("new", `s/"schema":[0-9]*,"schema_floor":[0-9]*/"schema":99,"schema_floor":99/`), "conflict", "migrates the database to version 99"},
	}
	if os.Getuid() == 0 {
		foreign := script("foreign", "")
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		group := dir + "/group"
		if err := errors.Join(os.Mkdir(group, 0o755), os.Chown(group, 0, 12345), os.Chmod(group, 0o775)); err != nil {
			t.Fatal(err)
		}
		ofGroup := impostor(t, d.Binary, group+"/ptyd", "")
		cases = append(cases, struct{ path, code, says string }{foreign, "invalid_argument", "belongs to somebody else"},
			struct{ path, code, says string }{ofGroup, "invalid_argument", "the group 12345 can replace"})
	} else {
		t.Log("left out: a binary of another user's, which only root can make")
	}
	for _, c := range cases {
		r := d.CLI("upgrade", "--json", c.path)
		if r.Code != 125 || !strings.Contains(r.Stderr, `"code":"`+c.code+`"`) || !strings.Contains(r.Stderr, c.says) {
			t.Errorf("%s: %v", c.path, r)
		}
	}
	if r := d.CLIWith(cliOptions{NoDir: true}, "upgrade", "--url", d.URL, plain); r.Code != 125 {
		t.Errorf("by URL: %v", r)
	}
	// A setting that the new one would not take is found before anything stops.
	good := install(t, d.Binary, dir+"/good")
	writeFile(t, config, "grace = \"1s\"\nbogus = 1\n")
	if r := d.CLI("upgrade", good); r.Code != 125 || !strings.Contains(r.Stderr, "unknown key") {
		t.Errorf("with a setting that is wrong: %v", r)
	}
	writeFile(t, config, "grace = \"1s\"\n")
	if st := d.status(); st.Worker.Generation != 1 || st.UpgradeFailed != "" || st.Keeper.Upgrades != 0 {
		t.Errorf("after all refusals: %+v", st)
	}
	if got := d.session(s.ID); got.State != "running" {
		t.Errorf("the session is %s", got.State)
	}
	// A migration with no way back is done when that is asked for, and told.
	if r := d.CLI("upgrade", "--one-way", cases[14].path); r.Code != 0 || !strings.Contains(r.Stderr, "to 99") || !strings.Contains(r.Stdout, "1 session goes on") {
		t.Errorf("one way: %v", r)
	}

	alone := start(t, daemonOptions{Args: []string{"--no-keeper"}})
	for _, args := range [][]string{{"upgrade"}, {"restart"}} {
		if r := alone.CLI(args...); r.Code != 125 || !strings.Contains(r.Stderr, "without a keeper") {
			t.Errorf("without a keeper: %v", r)
		}
	}
}

// SIGKILL of the worker in the middle of upgrades: each is done or told as
// failed, and sessions know nothing of either.
func TestWorkerKilledInUpgrade(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	d := start(t, daemonOptions{Binary: install(t, shippedBinary, dir+"/ptyd")})
	rng := newRand(t)
	file := dir + "/stop"
	s := d.child("burst", *seed, file, uint64(64<<10))
	v := newViewer(d, s.ID, newClientID(rng))
	sc := streamCheck{seed: *seed}
	v.check = sc.check
	var streamErr error
	var following sync.WaitGroup
	following.Go(func() { streamErr = v.run() })
	done, failed := 0, 0
	for range full(8, 100) {
		result := make(chan int, 1)
		go func() { result <- d.CLI("upgrade").Code }()
		for len(result) == 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(150 * time.Millisecond))))
			if pid := d.workerNow(); pid != 0 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			holds(time.Second, func() bool { return len(result) > 0 || d.ready() })
		}
		switch code := <-result; code {
		case 0:
			done++
		case 125:
			failed++
		default:
			t.Errorf("exit status %d", code)
		}
		eventually(t, 30*time.Second, "a worker answers", d.ready)
	}
	t.Logf("%d upgrades done, %d failed", done, failed)
	// The keeper may still be about the last one.
	eventually(t, 30*time.Second, "an upgrade that nobody disturbs is done", func() bool { return d.CLI("upgrade").Code == 0 })
	writeFile(t, file, "")
	following.Wait()
	n := uint64(0)
	if _, err := fmt.Sscan(string(readFile(t, file+".n")), &n); err != nil {
		t.Fatal(err)
	}
	expectStream(t, n, []string{"burst"}, []*viewer{v}, []error{streamErr})
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 0" {
		t.Errorf("the session ended with %s", got.exit())
	}
}

// The keeper that has executed itself anew goes on, whatever stands in the
// configuration by then: the sessions hang on it.
func TestKeeperOutlivesItsConfiguration(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	config, pause := dir+"/config.toml", dir+"/pause"
	writeFile(t, config, "log_format = \"json\"\n")
	d := start(t, daemonOptions{Args: []string{"--config", config}, Env: []string{"PTYD_TEST_FAILPOINTS=daemon.keep.resumed=pause:" + pause}})
	s := d.run("bash", "-c", "stty -echo; echo before; read x; echo after; exit 6")
	d.waitText(s.ID, "before")
	result := make(chan result, 1)
	go func() { result <- d.CLI("upgrade") }()
	eventually(t, time.Minute, "the keeper is executed", func() bool { _, err := os.Stat(pause); return err == nil })
	writeFile(t, config, "nonsense")
	if err := os.Remove(pause); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r.Code != 0 {
		t.Errorf("upgrade: %v", r)
	}
	if !strings.Contains(d.Log(), "can't read the configuration and goes on") {
		t.Errorf("the log does not tell of it:\n%s", d.Log())
	}
	writeFile(t, config, "log_format = \"json\"\n")
	d.KillWorker()
	d.input(s.ID, "\n")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 6" {
		t.Errorf("the session ended with %s", got.exit())
	}
}

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups are what the daemon says about its cgroups.
type cgroups struct {
	Path    *string
	Reason  string
	Missing map[string]string
}

// cgroupDir is the directory of the daemon's part of the cgroup tree. The test
// is left out where it has none.
func cgroupDir(t *testing.T, d *Daemon) string {
	t.Helper()
	var st struct{ Cgroups cgroups }
	d.get("/v1/status", &st)
	if st.Cgroups.Path == nil {
		t.Skipf("left out: %s: no cgroup can be made here: %s", t.Name(), st.Cgroups.Reason)
	}
	for line := range strings.Lines(string(readFile(t, "/proc/self/mounts"))) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			return filepath.Join(f[1], *st.Cgroups.Path)
		}
	}
	t.Fatal("the daemon has cgroups and the machine has none")
	return ""
}

// inGroup are the processes in a session's cgroup.
func inGroup(dir, id string) (pids []int) {
	b, _ := os.ReadFile(filepath.Join(dir, id, "cgroup.procs"))
	for _, f := range strings.Fields(string(b)) {
		n, _ := strconv.Atoi(f)
		pids = append(pids, n)
	}
	return pids
}

// groupsIn are the sessions that have a cgroup.
func groupsIn(dir string) (ids []string) {
	all, _ := filepath.Glob(dir + "/s_*")
	for _, p := range all {
		ids = append(ids, filepath.Base(p))
	}
	return ids
}

// escape is a command of which a part leaves the session in every way there is:
// another session, no parent, nothing in its environment, deaf to what asks
// politely. It writes its pid to a file.
func escape(file string) string {
	return fmt.Sprintf(`env -i "$(command -v setsid)" -f "$(command -v sh)" -c 'trap "" TERM HUP INT; echo $$ >%[1]s.new; mv %[1]s.new %[1]s; while :; do sleep 0.2; done'
while ! test -e %[1]s; do sleep 0.02; done; echo escaped`, file)
}

// escaped reads the process that escape wrote down.
func escaped(t *testing.T, file string) process {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(string(readFile(t, file))))
	if err != nil {
		t.Fatal(err)
	}
	p, ok := readProcess(pid)
	if !ok {
		t.Fatalf("process %d is gone", pid)
	}
	t.Cleanup(func() {
		if p.alive() {
			_ = unix.Kill(p.PID, unix.SIGKILL)
		}
	})
	return p
}

// Close ends also what left the session without a trace; over the death of the
// worker too. Nothing is left of the cgroup, and at the end of the daemon's part.
func TestCloseEndsWhatEscapes(t *testing.T) {
	t.Parallel()
	d := start(t)
	dir := cgroupDir(t, d)
	for _, kill := range []bool{false, true} {
		file := filepath.Join(stateDir(t), "pid")
		s := d.run("bash", "-c", escape(file)+"; exec sleep 1000")
		d.waitText(s.ID, "escaped")
		p := escaped(t, file)
		if p.Session == s.PID || p.PPID != d.Keeper() {
			t.Fatalf("it did not escape: %+v", p)
		}
		if kill {
			d.KillWorker()
		}
		if got := inGroup(dir, s.ID); !slices.Contains(got, s.PID) || !slices.Contains(got, p.PID) {
			t.Errorf("worker killed %v: the cgroup holds %v, not %d and %d", kill, got, s.PID, p.PID)
		}
		var shown struct {
			Usage *struct {
				CPU *int64 `json:"cpu_us"`
			}
		}
		d.get("/v1/sessions/"+s.ID, &shown)
		if shown.Usage == nil || shown.Usage.CPU == nil || *shown.Usage.CPU <= 0 {
			t.Errorf("worker killed %v: usage %+v", kill, shown.Usage)
		}
		d.closeSession(s.ID, 100)
		if p.alive() {
			t.Errorf("worker killed %v: still alive: %v", kill, p)
		}
		eventually(t, 20*time.Second, "no cgroup is left", func() bool { return len(groupsIn(dir)) == 0 })
	}
	d.Stop()
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}

// A fork bomb has no time to outrun the end.
func TestCloseEndsAForkBomb(t *testing.T) {
	t.Parallel()
	d := start(t)
	dir := cgroupDir(t, d)
	mark := fmt.Sprintf("3%09d", *seed%1e9)
	s := d.run("bash", "-c", `trap "" TERM HUP; echo up; for i in $(seq 300); do env -i `+"$(command -v setsid)"+` -f $(command -v sleep) `+mark+` & done; wait; exec sleep `+mark)
	d.waitText(s.ID, "up")
	eventually(t, 30*time.Second, "some have escaped", func() bool { return len(inGroup(dir, s.ID)) > 20 })
	d.closeSession(s.ID, 0)
	for _, p := range processes() {
		if strings.Contains(p.Cmd, mark) && p.State != 'Z' {
			t.Errorf("still alive: %v", p)
			_ = unix.Kill(p.PID, unix.SIGKILL)
		}
	}
	eventually(t, 20*time.Second, "no cgroup is left", func() bool { return len(groupsIn(dir)) == 0 })
}

// However many come and go, nothing is left of them in the tree.
func TestNoCgroupIsLeft(t *testing.T) {
	t.Parallel()
	d := start(t)
	dir := cgroupDir(t, d)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range full(25, 500) {
				// One in four is closed, the others end by themselves.
				argv := []string{"true"}
				if i%4 == 0 {
					argv = []string{"sleep", "1000"}
				}
				a, err := d.tryCall(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": argv}})
				var s session
				if err == nil {
					err = a.decode(&s)
				}
				if err == nil && i%4 == 0 {
					a, err = d.tryCall(request{Method: "POST", Path: "/v1/sessions/" + s.ID + "/close", Body: spec{"grace_ms": i % 8 * 250}})
				}
				if err != nil || a.Status > 201 {
					t.Errorf("session %d: %v, %v", i, a, err)
					return
				}
			}
		})
	}
	wg.Wait()
	eventually(t, 20*time.Second, "no cgroup is left", func() bool { return len(groupsIn(dir)) == 0 })
}

// A worker that dies between the making of a cgroup and its use leaves none.
func TestCgroupOfAStartThatFailed(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	d := start(t, daemonOptions{StateDir: dir, Env: []string{"PTYD_TEST_FAILPOINTS=ptymgr.start.entered=kill@" + dir + "/killed"}})
	tree := cgroupDir(t, d)
	_, err := d.tryCall(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"touch", dir + "/ran"}}})
	if err == nil {
		t.Error("the create was answered")
	}
	d.died(1)
	eventually(t, 30*time.Second, "another worker answers", d.ready)
	// Its row was on its way: it is there, or there never was a session.
	if all := d.sessions(); len(all) > 1 || len(all) == 1 && all[0].State != "lost" {
		t.Errorf("sessions: %+v", all)
	}
	eventually(t, 20*time.Second, "no cgroup is left", func() bool { return len(groupsIn(tree)) == 0 })
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("it ran")
	}
	// One whose program cannot be executed leaves none either.
	if err := os.WriteFile(dir+"/nothing", []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{dir + "/nothing"}}}).want(t, 422, "exec_failed")
	if left := groupsIn(tree); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// When keeper and worker die at once, the next daemon ends what is left of the
// sessions before it calls them lost.
func TestWhatIsLeftOfLostSessionsIsKilled(t *testing.T) {
	t.Parallel()
	d := start(t)
	dir := cgroupDir(t, d)
	file := filepath.Join(stateDir(t), "pid")
	s := d.run("bash", "-c", escape(file)+"; exec sleep 1000")
	d.waitText(s.ID, "escaped")
	p := escaped(t, file)
	worker := d.Worker()
	if err := unix.Kill(worker, unix.SIGSTOP); err != nil { // it would end the sessions
		t.Fatal(err)
	}
	d.KillKeeper()
	if err := unix.Kill(worker, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !p.alive() || !slices.Contains(inGroup(dir, s.ID), p.PID) {
		t.Fatalf("%v did not outlive its daemon in its cgroup", p)
	}
	next := start(t, daemonOptions{StateDir: d.StateDir})
	if cgroupDir(t, next) != dir {
		t.Errorf("another part of the tree: %s, then %s", dir, cgroupDir(t, next))
	}
	if got := next.session(s.ID); got.State != "lost" {
		t.Errorf("the session is %s", got.State)
	}
	if p.alive() {
		t.Errorf("still alive: %v", p)
	}
	eventually(t, 20*time.Second, "no cgroup is left", func() bool { return len(groupsIn(dir)) == 0 })
}

// What goes on in the background when its session ends by itself is left alone,
// as after a logout, over the worker's death too; its cgroup goes when it does.
func TestBackgroundOutlivesItsSession(t *testing.T) {
	t.Parallel()
	d := start(t)
	dir := cgroupDir(t, d)
	file := filepath.Join(stateDir(t), "pid")
	s := d.run("bash", "-c", escape(file)+"; exit 4")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 4" {
		t.Errorf("it ended with %s", got.exit())
	}
	p := escaped(t, file)
	d.KillWorker()
	if !p.alive() || !slices.Equal(groupsIn(dir), []string{s.ID}) {
		t.Errorf("%v was not left alone: %v", p, groupsIn(dir))
	}
	d.closeSession(s.ID, 0) // but it can be ended by name
	if p.alive() {
		t.Errorf("still alive: %v", p)
	}
	eventually(t, 20*time.Second, "no cgroup is left", func() bool { return len(groupsIn(dir)) == 0 })
}

// Without a keeper it is the same, and statuses are right.
func TestCgroupWithoutKeeper(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Args: []string{"--no-keeper"}})
	dir := cgroupDir(t, d)
	s := d.run("bash", "-c", "exit 7")
	if got := d.waitState(s.ID, "exited"); got.exit() != "status 7" {
		t.Errorf("it ended with %s", got.exit())
	}
	eventually(t, 20*time.Second, "no cgroup is left", func() bool { return len(groupsIn(dir)) == 0 })
	for _, p := range descendants(d.Keeper()) {
		t.Errorf("left below the daemon: %v", p)
	}
}

// A limit that nothing would enforce is refused with the reason; 0 is none.
func TestLimitsAreNeverIgnored(t *testing.T) {
	t.Parallel()
	d := start(t, daemonOptions{Args: []string{"--session-pids", "500"}})
	var st struct{ Cgroups cgroups }
	d.get("/v1/status", &st)
	for _, c := range []struct {
		field, controller string
		body              spec
	}{
		{"memory_limit", "memory", spec{"argv": []string{"true"}, "memory_limit": 64 << 20, "pids_limit": 0}},
		{"pids_limit", "pids", spec{"argv": []string{"true"}, "pids_limit": 64}},
	} {
		why, missing := st.Cgroups.Missing[c.controller]
		a := d.call(request{Method: "POST", Path: "/v1/sessions", Body: c.body})
		if !missing {
			if a.Status != 201 {
				t.Errorf("%s is there, and limited by %v", c.controller, a)
			}
			continue
		}
		a.want(t, 422, "unsupported")
		if !strings.Contains(a.String(), c.field) || !strings.Contains(a.String(), strings.Split(why, `"`)[0]) {
			t.Errorf("the answer names neither the field nor the reason: %v", a)
		}
	}
	if _, missing := st.Cgroups.Missing["pids"]; missing {
		// The configured limit counts for all that name none, and is not ignored.
		d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"true"}}}).want(t, 422, "unsupported")
		r := d.CLI("run", "-d", "--memory", "512M", "--pids", "0", "--", "true")
		if _, missing := st.Cgroups.Missing["memory"]; missing && (r.Code != 125 || !strings.Contains(r.Stderr, "memory_limit")) {
			t.Errorf("run --memory: %v", r)
		}
	}
	d.mustCLI("run", "-d", "--memory", "0", "--pids", "0", "--", "true")
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"true"}, "memory_limit": 5}}).want(t, 400, "invalid_argument")
}

// limited starts a daemon where a controller is; the test is left out elsewhere.
func limited(t *testing.T, controller string) *Daemon {
	t.Helper()
	d := start(t)
	cgroupDir(t, d)
	var st struct{ Cgroups cgroups }
	d.get("/v1/status", &st)
	if why, missing := st.Cgroups.Missing[controller]; missing {
		t.Skipf("left out: %s: no %s controller: %s", t.Name(), controller, why)
	}
	return d
}

// A session that wants more memory than it may have is bounded, and its end says so.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	d := limited(t, "memory")
	s := d.create(spec{"argv": []string{"bash", "-c", "head -c 300000000 /dev/zero | tail >/dev/null; exit 3"}, "memory_limit": 64 << 20})
	got := d.waitState(s.ID, "exited")
	if !strings.Contains(got.Error, "out of memory") {
		t.Errorf("it ended with %s, error %q", got.exit(), got.Error)
	}
}

// A session cannot have more processes than it may, and shows how many it has.
func TestPidsLimit(t *testing.T) {
	t.Parallel()
	d := limited(t, "pids")
	s := d.create(spec{"argv": []string{"bash", "-c", "for i in $(seq 40); do sleep 1000 & done; echo all; wait"}, "pids_limit": 20})
	d.waitText(s.ID, "fork: ")
	var shown struct {
		Limit int `json:"pids_limit"`
		Usage struct{ Pids int }
	}
	d.get("/v1/sessions/"+s.ID, &shown)
	if shown.Limit != 20 || shown.Usage.Pids < 2 || shown.Usage.Pids > 20 {
		t.Errorf("%+v", shown)
	}
	d.closeSession(s.ID, 0)
}

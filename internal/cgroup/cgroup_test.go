package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMountPoint(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n":                                                                     "",
		"tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n":                                  "/sys/fs/cgroup/unified",
		"cgroup2 /mnt/a\\040b\\134c cgroup2 rw 0 0\n":                                                                         `/mnt/a b\c`,
		"cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\ncgroup2 /var/lib/machines/x/sys/fs/cgroup cgroup2 rw 0 0\nproc /p": "/sys/fs/cgroup",
	} {
		got, err := mountPoint(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestOwnPath(t *testing.T) {
	for text, want := range map[string]string{
		"0::/\n":                                "/",
		"8:pids:/x\n0::/system.slice/a.service": "/system.slice/a.service",
		"8:pids:/x\n":                           "",
		"0::/../outside\n":                      "",
		"":                                      "",
	} {
		got, err := ownPath(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// Two state directories never share a subtree, and one keeps its own.
func TestNames(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	na, err := nameFor(a)
	if err != nil {
		t.Fatal(err)
	}
	nb, err := nameFor(b)
	if err != nil || na == nb {
		t.Errorf("%q and %q, %v", na, nb, err)
	}
	if again, _ := nameFor(a); again != na {
		t.Errorf("%q, then %q", na, again)
	}
	if _, err := nameFor(filepath.Join(a, "none")); err == nil {
		t.Error("a directory that is not there has a name")
	}
}

// fake makes a directory with the files of a cgroup.
func fake(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A controller that the tree does not have is missing with a reason, and one
// that it has is handed on.
func TestControllers(t *testing.T) {
	mount := fake(t, t.TempDir(), map[string]string{"cgroup.controllers": "cpu pids\n", "cgroup.subtree_control": "cpu\n"})
	sub := fake(t, filepath.Join(mount, "ptyd-x"), map[string]string{"cgroup.procs": "", "cgroup.controllers": "pids\n", "cgroup.subtree_control": ""})
	tree, err := open(mount, "/", "ptyd-x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if why := tree.Missing(Memory); !strings.Contains(why, `cgroup.controllers of / does not hold "memory"`) {
		t.Errorf("memory: %q", why)
	}
	if why := tree.Missing(Pids); why != "" {
		t.Errorf("pids: %q", why)
	}
	for _, dir := range []string{mount, sub} {
		if b, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); !strings.HasPrefix(string(b), "+pids") {
			t.Errorf("%s hands on %q", dir, b)
		}
	}
	if tree.Path() != "/ptyd-x" {
		t.Error(tree.Path())
	}
}

// The daemon moves out of its cgroup only where it is alone in it and nobody
// else starts it there.
func TestMoveOwn(t *testing.T) {
	base := fake(t, t.TempDir(), map[string]string{"cgroup.procs": "10\n11\n"})
	tree := &Tree{dir: filepath.Join(base, "ptyd-x")}
	fake(t, filepath.Join(tree.dir, mainName), map[string]string{"cgroup.procs": ""})
	if err := tree.moveOwn(base, Options{Own: []int{10}}); err == nil || !strings.Contains(err.Error(), "others than the daemon") {
		t.Errorf("with a stranger: %v", err)
	}
	if err := tree.moveOwn(base, Options{Own: []int{10, 11}, Supervised: true}); err == nil || !strings.Contains(err.Error(), "254") {
		t.Errorf("under a service manager: %v", err)
	}
	if err := tree.moveOwn(base, Options{Own: []int{10, 11}}); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(filepath.Join(tree.dir, mainName, "cgroup.procs")); !strings.HasPrefix(string(b), "11") {
		t.Errorf("moved: %q", b)
	}
}

func TestReading(t *testing.T) {
	g := &Group{fake(t, t.TempDir(), map[string]string{
		"memory.current": "4096\n", "memory.max": "max\n", "pids.current": "3\n", "pids.max": "200\n",
		"cpu.stat": "usage_usec 1500\nuser_usec 1\n", "memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n",
	})}
	if u, want := g.Usage(), (Usage{Memory: 4096, MemoryMax: -1, Pids: 3, PidsMax: 200, CPU: 1500 * time.Microsecond}); u != want {
		t.Errorf("%+v, want %+v", u, want)
	}
	if n := g.OOMKills(); n != 2 {
		t.Errorf("%d kills", n)
	}
	none := &Group{t.TempDir()}
	if u, want := none.Usage(), (Usage{Memory: -1, MemoryMax: -1, Pids: -1, PidsMax: -1, CPU: -1}); u != want {
		t.Errorf("without controllers: %+v", u)
	}
	if none.OOMKills() != 0 || none.Populated() {
		t.Error("an empty directory has something")
	}
}

// realTree opens a subtree of the machine's own tree.
func realTree(t *testing.T) *Tree {
	t.Helper()
	tree, err := Open(Options{StateDir: t.TempDir()})
	if err != nil {
		t.Skipf("left out: no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(tree.dir); err == nil {
			t.Errorf("%s is left", tree.dir)
		}
	})
	return tree
}

// within starts a command in a group.
func within(t *testing.T, g *Group, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `echo 0 >"$0"/cgroup.procs && exec "$@"`, g.dir}, argv...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	deadline := time.Now().Add(10 * time.Second)
	for !g.Has(cmd.Process.Pid) {
		if time.Now().After(deadline) {
			t.Fatal("it is not in its cgroup")
		}
		<-time.After(time.Millisecond)
	}
	return cmd
}

// All of a group dies at once, what is in cgroups below it too; what lives
// keeps it from being removed.
func TestKill(t *testing.T) {
	tree := realTree(t)
	g, err := tree.Create("s_1", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Create("s_1", Limits{}); err == nil {
		t.Error("two groups of one name")
	}
	below := &Group{filepath.Join(g.dir, "of", "its own")}
	if err := os.MkdirAll(below.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a, b := within(t, g, "sleep", "1000"), within(t, below, "sleep", "1000")
	if got := g.Procs(); len(got) != 2 || !slices.Contains(got, a.Process.Pid) || !slices.Contains(got, b.Process.Pid) {
		t.Errorf("processes %v", got)
	}
	if !g.Populated() {
		t.Error("not populated")
	}
	if err := g.Remove(); !errors.Is(err, ErrBusy) {
		t.Errorf("removed with life in it: %v", err)
	}
	if g.WaitEmpty(time.Millisecond) {
		t.Error("empty with life in it")
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if !g.WaitEmpty(10 * time.Second) {
		t.Fatalf("still there: %v", g.Procs())
	}
	if err := g.Remove(); err != nil {
		t.Fatal(err)
	}
	if tree.Group("s_1") != nil {
		t.Error("it is still there")
	}
	if err := g.Remove(); err != nil {
		t.Errorf("removed again: %v", err)
	}
	if err := g.Kill(); err != nil {
		t.Errorf("killed when gone: %v", err)
	}
}

func TestNamesOfGroups(t *testing.T) {
	tree := realTree(t)
	for _, n := range []string{"s_1", "s_2"} {
		g, err := tree.Create(n, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Remove() }()
	}
	names, err := tree.Names()
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"s_1", "s_2"}) {
		t.Errorf("%v, %v", names, err)
	}
}

// Limits are set where the controllers are; where not, setting them fails.
func TestLimits(t *testing.T) {
	tree := realTree(t)
	for _, c := range []struct {
		controller string
		limits     Limits
		file, want string
	}{{Memory, Limits{Memory: 64 << 20}, "memory.max", "67108864"}, {Pids, Limits{Pids: 20}, "pids.max", "20"}} {
		g, err := tree.Create("s_"+c.controller, c.limits)
		if why := tree.Missing(c.controller); why != "" {
			if err == nil {
				t.Errorf("%s: a limit that nobody enforces was taken (%s)", c.controller, why)
			}
			t.Logf("left out: the %s limit itself: %s", c.controller, why)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(filepath.Join(g.dir, c.file)); strings.TrimSpace(string(b)) != c.want {
			t.Errorf("%s holds %q", c.file, b)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
}

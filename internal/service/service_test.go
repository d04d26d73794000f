package service

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/problem"
)

func machine(t *testing.T) *Service {
	t.Helper()
	s := New(false)
	s.Root = t.TempDir()
	return s
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func plan(t *testing.T, s *Service, o Options, version int) map[string]File {
	t.Helper()
	o.Binary, o.Force = "/opt/ptyd", true
	files, err := s.Plan(o, version)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]File{}
	for _, f := range files {
		m[filepath.Base(f.Path)] = f
	}
	return m
}

// Keys that a systemd does not know are not written for it, and what an earlier
// installation wrote goes when it is not wanted any more.
func TestPlan(t *testing.T) {
	s := machine(t)
	for _, dir := range []string{"data", "a%b c"} {
		if err := os.Mkdir(filepath.Join(s.Root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := plan(t, s, Options{Relaxed: true, Workspaces: []string{"/data/", "/a%b c"}}, 252)
	if f := old[Unit]; f.Action() != "write" || !strings.Contains(f.Text, "\nExecStart=/opt/ptyd serve\n") {
		t.Errorf("the unit: %s\n%s", f.Action(), f.Text)
	}
	if a := old[dropNew].Action(); a != "" {
		t.Errorf("systemd 252 gets the keys of 254: %q", a)
	}
	for _, f := range old {
		if f.Action() == "write" {
			put(t, f.Path, f.Text)
		}
	}
	if got := s.Workspaces(); len(got) != 2 || got[0] != "/data" || got[1] != "/a%b c" {
		t.Errorf("workspaces read back: %q", got)
	}
	now := plan(t, s, Options{}, 257)
	for name, want := range map[string]string{Unit: "keep", tmpUnit: "keep", dropNew: "write", dropRelaxed: "remove", dropWorkspaces: "remove"} {
		if a := now[name].Action(); a != want {
			t.Errorf("%s: %q, want %q", name, a, want)
		}
	}
}

// A package's unit is used as it is, and somebody's own work is not lost.
func TestPlanWithOthersFiles(t *testing.T) {
	s := machine(t)
	put(t, filepath.Join(s.Root, "usr/lib/systemd/system", Unit), plan(t, s, Options{}, 252)[Unit].Text)
	if a := plan(t, s, Options{}, 252)[Unit].Action(); a != "" {
		t.Errorf("the package's unit would be hidden: %q", a)
	}
	mine := filepath.Join(s.Root, "etc/systemd/system", Unit)
	put(t, mine, "[Service]\nExecStart=/mine\n")
	f := plan(t, s, Options{}, 252)[Unit]
	p, ok := errors.AsType[*problem.Error](Differs([]File{f}))
	if !ok || p.Code != problem.Conflict || !strings.Contains(p.Detail, mine) {
		t.Errorf("over somebody's unit: %v", p)
	}
}

func TestRefusedOptions(t *testing.T) {
	s := machine(t)
	for name, o := range map[string]Options{
		"relative":      {Binary: "/opt/ptyd", Workspaces: []string{"data"}},
		"everything":    {Binary: "/opt/ptyd", Workspaces: []string{"/."}},
		"line":          {Binary: "/opt/ptyd", Workspaces: []string{"/a\nExecStart=/x"}},
		"not there":     {Binary: "/opt/ptyd", Workspaces: []string{"/nowhere"}},
		"odd program":   {Binary: "/opt/p tyd"},
		"loose program": {Binary: loose(t, 0o777)},
	} {
		o.Force = name != "loose program"
		if _, err := s.Plan(o, 252); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	own := New(true)
	if _, err := own.Plan(Options{Binary: "/opt/ptyd", Relaxed: true}, 252); err == nil {
		t.Error("a service of one's own was relaxed")
	}
}

// A program that a group can change is refused as one that everybody can; below
// /tmp all are, so only the program itself is looked at here.
func TestProgramOfAGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("left out: only root can give a file to another group")
	}
	path := loose(t, 0o775)
	for gid, refused := range map[int]bool{0: false, 4242: true} {
		if err := os.Chown(path, 0, gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o775); err != nil {
			t.Fatal(err)
		}
		err := safe(path)
		if got := err != nil && strings.Contains(err.Error(), path+" can be changed"); got != refused {
			t.Errorf("group %d: %v", gid, err)
		}
	}
}

// loose is a program of that mode.
func loose(t *testing.T, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "ptyd")
	put(t, path, "")
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

package ptymgr_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/ptyd/ptyd/internal/checkpoint"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/store"
)

// house is a store and a directory for managers that come one after the other.
type house struct {
	st  *store.Store
	dir string
}

func newHouse(t *testing.T) house {
	h := house{openStore(t, zaptest.NewLogger(t)), filepath.Join(t.TempDir(), "checkpoints")}
	t.Cleanup(func() {
		if err := h.st.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// open starts a manager; close ends it in order.
func (h house) open(t *testing.T, edit ...func(*ptymgr.Config)) (m *ptymgr.Manager, end func()) {
	t.Helper()
	v, err := ptymgr.NewDirect()
	if err != nil {
		t.Fatal(err)
	}
	cfg := ptymgr.Config{Grace: time.Second, OutputLimit: 1 << 20, CheckpointDir: h.dir, CheckpointEvery: 20 * time.Millisecond}
	for _, f := range edit {
		f(&cfg)
	}
	if m, err = ptymgr.New(cfg, h.st, v, events.NewHub(), zaptest.NewLogger(t)); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			if err := m.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			v.Close()
		}
	}
	t.Cleanup(end)
	return m, end
}

// files are the names in the directory that begin with prefix.
func (h house) files(t *testing.T, prefix string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(h.dir, prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// row makes a session as a daemon that was killed leaves it.
func (h house) row(t *testing.T, edit func(*ptymgr.Record)) ptymgr.Record {
	t.Helper()
	r := ptymgr.Record{ID: ident.New("s"), Name: "left", Owner: owner, State: ptymgr.Starting, Argv: []string{"sleep", "1000"}, Cwd: "/",
		Cols: 80, Rows: 24, CreatedAt: time.Now(), Epoch: 77}
	if edit != nil {
		edit(&r)
	}
	if _, _, err := h.st.CreateSession(t.Context(), r, "", "", ptymgr.Limits{}); err != nil {
		t.Fatal(err)
	}
	if r.PID > 0 {
		if err := h.st.MarkRunning(t.Context(), r.ID, r.PID, time.Now(), r.Birth); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// write makes a checkpoint of a session.
func (h house) write(t *testing.T, r ptymgr.Record, off uint64, data string) {
	t.Helper()
	l, err := checkpoint.Open(h.dir).Log(r.ID, r.Epoch, 1<<20, make([]byte, checkpoint.BufSize))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(off, []byte(data), func(off uint64) uint64 { return off }); err != nil {
		t.Fatal(err)
	}
}

// A daemon that ends in order leaves all output on the disk; the next one
// serves it with the offsets and the epoch that it had, and it goes with the
// session.
func TestOutputOutlivesTheDaemon(t *testing.T) {
	h := newHouse(t)
	m, end := h.open(t, func(c *ptymgr.Config) { c.CheckpointEvery = time.Hour }) // nothing but the end writes
	a := exited(t, m, sh(t, m, "echo one; exit 3").ID)
	b := sh(t, m, "stty -opost; head -c 300000 /dev/zero | tr '\\0' x; echo end; exec sleep 100")
	text(t, m, b.ID, "end\n")
	want := output(t, m, b.ID)
	secret, _, err := m.Create(t.Context(), ptymgr.Spec{Argv: []string{"echo", "secret"}, Owner: owner, NoCheckpoint: true})
	if err != nil {
		t.Fatal(err)
	}
	exited(t, m, secret.ID)
	end()
	for id, some := range map[string]bool{a.ID: true, b.ID: true, secret.ID: false} {
		if n := len(h.files(t, id)); n > 0 != some {
			t.Errorf("%d files of %s", n, id)
		}
	}

	m, _ = h.open(t)
	if i, err := m.Get(t.Context(), a.ID); err != nil || i.Offset != 5 || i.Oldest != 0 || i.ExitCode == nil || *i.ExitCode != 3 {
		t.Errorf("%+v, %v", i, err)
	}
	if got := output(t, m, a.ID); got != "one\r\n" {
		t.Errorf("%q", got)
	}
	if got := output(t, m, b.ID); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	c, err := m.Output(t.Context(), b.ID, 299999, 10, 0)
	if err != nil || string(c.Data) != "xend\n" || c.Offset != 299999 || c.Next != 300004 || c.Head != 300004 || c.Oldest != 0 || c.Epoch != b.Epoch || !c.EOF {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := m.Output(t.Context(), b.ID, 300005, 10, 0); !problem.Is(err, problem.InvalidArgument) {
		t.Errorf("beyond the end: %v", err)
	}
	text(t, m, b.ID, "xend\n")
	if s := m.Session(b.ID); s == nil || s.Epoch() != b.Epoch || s.Ring().Head() != 300004 {
		t.Error("viewers do not find it")
	}
	if i, err := m.Get(t.Context(), secret.ID); err != nil || !i.NoCheckpoint {
		t.Errorf("%+v, %v", i, err)
	}
	if m.Session(secret.ID) != nil || output(t, m, secret.ID) != "" {
		t.Error("the output that was not to be kept is there")
	}
	if err := m.Remove(t.Context(), b.ID, false); err != nil {
		t.Fatal(err)
	}
	if m.Session(b.ID) != nil {
		t.Error("a removed session can be attached to")
	}
	eventually(t, func() bool { return len(h.files(t, b.ID)) == 0 })
	if len(h.files(t, a.ID)) == 0 {
		t.Error("the other one's files went too")
	}
}

// What a daemon that was killed left: its sessions are lost and readable, what
// lived of them is killed and nothing else, and files of nobody go.
func TestLostSessionsAreReadable(t *testing.T) {
	h := newHouse(t)
	// A stranger has the number that is recorded, with another birth.
	stranger := exec.Command("sleep", "1000")
	stranger.Env = []string{}
	marked := exec.Command("setsid", "sleep", "1000")
	r := h.row(t, nil)
	marked.Env = []string{"PTYD_SESSION=" + r.ID}
	for _, c := range []*exec.Cmd{stranger, marked} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	died := make(chan error, 1)
	go func() { died <- marked.Wait() }()
	other := h.row(t, func(r *ptymgr.Record) {
		r.Name, r.PID, r.Birth = "other", stranger.Process.Pid, ptymgr.BirthOf(1)
	})
	h.write(t, r, 1000, "what was printed\r\n")
	nobody := ptymgr.Record{ID: ident.New("s"), Epoch: 5}
	h.write(t, nobody, 0, "of nobody")

	m, _ := h.open(t)
	if n := m.Adopted().Lost; n != 2 {
		t.Errorf("%d are lost", n)
	}
	if err := <-died; err == nil || marked.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the survivor ended with %v", err)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger: %v", err)
	}
	i, err := m.Get(t.Context(), r.ID)
	if err != nil || i.State != ptymgr.Lost || i.Oldest != 1000 || i.Offset != 1018 {
		t.Errorf("%+v, %v", i, err)
	}
	c, err := m.Output(t.Context(), r.ID, 0, 0, time.Minute)
	if err != nil || c.Offset != 1000 || string(c.Data) != "what was printed\r\n" || !c.EOF || c.Epoch != 77 {
		t.Errorf("%+v, %v", c, err)
	}
	if i, err := m.Get(t.Context(), other.ID); err != nil || i.State != ptymgr.Lost || output(t, m, other.ID) != "" {
		t.Errorf("%+v, %v", i, err)
	}
	eventually(t, func() bool { return len(h.files(t, nobody.ID)) == 0 })
}

// The leader is told by boot, number and start, whatever its environment says.
func TestLeaderIsKilledByItsBirth(t *testing.T) {
	h := newHouse(t)
	leader := exec.Command("sleep", "1000")
	leader.Env = []string{}
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	h.row(t, func(r *ptymgr.Record) {
		r.PID, r.Birth = leader.Process.Pid, ptymgr.BirthOf(ptymgr.StartOf(leader.Process.Pid))
	})
	died := make(chan error, 1)
	go func() { died <- leader.Wait() }()
	h.open(t)
	if err := <-died; err == nil {
		t.Error("it ended by itself")
	}
}

// Output is written while sessions run, at most once an interval, and the file
// grows by what came.
func TestWrittenWhileRunning(t *testing.T) {
	h := newHouse(t)
	m, _ := h.open(t)
	s := sh(t, m, "echo first; read x; echo second; read x")
	text(t, m, s.ID, "first")
	eventually(t, func() bool { return len(h.files(t, s.ID)) == 1 })
	if err := m.Input(t.Context(), s.ID, []byte("\n")); err != nil {
		t.Fatal(err)
	}
	text(t, m, s.ID, "second")
	want := output(t, m, s.ID)
	eventually(t, func() bool {
		d := checkpoint.Open(h.dir)
		sv, err := d.Find(s.ID, s.Epoch)
		var got []byte
		if err == nil {
			err = sv.Each(func(p []byte) error { got = append(got, p...); return nil })
		}
		return err == nil && string(got) == want
	})
	for _, f := range append(h.files(t, s.ID), h.dir) {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", f, st.Mode(), err)
		}
	}
	if a := m.Stats().Archive; !a.On || a.Error != "" || a.Sessions != 1 || a.Written != uint64(len(want)) {
		t.Errorf("%+v", a)
	}
}

// A disk that is short stops checkpoints, which is said, and sessions go on;
// with room again they go on too, and nothing is missing.
func TestShortDiskStopsCheckpoints(t *testing.T) {
	h := newHouse(t)
	var short atomic.Bool
	m, _ := h.open(t, func(c *ptymgr.Config) {
		c.MinFree = func() error {
			if short.Load() {
				return problem.New(problem.DiskFull, "the disk is full")
			}
			return nil
		}
	})
	s := sh(t, m, "while read x; do echo got $x; done")
	say := func(x string) {
		t.Helper()
		if err := m.Input(t.Context(), s.ID, []byte(x+"\n")); err != nil {
			t.Fatal(err)
		}
		text(t, m, s.ID, "got "+x)
	}
	say("one")
	short.Store(true)
	say("two")
	eventually(t, func() bool { return strings.Contains(m.Stats().Archive.Error, "full") })
	say("three")
	short.Store(false)
	eventually(t, func() bool { return m.Stats().Archive.Error == "" })
	want := output(t, m, s.ID)
	eventually(t, func() bool {
		from, to, _ := checkpoint.Open(h.dir).Extent(s.ID, s.Epoch)
		return from == 0 && to == uint64(len(want))
	})
}

// A directory that cannot be used harms no session.
func TestNoPlaceForCheckpoints(t *testing.T) {
	h := newHouse(t)
	if err := os.WriteFile(h.dir, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, end := h.open(t)
	s := exited(t, m, sh(t, m, "echo fine").ID)
	eventually(t, func() bool { return m.Stats().Archive.Error != "" })
	if got := output(t, m, s.ID); got != "fine\r\n" {
		t.Errorf("%q", got)
	}
	end()
	m, _ = h.open(t)
	if i, err := m.Get(t.Context(), s.ID); err != nil || i.Offset != 6 || output(t, m, s.ID) != "" {
		t.Errorf("%+v, %v", i, err)
	}
}

// All files together keep to the total: the oldest ended sessions' go first.
func TestCheckpointTotal(t *testing.T) {
	h := newHouse(t)
	m, _ := h.open(t, func(c *ptymgr.Config) { c.CheckpointTotal = 250 << 10 })
	var ids []string
	for range 4 {
		s := sh(t, m, "stty -opost; head -c 100000 /dev/zero")
		exited(t, m, s.ID)
		ids = append(ids, s.ID)
		eventually(t, func() bool { return len(h.files(t, s.ID)) > 0 })
	}
	eventually(t, func() bool { return len(h.files(t, ids[0])) == 0 && len(h.files(t, ids[1])) == 0 })
	eventually(t, func() bool { return m.Stats().Archive.Bytes <= 250<<10 })
	for _, id := range ids[2:] {
		if len(h.files(t, id)) == 0 {
			t.Errorf("nothing of %s", id)
		}
	}
	// And living ones keep their newest.
	s := sh(t, m, "stty -opost; seq 1 100000; exec sleep 100")
	text(t, m, s.ID, "\n100000\n")
	eventually(t, func() bool {
		a := m.Stats().Archive
		_, to, _ := checkpoint.Open(h.dir).Extent(s.ID, s.Epoch)
		return a.Bytes <= 250<<10 && to == 588895
	})
}

// Many flooding sessions share what may be written, each keeps its newest, and
// what is kept is what was printed.
func TestFloodsShareTheRate(t *testing.T) {
	h := newHouse(t)
	m, end := h.open(t, func(c *ptymgr.Config) { c.OutputLimit = 256 << 10 })
	var all []ptymgr.Info
	for i := range 8 {
		all = append(all, sh(t, m, fmt.Sprintf("stty -opost; while :; do seq %d00000 %d50000; done", i+1, i+1)))
	}
	eventually(t, func() bool { return m.Stats().Archive.Skipped > 1<<20 })
	end()
	m, _ = h.open(t)
	for _, s := range all {
		i, err := m.Get(t.Context(), s.ID)
		if err != nil || i.Offset <= i.Oldest || i.Offset-i.Oldest > 256<<10 || i.Offset != i.FinalOffset {
			t.Errorf("%+v, %v", i, err)
		}
		// Lines of seven bytes that count up.
		out := []byte(output(t, m, s.ID))
		out = out[(7-i.Oldest%7)%7:]
		for k := 14; k <= len(out); k += 7 {
			var x, y int
			if n, err := fmt.Sscanf(string(out[k-14:k]), "%d\n%d\n", &x, &y); n != 2 || err != nil || y != x+1 && y != x-50000 {
				t.Fatalf("%q after %d of %d bytes", out[k-14:k], k, len(out))
			}
		}
	}
}

// Run again: the same in every respect, another session, once per key.
func TestRunAgain(t *testing.T) {
	h := newHouse(t)
	m, end := h.open(t)
	dir := t.TempDir()
	spec := ptymgr.Spec{Argv: []string{"bash", "--norc", "-c", "pwd; echo $SECRET; stty size"}, Cwd: dir, Env: []string{"SECRET=xyzzy"}, Cols: 101, Rows: 33,
		Name: "job", Labels: map[string]string{"a": "b"}, Owner: owner, OutputLimit: 128 << 10, NoCheckpoint: true}
	first, _, err := m.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	exited(t, m, first.ID)
	want := output(t, m, first.ID)
	if want != dir+"\r\nxyzzy\r\n33 101\r\n" {
		t.Fatalf("%q", want)
	}
	if err := m.Written(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	second, existing, err := m.RunAgain(t.Context(), first.ID, "key")
	if err != nil || existing {
		t.Fatal(existing, err)
	}
	exited(t, m, second.ID)
	if got := output(t, m, second.ID); got != want || second.ID == first.ID || second.RerunOf != first.ID || second.Name != "job" ||
		second.Labels["a"] != "b" || second.OutputLimit != 128<<10 || !second.NoCheckpoint {
		t.Errorf("%q of %+v", got, second)
	}
	// The same key, even though the old one is called otherwise by now.
	if _, err := m.Rename(t.Context(), first.ID, "renamed"); err != nil {
		t.Fatal(err)
	}
	if again, existing, err := m.RunAgain(t.Context(), first.ID, "key"); err != nil || !existing || again.ID != second.ID {
		t.Errorf("%v %v %v", again.ID, existing, err)
	}
	if _, _, err := m.RunAgain(t.Context(), second.ID, "key"); !problem.Is(err, problem.IdempotencyReuse) {
		t.Errorf("the key for another one: %v", err)
	}
	if _, _, err := m.RunAgain(t.Context(), ident.New("s"), ""); !problem.Is(err, problem.NotFound) {
		t.Errorf("nobody: %v", err)
	}
	living := sh(t, m, "exec sleep 100")
	if _, _, err := m.RunAgain(t.Context(), living.ID, ""); !problem.Is(err, problem.SessionRunning) {
		t.Errorf("a living one: %v", err)
	}
	// The name is taken while one of them lives: no second copy by accident.
	shell, _, err := m.Create(t.Context(), ptymgr.Spec{Shell: true, Owner: owner, Name: "shell"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Close(t.Context(), shell.ID, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.Written(t.Context(), shell.ID); err != nil {
		t.Fatal(err)
	}
	again, _, err := m.RunAgain(t.Context(), shell.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if cmd, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", again.PID)); err != nil || !bytes.HasPrefix(cmd, []byte("-")) {
		t.Errorf("no login shell: %q, %v", cmd, err)
	}
	if _, _, err := m.RunAgain(t.Context(), shell.ID, ""); !problem.Is(err, problem.NameTaken) {
		t.Errorf("twice: %v", err)
	}
	end()
}

// While something of a lost session lives it is not run again.
func TestLostIsNotRunAgainWhileItLives(t *testing.T) {
	h := newHouse(t)
	r := h.row(t, nil)
	m, _ := h.open(t)
	c := exec.Command("sleep", "1000")
	c.Env = []string{"PTYD_SESSION=" + r.ID}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, _, err := m.RunAgain(t.Context(), r.ID, "")
	if p, ok := errors.AsType[*problem.Error](err); !ok || p.Code != problem.Conflict || !strings.Contains(p.Detail, fmt.Sprint(c.Process.Pid)) {
		t.Errorf("got %v", err)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if _, _, err := m.RunAgain(t.Context(), r.ID, ""); err != nil {
		t.Errorf("once nothing lives: %v", err)
	}
}

// An owner keeps so many ended sessions, and those that ended first go.
func TestEndedPerOwner(t *testing.T) {
	h := newHouse(t)
	m, _ := h.open(t, func(c *ptymgr.Config) { c.EndedPerOwner = 3 })
	living := sh(t, m, "exec sleep 100")
	other, _, err := m.Create(t.Context(), ptymgr.Spec{Argv: []string{"true"}, Owner: "u_other"})
	if err != nil {
		t.Fatal(err)
	}
	exited(t, m, other.ID)
	var ids []string
	for range 6 {
		s := sh(t, m, "echo x")
		if err := m.Written(t.Context(), exited(t, m, s.ID).ID); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	eventually(t, func() bool {
		_, err := m.Get(t.Context(), ids[2])
		return problem.Is(err, problem.NotFound) && m.Session(ids[2]) == nil
	})
	for _, id := range append(ids[3:], living.ID, other.ID) {
		if _, err := m.Get(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range ids[:3] {
		eventually(t, func() bool { return len(h.files(t, id)) == 0 })
	}
}

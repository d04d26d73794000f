package ptymgr_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const owner = "u_test"

// openStore makes a database with the users of the tests.
func openStore(t *testing.T, log *zap.Logger) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{DSN: filepath.Join(t.TempDir(), "ptyd.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{owner, "u_other"} {
		if err := st.InsertUser(t.Context(), auth.User{ID: id, Name: id, Role: auth.Operator, CreatedAt: time.Now()}, ""); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func manager(t *testing.T, edit ...func(*ptymgr.Config)) *ptymgr.Manager {
	t.Helper()
	log := zaptest.NewLogger(t)
	st := openStore(t, log)
	cfg := ptymgr.Config{Grace: time.Second, OutputLimit: 1 << 20}
	for _, f := range edit {
		f(&cfg)
	}
	v, err := ptymgr.NewDirect()
	if err != nil {
		t.Fatal(err)
	}
	m, err := ptymgr.New(cfg, st, v, events.NewHub(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		v.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func create(t *testing.T, m *ptymgr.Manager, argv ...string) ptymgr.Info {
	t.Helper()
	i, _, err := m.Create(t.Context(), ptymgr.Spec{Argv: argv, Owner: owner, Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func sh(t *testing.T, m *ptymgr.Manager, script string) ptymgr.Info {
	t.Helper()
	return create(t, m, "bash", "--norc", "-c", script)
}

func wait(t *testing.T, m *ptymgr.Manager, id string, c ptymgr.Conditions) ptymgr.WaitResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := m.Wait(ctx, id, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func exited(t *testing.T, m *ptymgr.Manager, id string) ptymgr.Info {
	t.Helper()
	r := wait(t, m, id, ptymgr.Conditions{Exit: true})
	if r.Matched != "exit" {
		t.Fatalf("session did not end: %+v, output %q", r, output(t, m, id))
	}
	return r.Info
}

func text(t *testing.T, m *ptymgr.Manager, id, re string) {
	t.Helper()
	if r := wait(t, m, id, ptymgr.Conditions{Text: regexp.MustCompile(re)}); r.Matched != "text" {
		t.Fatalf("no %q in %q (%+v)", re, output(t, m, id), r)
	}
}

func output(t *testing.T, m *ptymgr.Manager, id string) string {
	t.Helper()
	var all []byte
	var off uint64
	for {
		c, err := m.Output(t.Context(), id, off, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Data) == 0 {
			return string(all)
		}
		all = append(all, c.Data...)
		off = c.Next
	}
}

func TestExitTruth(t *testing.T) {
	m := manager(t)
	for _, c := range []struct {
		script string
		code   int
		signal string
	}{
		{"exit 0", 0, ""}, {"exit 7", 7, ""}, {"exit 255", 255, ""},
		{"kill -KILL $$", -1, "SIGKILL"}, {"kill -SEGV $$", -1, "SIGSEGV"}, {"kill -TERM $$", -1, "SIGTERM"},
	} {
		i := exited(t, m, sh(t, m, c.script).ID)
		if i.State != ptymgr.Exited || i.Signal != c.signal || (c.code >= 0) != (i.ExitCode != nil) || (c.code >= 0 && *i.ExitCode != c.code) {
			t.Errorf("%s: %s code %v signal %q", c.script, i.State, i.ExitCode, i.Signal)
		}
	}
}

// More output than the terminal's buffer holds, and then the end: nothing of it may be lost.
func TestLastBytesBeforeExit(t *testing.T) {
	m := manager(t)
	var wg sync.WaitGroup
	for range 20 {
		i := sh(t, m, "seq 1 20000; exit 3")
		wg.Go(func() {
			e := exited(t, m, i.ID)
			out := output(t, m, i.ID)
			if !strings.HasSuffix(out, "19999\r\n20000\r\n") || uint64(len(out)) != e.Offset-e.Oldest {
				t.Errorf("ends with %q", out[max(0, len(out)-20):])
			}
		})
	}
	wg.Wait()
}

// A child that outlives the leader and holds the terminal must not hold up the end.
func TestBackgroundChildHoldsTerminal(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "trap '' HUP; setsid sleep 60 & echo started; exit 4")
	if e := exited(t, m, i.ID); e.ExitCode == nil || *e.ExitCode != 4 {
		t.Errorf("code %v", e.ExitCode)
	}
	if _, err := m.Close(t.Context(), i.ID, 0); err != nil { // ends what lives of it
		t.Error(err)
	}
}

// EIO on the master while the leader lives is a pause, not the end.
func TestTerminalClosedAndOpenedAgain(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "exec 0<&- 1>&- 2>&-; sleep 0.2; exec 1>/dev/tty; echo back; exit 5")
	e := exited(t, m, i.ID)
	if out := output(t, m, i.ID); !strings.Contains(out, "back") || e.ExitCode == nil || *e.ExitCode != 5 {
		t.Errorf("%q, code %v", out, e.ExitCode)
	}
}

func alive(pid int) bool { return unix.Kill(pid, 0) == nil }

func TestCloseEndsTheWholeTree(t *testing.T) {
	m := manager(t, func(c *ptymgr.Config) { c.Grace = 300 * time.Millisecond })
	dir := t.TempDir()
	i := sh(t, m, fmt.Sprintf(`trap '' TERM HUP
		(trap '' TERM HUP; echo $BASHPID >%[1]s/child; while :; do sleep 1; done) &
		setsid bash -c '(trap "" TERM HUP; echo $BASHPID >%[1]s/grandchild; while :; do sleep 1; done) & disown; exit' &
		while [ ! -s %[1]s/child ] || [ ! -s %[1]s/grandchild ]; do sleep 0.01; done; echo ready; while :; do sleep 1; done`, dir))
	text(t, m, i.ID, "ready")
	var pids []int
	for _, f := range []string{"child", "grandchild"} {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		if !alive(pid) {
			t.Fatalf("%s %d does not live", f, pid)
		}
		pids = append(pids, pid)
	}
	e, err := m.Close(t.Context(), i.ID, -1)
	if err != nil || e.State != ptymgr.Exited || e.Signal != "SIGKILL" {
		t.Errorf("%+v %v", e, err)
	}
	for _, pid := range pids {
		if alive(pid) {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if !bytes.Contains(b, []byte(") Z ")) { // process 1 may not have reaped it yet
				t.Errorf("process %d survived: %s", pid, b)
			}
		}
	}
}

// What the daemon's user cannot signal must not hold Close up for ever: the
// session ends, and the caller is told.
func TestCloseOfWhatCannotBeEnded(t *testing.T) {
	m := manager(t, func(c *ptymgr.Config) { c.Grace = 50 * time.Millisecond })
	i := sh(t, m, "echo ready; sleep 600")
	text(t, m, i.ID, "ready")
	defer ptymgr.RefuseSignals()()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e, err := m.Close(ctx, i.ID, -1)
	if !problem.Is(err, problem.Forbidden) || !e.State.Ended() || !strings.Contains(err.Error(), strconv.Itoa(i.PID)) {
		t.Errorf("%+v %v", e.State, err)
	}
	_ = unix.Kill(i.PID, unix.SIGKILL)
}

func TestCreateRefuses(t *testing.T) {
	m := manager(t)
	ok := func() ptymgr.Spec { return ptymgr.Spec{Argv: []string{"true"}, Owner: owner} }
	for name, c := range map[string]struct {
		edit  func(*ptymgr.Spec)
		code  problem.Code
		field string
	}{
		"no such program":  {func(s *ptymgr.Spec) { s.Argv = []string{"no-such-program-xyz"} }, problem.ExecFailed, "argv"},
		"directory":        {func(s *ptymgr.Spec) { s.Argv = []string{"/etc"} }, problem.ExecFailed, "argv"},
		"not executable":   {func(s *ptymgr.Spec) { s.Argv = []string{"/etc/passwd"} }, problem.ExecFailed, "argv"},
		"empty program":    {func(s *ptymgr.Spec) { s.Argv = []string{""} }, problem.InvalidArgument, "argv"},
		"NUL":              {func(s *ptymgr.Spec) { s.Argv = []string{"a\x00b"} }, problem.InvalidArgument, "argv"},
		"too many":         {func(s *ptymgr.Spec) { s.Argv = make([]string, 2000) }, problem.InvalidArgument, "argv"},
		"too long":         {func(s *ptymgr.Spec) { s.Argv = []string{"a", strings.Repeat("x", 1<<20)} }, problem.InvalidArgument, "argv"},
		"relative cwd":     {func(s *ptymgr.Spec) { s.Cwd = "tmp" }, problem.InvalidArgument, "cwd"},
		"missing cwd":      {func(s *ptymgr.Spec) { s.Cwd = "/no/such/dir" }, problem.InvalidArgument, "cwd"},
		"cwd is a file":    {func(s *ptymgr.Spec) { s.Cwd = "/etc/passwd" }, problem.InvalidArgument, "cwd"},
		"env":              {func(s *ptymgr.Spec) { s.Env = []string{"NOVALUE"} }, problem.InvalidArgument, "env"},
		"size":             {func(s *ptymgr.Spec) { s.Cols, s.Rows = 65535, 24 }, problem.InvalidArgument, "cols"},
		"name":             {func(s *ptymgr.Spec) { s.Name = "-x" }, problem.InvalidArgument, "name"},
		"name like an id":  {func(s *ptymgr.Spec) { s.Name = "s_" + strings.Repeat("0", 26) }, problem.InvalidArgument, "name"},
		"name too long":    {func(s *ptymgr.Spec) { s.Name = strings.Repeat("n", 129) }, problem.InvalidArgument, "name"},
		"label":            {func(s *ptymgr.Spec) { s.Labels = map[string]string{"-": "x"} }, problem.InvalidArgument, "labels"},
		"output limit":     {func(s *ptymgr.Spec) { s.OutputLimit = 1 }, problem.InvalidArgument, "output_limit"},
		"key":              {func(s *ptymgr.Spec) { s.IdempotencyKey = "a b" }, problem.InvalidArgument, "Idempotency-Key"},
		"shell and argv":   {func(s *ptymgr.Spec) { s.Shell = true }, problem.InvalidArgument, "shell"},
		"no owner":         {func(s *ptymgr.Spec) { s.Owner = "" }, problem.InvalidArgument, "owner"},
		"script, no shell": {func(s *ptymgr.Spec) { s.Argv = []string{script(t, "#!/no/such/interpreter\n")} }, problem.ExecFailed, "argv"},
	} {
		spec := ok()
		c.edit(&spec)
		_, _, err := m.Create(t.Context(), spec)
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != c.code || p.Field != c.field || p.Detail == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, _, err := m.List(t.Context(), ptymgr.Filter{}); err != nil || len(l) != 0 {
		t.Errorf("refused sessions are listed: %v %v", l, err)
	}
}

func script(t *testing.T, body string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(f, []byte(body), 0o700); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestIdempotentCreate(t *testing.T) {
	m := manager(t)
	dir := t.TempDir()
	spec := ptymgr.Spec{Argv: []string{"bash", "--norc", "-c", "echo x >>" + dir + "/ran; sleep 60"}, Owner: owner, IdempotencyKey: "k-1"}
	ids := sync.Map{}
	var fresh atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			i, existing, err := m.Create(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			if !existing {
				fresh.Add(1)
			}
			ids.Store(i.ID, true)
		})
	}
	wg.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 || fresh.Load() != 1 {
		t.Fatalf("%d sessions, %d of them new", n, fresh.Load())
	}
	if st := m.Stats(); st.Running != 1 {
		t.Errorf("%d running", st.Running)
	}
	spec.Cols = 90
	if _, _, err := m.Create(t.Context(), spec); !problem.Is(err, problem.IdempotencyReuse) {
		t.Errorf("another request with the same key: %v", err)
	}
}

func TestNamesAndLimits(t *testing.T) {
	m := manager(t, func(c *ptymgr.Config) { c.MaxPerOwner = 3 })
	mk := func(name, who string) (ptymgr.Info, error) {
		i, _, err := m.Create(t.Context(), ptymgr.Spec{Argv: []string{"sleep", "60"}, Owner: who, Name: name})
		return i, err
	}
	a, err := mk("a", owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mk("a", owner); !problem.Is(err, problem.NameTaken) {
		t.Errorf("same name: %v", err)
	}
	if _, err := m.Close(t.Context(), a.ID, -1); err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(t.Context(), a.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := mk("a", owner); err != nil {
		t.Errorf("the name of an ended session: %v", err)
	}
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 10 {
		wg.Go(func() {
			if _, err := mk("", owner); err == nil {
				made.Add(1)
			} else if !problem.Is(err, problem.LimitReached) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 2 {
		t.Errorf("%d sessions beside the first, the limit is 3 in all", made.Load())
	}
	if _, err := mk("", "u_other"); err != nil {
		t.Errorf("another owner: %v", err)
	}
}

// Row and memory agree after edits from many sides.
func TestConcurrentRenames(t *testing.T) {
	m := manager(t)
	i := create(t, m, "sleep", "60")
	var wg sync.WaitGroup
	for k := range 16 {
		wg.Go(func() {
			if _, err := m.Rename(t.Context(), i.ID, fmt.Sprintf("n%d", k)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	shown, err := m.Get(t.Context(), i.ID)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := m.Resolve(t.Context(), owner, shown.Name); err != nil || found.ID != i.ID {
		t.Errorf("shown as %q, which finds %v %v", shown.Name, found.ID, err)
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("PTYD_TOKEN", "secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	m := manager(t)
	i, _, err := m.Create(t.Context(), ptymgr.Spec{Argv: []string{"env"}, Owner: owner, Env: []string{"A=1", "TERM=vt100", "A=2"}})
	if err != nil {
		t.Fatal(err)
	}
	exited(t, m, i.ID)
	env := map[string]string{}
	for l := range strings.SplitSeq(strings.TrimSpace(output(t, m, i.ID)), "\r\n") {
		k, v, _ := strings.Cut(l, "=")
		env[k] = v
	}
	for k, v := range map[string]string{"A": "2", "TERM": "vt100", "COLORTERM": "truecolor", "PTYD_SESSION": i.ID} {
		if env[k] != v {
			t.Errorf("%s=%q, want %q", k, env[k], v)
		}
	}
	for _, k := range []string{"PTYD_TOKEN", "AWS_SECRET_ACCESS_KEY"} {
		if v, ok := env[k]; ok {
			t.Errorf("%s=%s leaked", k, v)
		}
	}
	if env["PATH"] == "" || !strings.Contains(strings.ToUpper(env["LANG"]), "UTF-8") {
		t.Errorf("PATH=%q LANG=%q", env["PATH"], env["LANG"])
	}
}

// A child sees its terminal three times and nothing else of ours.
func TestNoDescriptorLeaks(t *testing.T) {
	m := manager(t)
	for range 5 {
		create(t, m, "sleep", "60")
	}
	i := create(t, m, "ls", "-l", "/proc/self/fd")
	exited(t, m, i.ID)
	out := output(t, m, i.ID)
	if !strings.Contains(out, " 2 -> /dev/pts/") || strings.Contains(out, " 4 -> ") {
		t.Errorf("want 0, 1 and 2, and ls's own directory: %s", out)
	}
}

func TestWaitConditions(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "echo one; sleep 0.3; echo two; sleep 0.3; exit 2")
	text(t, m, i.ID, "two")
	text(t, m, i.ID, "one") // level: it was there before the call
	if r := wait(t, m, i.ID, ptymgr.Conditions{Text: regexp.MustCompile("three")}); !r.Impossible || r.Matched != "" {
		t.Errorf("a text that cannot come any more: %+v", r)
	}
	exited(t, m, i.ID)
	i = sh(t, m, "echo tick; sleep 60")
	text(t, m, i.ID, "tick")
	if r := wait(t, m, i.ID, ptymgr.Conditions{Idle: 50 * time.Millisecond}); r.Matched != "idle" {
		t.Errorf("idle: %+v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r, err := m.Wait(ctx, i.ID, ptymgr.Conditions{Exit: true})
	if err != nil || r.Matched != "" || r.Impossible {
		t.Errorf("time ran out: %+v %v", r, err)
	}
}

// Text that crosses reads is found, wherever the cut lies.
func TestWaitTextAcrossReads(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "printf 'ne'; sleep 0.05; printf 'ed'; sleep 0.05; printf 'le'; sleep 60")
	text(t, m, i.ID, "needle")
}

func TestShutdownRefusesAndEnds(t *testing.T) {
	log := zaptest.NewLogger(t)
	st := openStore(t, log)
	defer st.Close()
	v, err := ptymgr.NewDirect()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	m, err := ptymgr.New(ptymgr.Config{Grace: time.Second}, st, v, events.NewHub(), log)
	if err != nil {
		t.Fatal(err)
	}
	i := create(t, m, "sleep", "60")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, _, err := m.Create(context.Background(), ptymgr.Spec{Argv: []string{"sleep", "60"}, Owner: owner})
			if err != nil && !problem.Is(err, problem.Unavailable) {
				t.Error(err)
			}
		})
	}
	if err := m.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if alive(i.PID) {
		t.Error("the session survived")
	}
	rows, _, err := st.ListSessions(t.Context(), ptymgr.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.State != ptymgr.Exited {
			t.Errorf("%s is recorded as %s", r.ID, r.State)
		}
		if alive(r.PID) {
			t.Errorf("process %d survived", r.PID)
		}
	}
}

func TestRemove(t *testing.T) {
	m := manager(t, func(c *ptymgr.Config) { c.RemoveAfter = 0 })
	i := create(t, m, "sleep", "60")
	if err := m.Remove(t.Context(), i.ID, false); !problem.Is(err, problem.SessionRunning) {
		t.Errorf("remove a running one: %v", err)
	}
	if err := m.Remove(t.Context(), i.ID, true); err != nil {
		t.Error(err)
	}
	if _, err := m.Get(t.Context(), i.ID); !problem.Is(err, problem.NotFound) {
		t.Errorf("get a removed one: %v", err)
	}
	for range 20 { // the end is written by another goroutine: remove must wait for it
		i := create(t, m, "true")
		exited(t, m, i.ID)
		if err := m.Remove(t.Context(), i.ID, false); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEndedAreSweptAway(t *testing.T) {
	m := manager(t, func(c *ptymgr.Config) { c.RemoveAfter = 100 * time.Millisecond })
	i := create(t, m, "true")
	living := create(t, m, "sleep", "60")
	s := m.Session(i.ID)
	f := newFollower(s)
	v, err := s.Attach(f, ptymgr.ViewerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Detach()
	f.until(t, s.Removed)
	if _, err := m.Get(t.Context(), living.ID); err != nil {
		t.Error(err)
	}
}

package keeper

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// brood are processes that say their ids and die as they are told.
type brood struct {
	t      *testing.T
	dir    string
	report *os.File

	mu     sync.Mutex // guards living
	living map[string]int
}

func newBrood(t *testing.T) *brood {
	b := &brood{t: t, dir: t.TempDir(), living: map[string]int{}}
	path := filepath.Join(b.dir, "report")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.report, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewScanner(b.report); in.Scan(); {
			name, pid, _ := strings.Cut(in.Text(), " ")
			b.mu.Lock()
			b.living[name], _ = strconv.Atoi(pid)
			b.mu.Unlock()
		}
	}()
	t.Cleanup(func() { _ = b.report.Close(); <-ended })
	return b
}

// script is what a child called name runs.
func (b *brood) script(name string) string {
	fifo := filepath.Join(b.dir, name)
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf(`echo %s $$ >%s/report; read c <%s; case $c in s*) kill -${c#s} $$;; *) exit $c;; esac`, name, b.dir, fifo)
}

func (b *brood) argv(name string) []string { return []string{"/bin/sh", "-c", b.script(name)} }

// pid waits for a child's word.
func (b *brood) pid(name string) (pid int) {
	b.t.Helper()
	await(b.t, "child "+name, func() bool { pid = b.born(name); return pid != 0 })
	return pid
}

func (b *brood) born(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.living[name]
}

// die tells a child how: "7" is a status, "s9" a signal.
func (b *brood) die(name, how string) {
	b.t.Helper()
	f, err := os.OpenFile(filepath.Join(b.dir, name), os.O_RDWR, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = f.Close() }) // the child may not have opened it yet
	if _, err := f.WriteString(how + "\n"); err != nil {
		b.t.Fatal(err)
	}
}

// is tells whether r is the end that how told.
func is(r notifyproto.ExitRecord, how string) bool {
	if sig, ok := strings.CutPrefix(how, "s"); ok {
		return r.Signalled() && strconv.Itoa(int(r.Status)) == sig
	}
	return !r.Signalled() && strconv.Itoa(int(r.Status)) == how
}

// Whatever happens to workers, each end of a process is recorded exactly once.
func TestExitsSurviveKills(t *testing.T) {
	kills := 200
	if testing.Short() {
		kills = 30
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, config{BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})
	b := newBrood(t)
	var exits *notifyproto.Exits
	told := map[int]string{} // by process id: how it was told to die
	var waiting []string     // children that were not told yet, if they live
	n := 0
	tell := func() {
		if len(waiting) == 0 {
			return
		}
		i := rnd.IntN(len(waiting))
		name := waiting[i]
		pid := b.born(name)
		if pid == 0 {
			return
		}
		waiting = slices.Delete(waiting, i, i+1)
		how := strconv.Itoa(rnd.IntN(256))
		if rnd.IntN(3) == 0 {
			how = []string{"s9", "s15", "s6", "s1"}[rnd.IntN(4)]
		}
		told[pid] = how
		b.die(name, how)
	}
	for range kills {
		w := r.worker()
		if exits == nil {
			exits = w.exits()
		}
		shot := time.AfterFunc(time.Duration(rnd.IntN(6000))*time.Microsecond, func() { _ = unix.Kill(w.PID, unix.SIGKILL) })
		_, err := w.try("send", "READY=1")
		for err == nil {
			name := strconv.Itoa(n)
			n++
			waiting = append(waiting, name)
			_, err = w.try("spawn", b.argv(name)...)
			tell()
		}
		shot.Stop()
		_ = unix.Kill(w.PID, unix.SIGKILL)
		w.died()
		tell()
	}
	for _, name := range slices.Clone(waiting) {
		if pid := b.born(name); pid != 0 { // some were killed before they were
			told[pid] = "3"
			b.die(name, "3")
		}
	}
	// The last records come when the last children do.
	seen := map[int]notifyproto.ExitRecord{}
	missing := len(told)
	await(t, "all ends", func() bool {
		for {
			rec, ok := exits.Next()
			if !ok {
				return missing == 0
			}
			exits.Consume()
			if old, twice := seen[int(rec.PID)]; twice {
				t.Fatalf("recorded twice: %+v, %+v", old, rec)
			}
			seen[int(rec.PID)] = rec
			if how, ok := told[int(rec.PID)]; ok {
				missing--
				if !is(rec, how) {
					t.Errorf("%d was told to die by %s: %+v", rec.PID, how, rec)
				}
			}
		}
	})
	t.Logf("%d kills, %d children, %d ends", kills, n, len(seen))
	if len(told) < kills/2 {
		t.Errorf("only %d children in %d kills", len(told), kills)
	}
	for _, name := range waiting {
		b.die(name, "0")
	}
}

// A worker hears of an end, and of one that came while there was none.
func TestEndsAreTold(t *testing.T) {
	r := newRig(t, config{})
	b := newBrood(t)
	w := r.ready()
	for _, name := range []string{"a", "b"} {
		w.must("spawn", b.argv(name)...)
	}
	before := bootNow()
	pa, pb := b.pid("a"), b.pid("b")
	b.die("a", "7")
	w.must("event")
	if got := w.must("next"); !slices.Equal(got, []string{strconv.Itoa(pa), "1", "7"}) {
		t.Errorf("record %q", got)
	}
	w.kill(unix.SIGKILL)
	b.die("b", "s15")
	w = r.ready()
	e := w.exits()
	await(t, "the record", func() bool { _, ok := e.Find(pb); return ok })
	w.must("event")
	if got := w.must("next"); !slices.Equal(got, []string{strconv.Itoa(pb), "2", "15"}) {
		t.Errorf("record %q", got)
	}
	if rec, _ := e.Find(pa); rec.At < before || rec.At > bootNow() {
		t.Errorf("time %d, between %d and %d", rec.At, before, bootNow())
	}
	for _, pid := range []int{pa, pb} {
		if s := procState(pid); s != "" {
			t.Errorf("process %d is in state %s", pid, s)
		}
	}
}

// Orphans of sessions become the keeper's and don't stay as zombies.
func TestOrphans(t *testing.T) {
	r := newRig(t, config{})
	b := newBrood(t)
	w := r.ready()
	out := w.must("spawn", "/bin/sh", "-c", "("+b.script("orphan")+") & exit 4")
	parent, _ := strconv.Atoi(out[0])
	e := w.exits()
	await(t, "the parent's record", func() bool { _, ok := e.Find(parent); return ok })
	pid := b.pid("orphan") // $$ is the parent's in a subshell, so look for the child
	if pid == parent {
		await(t, "the orphan", func() bool {
			kids := slices.DeleteFunc(childrenOf(r.cmd.Process.Pid), func(p int) bool { return p == w.PID })
			if len(kids) == 1 {
				pid = kids[0]
			}
			return pid != parent
		})
	}
	b.die("orphan", "9")
	await(t, "the orphan's record", func() bool { rec, ok := e.Find(pid); return ok && rec.Status == 9 })
	if s := procState(pid); s != "" {
		t.Errorf("the orphan is in state %s", s)
	}
}

// A full record keeps zombies and hides neither the worker's death nor later
// ends: all of them come when there is room.
func TestFullRecord(t *testing.T) {
	r := newRig(t, config{})
	b := newBrood(t)
	w := r.ready()
	e := w.exits()
	names := []string{"a", "b", "c"}
	var pids []int
	for _, name := range names {
		w.must("spawn", b.argv(name)...)
		pids = append(pids, b.pid(name))
	}
	for e.Append(notifyproto.ExitRecord{PID: -1}) { // nobody else appends now
	}
	for i, name := range names {
		b.die(name, strconv.Itoa(20+i))
	}
	for _, pid := range pids {
		await(t, "a zombie", func() bool { return procState(pid) == "Z" })
	}
	r.logged("the record of ended processes is full")
	w.kill(unix.SIGKILL)
	r.ready()
	for _, pid := range pids {
		if s := procState(pid); s != "Z" {
			t.Errorf("process %d is in state %q", pid, s)
		}
	}
	e.Consume()
	await(t, "one record", func() bool { return e.Len() == notifyproto.ExitsCapacity })
	for range 2 {
		e.Consume()
	}
	for i, pid := range pids {
		await(t, "the record", func() bool { rec, ok := e.Find(pid); return ok && int(rec.Status) == 20+i })
	}
	for _, pid := range pids {
		await(t, "the zombies' end", func() bool { return procState(pid) == "" })
	}
}

package keeper

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func someFD(t *testing.T) int {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// The same open file twice under a name is one; under two names it is two.
func TestStore(t *testing.T) {
	s := store{max: 4}
	defer s.close()
	fd := someFD(t)
	again, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	other, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	s.add("0", []int{fd, again})
	if len(s.all) != 1 {
		t.Fatalf("holds %v", s.all)
	}
	if _, err := unix.FcntlInt(uintptr(again), unix.F_GETFD, 0); err == nil {
		t.Error("the copy is open")
	}
	if s.running() != 0 {
		t.Error("one descriptor is no session that runs")
	}
	s.add("g", []int{other})
	s.add("0", []int{someFD(t)})
	if got := []string{s.all[0].name, s.all[1].name, s.all[2].name}; !slices.Equal(got, []string{"0", "g", "0"}) || s.names != 6 {
		t.Errorf("holds %v, %d bytes", got, s.names)
	}
	if s.check("1", 1) != nil || s.check("1", 2) == nil {
		t.Error("the bound does not hold")
	}
	if s.running() != 1 {
		t.Errorf("%d sessions run", s.running())
	}
	s.remove("none")
	s.remove("0")
	if len(s.all) != 1 || s.names != 2 || s.running() != 0 {
		t.Errorf("holds %v, %d bytes", s.all, s.names)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
		t.Error("what was removed is open")
	}
}

// The environment's bound comes before the kernel's E2BIG would.
func TestStoreNames(t *testing.T) {
	s := store{max: 1 << 20}
	name := strings.Repeat("n", 255)
	n := 0
	for s.check(name, 1) == nil {
		s.names += len(name) + 1 // as if it were stored
		n++
	}
	if n*256 > maxNames || n < maxNames/256 {
		t.Errorf("%d names", n)
	}
	if got := storeMax(0); got < sharedFDs {
		t.Errorf("room for %d", got)
	}
	if got := storeMax(20); got != 20 {
		t.Errorf("room for %d", got)
	}
}

func TestDeadlines(t *testing.T) {
	var d deadlines
	now := time.Now()
	if _, ok := d.next(now); ok {
		t.Error("nothing is due and something is next")
	}
	d[dueSign] = now.Add(time.Minute)
	d[dueReap] = now.Add(time.Second)
	if wait, ok := d.next(now); !ok || wait != time.Second {
		t.Errorf("next in %v", wait)
	}
	if _, ok := d.take(now); ok {
		t.Error("taken too early")
	}
	if what, ok := d.take(now.Add(time.Second)); !ok || what != dueReap {
		t.Errorf("took %v", what)
	}
	if wait, _ := d.next(now.Add(time.Hour)); wait != 0 {
		t.Errorf("late by %v", wait)
	}
	d.clear(dueSign)
	if _, ok := d.next(now); ok {
		t.Error("cleared and still there")
	}
}

// Thousands of descriptors are handed over in the time of a blink, and all are
// there: this is what a restart with many sessions waits for.
func TestManyDescriptors(t *testing.T) {
	const sessions = 1000
	r := newRig(t, config{})
	w := r.ready()
	if w.FDMax < 3*sessions {
		t.Logf("only %d descriptors may be open; the test stays below", w.FDMax)
	}
	n := min(sessions, w.FDMax/3)
	for i := range n {
		w.must("store", strconv.Itoa(10000+i), "a", "b", "c")
	}
	w.must("barrier")
	w.kill(unix.SIGKILL)
	died := time.Now()
	w = r.worker()
	took := time.Since(died)
	t.Logf("%d descriptors, %v from death to hello", len(w.stored()), took)
	if got := len(w.stored()); got != 3*n {
		t.Errorf("%d descriptors of %d", got, 3*n)
	}
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

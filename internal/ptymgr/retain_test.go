package ptymgr_test

import (
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// Ended sessions keep no more than OutputTotal: those that ended first go.
func TestEndedKeepNoMoreThanTheTotal(t *testing.T) {
	m := manager(t, func(c *ptymgr.Config) { c.OutputTotal = 1500 << 10 })
	living := sh(t, m, "stty -opost; head -c 600000 /dev/zero; exec sleep 60")
	text(t, m, living.ID, `^\x00{1000}`)
	var ids []string
	for range 5 {
		i := sh(t, m, "stty -opost; head -c 600000 /dev/zero")
		exited(t, m, i.ID)
		ids = append(ids, i.ID)
	}
	eventually(t, func() bool {
		_, err := m.Get(t.Context(), ids[2])
		return problem.Is(err, problem.NotFound)
	})
	for k, id := range ids {
		i, err := m.Get(t.Context(), id)
		if k <= 2 {
			if !problem.Is(err, problem.NotFound) {
				t.Errorf("session %d: %v", k, err)
			}
			continue
		}
		if err != nil || len(output(t, m, i.ID)) != 600000 {
			t.Errorf("session %d, within the total: %v", k, err)
		}
	}
	if i, err := m.Get(t.Context(), living.ID); err != nil || i.State != ptymgr.Running {
		t.Errorf("the living one: %v %v", i.State, err)
	}
}

// The session that ended last stays however little is allowed: somebody may
// be reading it.
func TestTheLastEndedStays(t *testing.T) {
	m := manager(t, func(c *ptymgr.Config) { c.OutputTotal = 1 })
	first := exited(t, m, create(t, m, "echo", "first").ID)
	last := exited(t, m, create(t, m, "echo", "last").ID)
	eventually(t, func() bool {
		_, err := m.Get(t.Context(), first.ID)
		return problem.Is(err, problem.NotFound)
	})
	if out := output(t, m, last.ID); out != "last\r\n" {
		t.Errorf("%q", out)
	}
}

// More old sessions than one query returns all go in one sweep.
func TestManyOldAreRemovedAtOnce(t *testing.T) {
	m := manager(t)
	for range 5 {
		i := exited(t, m, create(t, m, "true").ID)
		if err := m.Written(t.Context(), i.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.RemoveOld(t.Context(), 0, 2); err != nil {
		t.Fatal(err)
	}
	if left, _, err := m.List(t.Context(), ptymgr.Filter{}); err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v", len(left), err)
	}
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			t.Fatal("did not come")
		case <-tick.C:
		}
	}
}

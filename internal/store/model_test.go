package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// model is the sessions aggregate said in the plainest way; TestSessionModel
// does the same to it and to the store.
type model struct {
	rows []*ptymgr.Record // in the order of their ids
	keys map[string]modelKey
}

type modelKey struct{ digest, id string }

func (m *model) find(id string) *ptymgr.Record {
	for _, r := range m.rows {
		if r.ID == id {
			return r
		}
	}
	return nil
}

func (m *model) create(r ptymgr.Record, key, digest string, l ptymgr.Limits) (*ptymgr.Record, bool, problem.Code) {
	if k, seen := m.keys[r.Owner+key]; key != "" && seen {
		switch old := m.find(k.id); {
		case k.digest != digest:
			return nil, false, problem.IdempotencyReuse
		case old == nil:
			return nil, false, problem.Gone
		default:
			return old, true, ""
		}
	}
	own, all, taken := 0, 0, false
	for _, o := range m.rows {
		if o.State.Ended() {
			continue
		}
		all++
		if o.Owner == r.Owner {
			own++
			taken = taken || r.Name != "" && o.Name == r.Name
		}
	}
	switch {
	case own >= l.PerOwner || all >= l.Total:
		return nil, false, problem.LimitReached
	case taken:
		return nil, false, problem.NameTaken
	}
	r.State = ptymgr.Starting
	m.rows = append(m.rows, &r)
	if key != "" {
		m.keys[r.Owner+key] = modelKey{digest, r.ID}
	}
	return &r, false, ""
}

func (m *model) rename(id, name string) problem.Code {
	r := m.find(id)
	if r == nil {
		return problem.NotFound
	}
	for _, o := range m.rows {
		if o != r && !r.State.Ended() && !o.State.Ended() && o.Owner == r.Owner && o.Name == name && name != "" {
			return problem.NameTaken
		}
	}
	r.Name = name
	return ""
}

func (m *model) remove(id string) problem.Code {
	i := slices.IndexFunc(m.rows, func(r *ptymgr.Record) bool { return r.ID == id })
	switch {
	case i < 0:
		return problem.NotFound
	case !m.rows[i].State.Ended():
		return problem.SessionRunning
	}
	if r := m.rows[i]; r.State == ptymgr.Exited && r.StartedAt.IsZero() {
		for k, v := range m.keys {
			if v.id == id {
				delete(m.keys, k)
			}
		}
	}
	m.rows = slices.Delete(m.rows, i, i+1)
	return ""
}

func code(err error) problem.Code {
	if err == nil {
		return ""
	}
	return problem.CodeOf(err)
}

func TestSessionModel(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			db := &database{Store: openAt(t, e.fresh(t))}
			run := 0
			rapid.Check(t, func(rt *rapid.T) {
				run++
				checkSessionModel(t, rt, db, run)
			})
		})
	}
}

func checkSessionModel(t *testing.T, rt *rapid.T, db *database, run int) {
	ctx := t.Context()
	// One database serves all runs: each begins with no session.
	if _, err := db.w.ExecContext(ctx, `DELETE FROM sessions; DELETE FROM idempotency`); err != nil {
		rt.Fatal(err)
	}
	owners := []string{db.user(t, fmt.Sprintf("ann%d", run)), db.user(t, fmt.Sprintf("bob%d", run))}
	m := &model{keys: map[string]modelKey{}}
	made := 0
	pick := func(rt *rapid.T) string { return fmt.Sprintf("s_%04d", rapid.IntRange(0, made).Draw(rt, "id")) }
	names := rapid.SampledFrom([]string{"", "a", "b", "c"})
	compare := func(rt *rapid.T, err error, want problem.Code) {
		rt.Helper()
		if code(err) != want {
			rt.Fatalf("got %v, want %q", err, want)
		}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"create": func(rt *rapid.T) {
			r := record(rapid.SampledFrom(owners).Draw(rt, "owner"), names.Draw(rt, "name"))
			r.ID = fmt.Sprintf("s_%04d", made)
			made++
			if rapid.Bool().Draw(rt, "labelled") {
				r.Labels = map[string]string{"l": r.Name}
			}
			key := rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(rt, "key")
			digest := rapid.SampledFrom([]string{"d", "d", "other"}).Draw(rt, "digest")
			limits := ptymgr.Limits{PerOwner: 3, Total: 4}
			row, existing, err := db.CreateSession(ctx, r, key, digest, limits)
			wantRow, wantExisting, want := m.create(r, key, digest, limits)
			compare(rt, err, want)
			if err == nil && (row.ID != wantRow.ID || existing != wantExisting) {
				rt.Fatalf("got %s %v, want %s %v", row.ID, existing, wantRow.ID, wantExisting)
			}
		},
		"run": func(rt *rapid.T) {
			id := pick(rt)
			var want problem.Code
			switch r := m.find(id); {
			case r == nil:
				want = problem.NotFound
			default:
				if r.PID = 5; r.StartedAt.IsZero() {
					r.StartedAt = epoch
				}
				if r.State.Ended() {
					want = problem.SessionEnded
				} else {
					r.State = ptymgr.Running
				}
			}
			compare(rt, db.MarkRunning(ctx, id, 5, epoch, ""), want)
		},
		"end": func(rt *rapid.T) {
			id := pick(rt)
			state := rapid.SampledFrom([]ptymgr.State{ptymgr.Exited, ptymgr.Lost}).Draw(rt, "state")
			at := epoch.Add(time.Duration(rapid.IntRange(0, 5).Draw(rt, "minutes")) * time.Minute)
			first, err := db.MarkEnded(ctx, id, state, nil, "", at, 3, "")
			r := m.find(id)
			if r == nil {
				compare(rt, err, problem.NotFound)
				return
			}
			compare(rt, err, "")
			if first == r.State.Ended() {
				rt.Fatalf("first is %v for a session that was %s", first, r.State)
			}
			if first {
				r.State, r.EndedAt, r.FinalOffset = state, at, 3
			}
		},
		"rename": func(rt *rapid.T) {
			id, name := pick(rt), names.Draw(rt, "name")
			compare(rt, db.RenameSession(ctx, id, name), m.rename(id, name))
		},
		"remove": func(rt *rapid.T) {
			id := pick(rt)
			compare(rt, db.DeleteSession(ctx, id), m.remove(id))
		},
		"": func(rt *rapid.T) {
			got, next, err := db.ListSessions(ctx, ptymgr.Filter{Limit: 1000})
			if err != nil || next != "" {
				rt.Fatalf("%q, %v", next, err)
			}
			if g, w := show(got), show(deref(m.rows)); g != w {
				rt.Fatalf("the store has\n%s\nthe model\n%s", g, w)
			}
		},
	})
}

func deref(rows []*ptymgr.Record) []ptymgr.Record {
	out := make([]ptymgr.Record, len(rows))
	for i, r := range rows {
		out[i] = *r
	}
	return out
}

func show(rows []ptymgr.Record) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s %s %q %s %v pid %d from %v to %v at %d\n",
			r.ID, r.Owner, r.Name, r.State, r.Labels, r.PID, r.StartedAt, r.EndedAt, r.FinalOffset)
	}
	return b.String()
}

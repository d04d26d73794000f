package store

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

var sessionCases = []conformCase{
	{"a session comes back as it was written", testSessionRoundTrip},
	{"an idempotency key gives the same session", testIdempotency},
	{"limits count the living", testLimits},
	{"names are unique among an owner's living sessions", testNames},
	{"a name means the living session, then the newest", testFindByName},
	{"states go one way", testStates},
	{"labels are replaced whole and go with the session", testLabels},
	{"absent sessions are not found", testAbsent},
	{"only ended sessions are removed", testRemove},
	{"lists are filtered and paged", testList},
	{"ended sessions are found by age", testEndedBefore},
	{"an owner's ended sessions are trimmed, the oldest first", testTrimEnded},
	{"what nobody backs is lost", testLoseUnfinished},
	{"the schema refuses nonsense", testSessionConstraints},
}

func testSessionRoundTrip(t *testing.T, db *database) {
	ctx := t.Context()
	owner := db.user(t, "ann")
	full := record(owner, "work")
	full.Argv = []string{"bash", "-c", "echo \"ü\" '\n'\t\\", ""}
	full.Cwd = "/tmp/with space"
	full.Env = []string{"A=1", "B=x=y", "EMPTY="}
	full.Labels = map[string]string{"team": "röd", "empty": "", `quo"te`: `\`}
	full.Cols, full.Rows = 65535, 1
	full.Shell, full.OutputLimit, full.NoCheckpoint, full.RerunOf = true, 1<<20, true, "s_before"
	full.Epoch = math.MaxUint64 - 1 // beyond what an int64 holds
	for _, r := range []ptymgr.Record{full, record(owner, "")} {
		made := db.create(t, r)
		want := r
		want.State = ptymgr.Starting
		same(t, made, want)

		want.State, want.PID, want.StartedAt = ptymgr.Running, 4242, epoch.Add(time.Second)
		wantCode(t, db.MarkRunning(ctx, r.ID, want.PID, want.StartedAt, "boot:17"), "")
		want.Birth = "boot:17"
		got, err := db.GetSession(ctx, r.ID)
		wantCode(t, err, "")
		same(t, got, want)

		want.State, want.ExitCode, want.EndedAt = ptymgr.Exited, ptr(7), epoch.Add(time.Minute)
		want.FinalOffset, want.Error = math.MaxUint64, "why"
		first, err := db.MarkEnded(ctx, r.ID, want.State, want.ExitCode, "", want.EndedAt, want.FinalOffset, want.Error)
		if err != nil || !first {
			t.Fatalf("%v, %v", first, err)
		}
		got, err = db.GetSession(ctx, r.ID)
		wantCode(t, err, "")
		same(t, got, want)

		rows, next, err := db.ListSessions(ctx, ptymgr.Filter{Name: r.Name, Owner: owner, States: []ptymgr.State{ptymgr.Exited}})
		if err != nil || next != "" {
			t.Fatalf("%q, %v", next, err)
		}
		if r.Name != "" {
			same(t, rows[0], want)
		}
	}
}

// same compares records; nil and empty are one.
func same(t *testing.T, got, want ptymgr.Record) {
	t.Helper()
	for _, r := range []*ptymgr.Record{&got, &want} {
		if len(r.Env) == 0 {
			r.Env = nil
		}
		if len(r.Labels) == 0 {
			r.Labels = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func testIdempotency(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	create := func(owner, key, digest string, limits ptymgr.Limits) (ptymgr.Record, bool, error) {
		return db.CreateSession(ctx, record(owner, ""), key, digest, limits)
	}
	first, existing, err := create(ann, "k", "d", ptymgr.Limits{})
	if err != nil || existing {
		t.Fatalf("%v, %v", existing, err)
	}
	t.Run("again", func(t *testing.T) {
		// The limit is reached, and the answer is still the session that is there.
		again, existing, err := create(ann, "k", "d", ptymgr.Limits{PerOwner: 1, Total: 1})
		if err != nil || !existing || again.ID != first.ID {
			t.Fatalf("%v, %v, %v", again.ID, existing, err)
		}
	})
	t.Run("another request", func(t *testing.T) {
		_, _, err := create(ann, "k", "other", ptymgr.Limits{})
		wantCode(t, err, problem.IdempotencyReuse)
	})
	t.Run("another owner", func(t *testing.T) {
		other, existing, err := create(bob, "k", "d", ptymgr.Limits{})
		if err != nil || existing || other.ID == first.ID {
			t.Fatalf("%v, %v, %v", other.ID, existing, err)
		}
	})
	t.Run("a refused request keeps no key", func(t *testing.T) {
		_, _, err := create(ann, "k2", "d", ptymgr.Limits{PerOwner: 1})
		wantCode(t, err, problem.LimitReached)
		if _, existing, err := create(ann, "k2", "d", ptymgr.Limits{}); err != nil || existing {
			t.Fatalf("%v, %v", existing, err)
		}
	})
	t.Run("removed", func(t *testing.T) {
		wantCode(t, db.MarkRunning(ctx, first.ID, 1, epoch, ""), "")
		db.end(t, first.ID, ptymgr.Exited, epoch)
		wantCode(t, db.DeleteSession(ctx, first.ID), "")
		_, _, err := create(ann, "k", "d", ptymgr.Limits{})
		wantCode(t, err, problem.Gone)
	})
	t.Run("after a day the key is free", func(t *testing.T) {
		wantCode(t, db.Prune(ctx, epoch.Add(idempotencyAge)), "")
		_, _, err := create(ann, "k", "d", ptymgr.Limits{})
		wantCode(t, err, problem.Gone)
		wantCode(t, db.Prune(ctx, epoch.Add(idempotencyAge+time.Second)), "")
		if _, existing, err := create(ann, "k", "d", ptymgr.Limits{}); err != nil || existing {
			t.Fatalf("%v, %v", existing, err)
		}
	})
	t.Run("what never started frees its key", func(t *testing.T) {
		r, _, err := create(ann, "k3", "d", ptymgr.Limits{})
		wantCode(t, err, "")
		db.end(t, r.ID, ptymgr.Exited, epoch)
		wantCode(t, db.DeleteSession(ctx, r.ID), "")
		if _, existing, err := create(ann, "k3", "d", ptymgr.Limits{}); err != nil || existing {
			t.Fatalf("%v, %v", existing, err)
		}
	})
	t.Run("what may have started does not", func(t *testing.T) {
		r, _, err := create(ann, "k4", "d", ptymgr.Limits{})
		wantCode(t, err, "")
		db.end(t, r.ID, ptymgr.Lost, epoch)
		wantCode(t, db.DeleteSession(ctx, r.ID), "")
		_, _, err = create(ann, "k4", "d", ptymgr.Limits{})
		wantCode(t, err, problem.Gone)
	})
}

func testLimits(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	running := db.create(t, record(ann, "")) // starting counts
	wantCode(t, db.MarkRunning(ctx, running.ID, 1, epoch, ""), "")
	db.create(t, record(ann, ""))
	db.create(t, record(bob, ""))
	for _, ended := range []ptymgr.State{ptymgr.Exited, ptymgr.Lost} {
		db.end(t, db.create(t, record(ann, "")).ID, ended, epoch)
	}
	for _, tc := range []struct {
		owner  string
		limits ptymgr.Limits
		field  string // of the refusal; "" when there is room
	}{
		{ann, ptymgr.Limits{PerOwner: 2, Total: 10}, "owner"},
		{ann, ptymgr.Limits{PerOwner: 1}, "owner"},
		{ann, ptymgr.Limits{PerOwner: 10, Total: 3}, "sessions"},
		{bob, ptymgr.Limits{PerOwner: 1, Total: 10}, "owner"},
		{bob, ptymgr.Limits{PerOwner: 2, Total: 3}, "sessions"},
		{ann, ptymgr.Limits{PerOwner: 3, Total: 4}, ""},
		{bob, ptymgr.Limits{}, ""},
	} {
		r, _, err := db.CreateSession(ctx, record(tc.owner, ""), "", "", tc.limits)
		if tc.field == "" {
			wantCode(t, err, "")
			db.end(t, r.ID, ptymgr.Exited, epoch)
			continue
		}
		wantCode(t, err, problem.LimitReached)
		if p := err.(*problem.Error); p.Field != tc.field || p.Hint == "" {
			t.Errorf("%+v: field %q, hint %q", tc, p.Field, p.Hint)
		}
	}
}

func testNames(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	a := db.create(t, record(ann, "a"))
	b := db.create(t, record(ann, "b"))
	bobs := db.create(t, record(bob, "a"))
	db.create(t, record(ann, "")) // any number may have no name
	db.create(t, record(ann, ""))
	create := func(owner, name string) error {
		_, _, err := db.CreateSession(ctx, record(owner, name), "", "", ptymgr.Limits{})
		return err
	}
	wantCode(t, create(ann, "a"), problem.NameTaken)
	wantCode(t, db.RenameSession(ctx, b.ID, "a"), problem.NameTaken)
	wantCode(t, db.RenameSession(ctx, a.ID, "a"), "")
	wantCode(t, db.RenameSession(ctx, bobs.ID, "b"), "")
	wantCode(t, db.RenameSession(ctx, b.ID, "c"), "")
	wantCode(t, create(ann, "b"), "")

	db.end(t, a.ID, ptymgr.Exited, epoch)
	wantCode(t, create(ann, "a"), "") // the name of the dead is free
	wantCode(t, create(ann, "a"), problem.NameTaken)
	wantCode(t, db.RenameSession(ctx, a.ID, "c"), "") // the dead share names with the living
}

func testFindByName(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	find := func(owner string, want ptymgr.Record) {
		t.Helper()
		got, err := db.FindByName(ctx, owner, "n")
		wantCode(t, err, "")
		if got.ID != want.ID {
			t.Fatalf("found %s, want %s", got.ID, want.ID)
		}
	}
	sorted := func(owner string, n int) ptymgr.Record {
		r := record(owner, "n")
		r.ID = fmt.Sprintf("s_%d", n)
		return db.create(t, r)
	}
	old := sorted(ann, 1)
	db.end(t, old.ID, ptymgr.Exited, epoch)
	find(ann, old)
	newer := sorted(ann, 2)
	db.end(t, newer.ID, ptymgr.Lost, epoch)
	find(ann, newer)
	alive := sorted(ann, 3)
	ended := sorted(bob, 4)
	db.end(t, ended.ID, ptymgr.Exited, epoch)
	find(ann, alive)
	find(bob, ended)
	find("", alive)
}

func testStates(t *testing.T, db *database) {
	ctx := t.Context()
	owner := db.user(t, "ann")
	later := epoch.Add(time.Hour)
	run := func(id string) error { return db.MarkRunning(ctx, id, 9, later, "") }
	end := func(state ptymgr.State) func(string) error {
		return func(id string) error {
			first, err := db.MarkEnded(ctx, id, state, nil, "SIGHUP", later, 5, "")
			if err == nil && !first {
				err = problem.New(problem.SessionEnded, "ended before")
			}
			return err
		}
	}
	for _, tc := range []struct {
		from ptymgr.State
		name string
		step func(string) error
		to   ptymgr.State
		code problem.Code
	}{
		{ptymgr.Starting, "run", run, ptymgr.Running, ""},
		{ptymgr.Starting, "exit", end(ptymgr.Exited), ptymgr.Exited, ""},
		{ptymgr.Starting, "lose", end(ptymgr.Lost), ptymgr.Lost, ""},
		{ptymgr.Running, "run", run, ptymgr.Running, ""},
		{ptymgr.Running, "exit", end(ptymgr.Exited), ptymgr.Exited, ""},
		{ptymgr.Running, "lose", end(ptymgr.Lost), ptymgr.Lost, ""},
		{ptymgr.Exited, "run", run, ptymgr.Exited, problem.SessionEnded},
		{ptymgr.Exited, "exit", end(ptymgr.Exited), ptymgr.Exited, problem.SessionEnded},
		{ptymgr.Exited, "lose", end(ptymgr.Lost), ptymgr.Exited, problem.SessionEnded},
		{ptymgr.Lost, "run", run, ptymgr.Lost, problem.SessionEnded},
		{ptymgr.Lost, "exit", end(ptymgr.Exited), ptymgr.Lost, problem.SessionEnded},
		{ptymgr.Running, "no end", end(ptymgr.Running), ptymgr.Running, problem.Internal},
	} {
		t.Run(fmt.Sprintf("%s %s", tc.from, tc.name), func(t *testing.T) {
			r := db.create(t, record(owner, ""))
			if tc.from != ptymgr.Starting {
				wantCode(t, db.MarkRunning(ctx, r.ID, 1, epoch, ""), "")
			}
			if tc.from.Ended() {
				db.end(t, r.ID, tc.from, epoch)
			}
			wantCode(t, tc.step(r.ID), tc.code)
			got, err := db.GetSession(ctx, r.ID)
			wantCode(t, err, "")
			if got.State != tc.to {
				t.Errorf("state %s, want %s", got.State, tc.to)
			}
			if tc.from.Ended() && (!got.EndedAt.Equal(epoch) || got.Signal != "") {
				t.Errorf("the end was changed: %+v", got)
			}
		})
	}
}

func testLabels(t *testing.T, db *database) {
	ctx := t.Context()
	r := record(db.user(t, "ann"), "")
	r.Labels = map[string]string{"a": "1", "b": "2"}
	db.create(t, r)
	for _, want := range []map[string]string{{"b": "3", "c": ""}, {}, nil, {"a": "1"}} {
		wantCode(t, db.SetLabels(ctx, r.ID, want), "")
		got, err := db.GetSession(ctx, r.ID)
		wantCode(t, err, "")
		if len(got.Labels) != len(want) || len(want) > 0 && !reflect.DeepEqual(got.Labels, want) {
			t.Fatalf("got %v, want %v", got.Labels, want)
		}
	}
	db.end(t, r.ID, ptymgr.Exited, epoch)
	wantCode(t, db.DeleteSession(ctx, r.ID), "")
	var n int
	if err := db.r.QueryRowContext(ctx, `SELECT count(*) FROM session_labels`).Scan(&n); err != nil || n != 0 {
		t.Fatalf("%d labels without a session, %v", n, err)
	}
}

func testAbsent(t *testing.T, db *database) {
	ctx := t.Context()
	for name, err := range map[string]error{
		"MarkRunning":   db.MarkRunning(ctx, "s_none", 1, epoch, ""),
		"RenameSession": db.RenameSession(ctx, "s_none", "x"),
		"SetLabels":     db.SetLabels(ctx, "s_none", map[string]string{"a": "b"}),
		"ResizeSession": db.ResizeSession(ctx, "s_none", 1, 1),
		"DeleteSession": db.DeleteSession(ctx, "s_none"),
		"GetSession":    second(db.GetSession(ctx, "s_none")),
		"FindByName":    second(db.FindByName(ctx, "", "none")),
		"MarkEnded":     second(db.MarkEnded(ctx, "s_none", ptymgr.Exited, nil, "", epoch, 0, "")),
	} {
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := db.CreateSession(ctx, record("u_none", ""), "", "", ptymgr.Limits{}); err == nil {
		t.Error("a session without an owner was made")
	}
}

func second[T any](_ T, err error) error { return err }

func testRemove(t *testing.T, db *database) {
	ctx := t.Context()
	owner := db.user(t, "ann")
	r := db.create(t, record(owner, ""))
	wantCode(t, db.DeleteSession(ctx, r.ID), problem.SessionRunning)
	wantCode(t, db.MarkRunning(ctx, r.ID, 1, epoch, ""), "")
	wantCode(t, db.DeleteSession(ctx, r.ID), problem.SessionRunning)
	db.end(t, r.ID, ptymgr.Exited, epoch)
	wantCode(t, db.DeleteSession(ctx, r.ID), "")
	wantCode(t, db.DeleteSession(ctx, r.ID), problem.NotFound)
}

func testList(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	for i := range 9 {
		r := record([]string{ann, bob}[i%2], fmt.Sprintf("n%d", i/2))
		r.ID = fmt.Sprintf("s_%d", i)
		r.Labels = map[string]string{"third": fmt.Sprint(i % 3), "big": fmt.Sprint(i > 4)}
		db.create(t, r)
		switch i % 4 {
		case 1:
			wantCode(t, db.MarkRunning(ctx, r.ID, 1, epoch, ""), "")
		case 2:
			db.end(t, r.ID, ptymgr.Exited, epoch)
		case 3:
			db.end(t, r.ID, ptymgr.Lost, epoch)
		}
	}
	for _, tc := range []struct {
		name string
		f    ptymgr.Filter
		want []int
	}{
		{"all", ptymgr.Filter{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"owner", ptymgr.Filter{Owner: bob}, []int{1, 3, 5, 7}},
		{"state", ptymgr.Filter{States: []ptymgr.State{ptymgr.Running}}, []int{1, 5}},
		{"states", ptymgr.Filter{States: []ptymgr.State{ptymgr.Exited, ptymgr.Lost}}, []int{2, 3, 6, 7}},
		{"name", ptymgr.Filter{Name: "n1"}, []int{2, 3}},
		{"label", ptymgr.Filter{Labels: map[string]string{"third": "0"}}, []int{0, 3, 6}},
		{"labels", ptymgr.Filter{Labels: map[string]string{"third": "0", "big": "true"}}, []int{6}},
		{"no such label", ptymgr.Filter{Labels: map[string]string{"none": ""}}, nil},
		{"after", ptymgr.Filter{After: "s_6"}, []int{7, 8}},
		{"everything", ptymgr.Filter{Owner: ann, States: []ptymgr.State{ptymgr.Starting}, Labels: map[string]string{"big": "true"}}, []int{8}},
	} {
		for _, limit := range []int{0, 1, 2, 100} {
			t.Run(fmt.Sprintf("%s by %d", tc.name, limit), func(t *testing.T) {
				f := tc.f
				f.Limit = limit
				var got []int
				for pages := 0; ; pages++ {
					rows, next, err := db.ListSessions(ctx, f)
					wantCode(t, err, "")
					if limit > 0 && len(rows) > limit || pages > 10 {
						t.Fatalf("page %d has %d rows", pages, len(rows))
					}
					for _, r := range rows {
						var n int
						if _, err := fmt.Sscanf(r.ID, "s_%d", &n); err != nil {
							t.Fatal(err)
						}
						got = append(got, n)
					}
					if next == "" {
						break
					}
					f.After = next
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			})
		}
	}
}

func testEndedBefore(t *testing.T, db *database) {
	ctx := t.Context()
	owner := db.user(t, "ann")
	db.create(t, record(owner, ""))
	var ids []string
	for i := range 3 {
		r := db.create(t, record(owner, ""))
		db.end(t, r.ID, []ptymgr.State{ptymgr.Exited, ptymgr.Lost}[i%2], epoch.Add(time.Duration(i)*time.Hour))
		ids = append(ids, r.ID)
	}
	for _, tc := range []struct {
		before time.Time
		limit  int
		want   []string
	}{
		{epoch, 10, nil},
		{epoch.Add(time.Hour), 10, ids[:1]},
		{epoch.Add(24 * time.Hour), 10, ids},
		{epoch.Add(24 * time.Hour), 2, ids[:2]},
	} {
		got, err := db.EndedBefore(ctx, tc.before, tc.limit)
		wantCode(t, err, "")
		if !slices.Equal(got, tc.want) {
			t.Errorf("before %v: %v, want %v", tc.before, got, tc.want)
		}
	}
}

func testTrimEnded(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	end := func(owner string, minute int) string {
		r := db.create(t, record(owner, ""))
		if _, err := db.MarkEnded(ctx, r.ID, ptymgr.Lost, nil, "", epoch.Add(time.Duration(minute)*time.Minute), 1, ""); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	living := db.create(t, record(ann, "lives"))
	// They end in another order than they began.
	third, first, second, fourth := end(ann, 3), end(ann, 1), end(ann, 2), end(ann, 4)
	of := end(bob, 0)
	for _, tc := range []struct {
		keep, limit int
		want        []string
	}{
		{4, 10, nil},
		{3, 10, []string{first}},
		{1, 1, []string{second}},
		{1, 10, []string{third}},
		{1, 10, nil},
	} {
		got, err := db.TrimEnded(ctx, tc.keep, tc.limit)
		wantCode(t, err, "")
		var ids []string
		for _, r := range got {
			ids = append(ids, r.ID)
			if r.Owner != ann {
				t.Errorf("%s belongs to %s", r.ID, r.Owner)
			}
		}
		if !slices.Equal(ids, tc.want) {
			t.Errorf("keep %d, at most %d: %v, want %v", tc.keep, tc.limit, ids, tc.want)
		}
	}
	for _, id := range []string{living.ID, fourth, of} {
		if _, err := db.GetSession(ctx, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func testLoseUnfinished(t *testing.T, db *database) {
	ctx := t.Context()
	owner := db.user(t, "ann")
	starting, running, kept := db.create(t, record(owner, "a")), db.create(t, record(owner, "b")), db.create(t, record(owner, "c"))
	wantCode(t, db.MarkRunning(ctx, running.ID, 1, epoch, ""), "")
	ended := db.create(t, record(owner, "d"))
	if _, err := db.MarkEnded(ctx, ended.ID, ptymgr.Exited, ptr(0), "", epoch, 1, ""); err != nil {
		t.Fatal(err)
	}
	lost, err := db.LoseUnfinished(ctx, []string{kept.ID, "s_unknown"}, epoch.Add(time.Hour))
	wantCode(t, err, "")
	want := []string{starting.ID, running.ID}
	slices.Sort(want)
	if !slices.Equal(lost, want) {
		t.Fatalf("lost %v, want %v", lost, want)
	}
	for id, state := range map[string]ptymgr.State{
		starting.ID: ptymgr.Lost, running.ID: ptymgr.Lost, kept.ID: ptymgr.Starting, ended.ID: ptymgr.Exited,
	} {
		r, err := db.GetSession(ctx, id)
		wantCode(t, err, "")
		if r.State != state {
			t.Errorf("%s is %s, want %s", id, r.State, state)
		}
		if state == ptymgr.Lost && (r.ExitCode != nil || r.Error == "" || !r.EndedAt.Equal(epoch.Add(time.Hour))) {
			t.Errorf("lost as %+v", r)
		}
	}
	if again, err := db.LoseUnfinished(ctx, []string{kept.ID}, epoch); err != nil || len(again) != 0 {
		t.Fatalf("%v, %v", again, err)
	}
}

func testSessionConstraints(t *testing.T, db *database) {
	ctx := t.Context()
	r := db.create(t, record(db.user(t, "ann"), ""))
	for _, query := range []string{
		`UPDATE sessions SET state = 'sleeping'`,
		`UPDATE sessions SET state = 'exited'`, // without a time
		`UPDATE sessions SET ended_at = 1`,     // without an end
		`UPDATE sessions SET exit_code = 1`,    // of a living one
		`UPDATE sessions SET cols = 0`,
		`UPDATE sessions SET rows = 65536`,
		`UPDATE sessions SET pid = 'x'`, // STRICT
		`UPDATE sessions SET owner = 'u_none'`,
		`INSERT INTO session_labels (session_id, key, value) VALUES ('s_none', 'a', 'b')`,
	} {
		err := db.write(ctx, "try", func(tx *txn) error {
			_, err := tx.exec(query)
			return err
		})
		if err == nil {
			t.Errorf("accepted: %s", query)
		}
	}
	got, err := db.GetSession(ctx, r.ID)
	wantCode(t, err, "")
	same(t, got, r)
}

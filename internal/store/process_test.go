package store

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// Races between operating-system processes on one database.
var processCases = []conformCase{
	{"processes: one key makes one session", testProcessKey},
	{"processes: names and limits hold", testProcessLimits},
	{"processes: a session ends once", testProcessEnd},
	{"processes: a link is redeemed once", testProcessLink},
}

// createArgs is what the role "create" does: Per goroutine one create.
type createArgs struct {
	Owner  string
	Times  int
	Key    string
	Names  int // names in use; 0: none has one
	Limits ptymgr.Limits
}

type createAnswer struct {
	Outcomes map[problem.Code]int
	Made     int
	IDs      []string
}

func init() {
	roles["create"] = func(ctx context.Context, o order) (any, error) {
		var a createArgs
		if err := json.Unmarshal(o.Args, &a); err != nil {
			return nil, err
		}
		return withStore(ctx, o.DSN, func(s *Store) (any, error) {
			type result struct {
				id       string
				existing bool
			}
			results := make(chan result, a.Times)
			outcomes := together(a.Times, func(i int) error {
				name := ""
				if a.Names > 0 {
					name = fmt.Sprintf("n%d", i%a.Names)
				}
				r, existing, err := s.CreateSession(ctx, record(a.Owner, name), a.Key, "d", a.Limits)
				if err == nil {
					results <- result{r.ID, existing}
				}
				return err
			})
			close(results)
			answer := createAnswer{Outcomes: outcomes}
			for r := range results {
				answer.IDs = append(answer.IDs, r.id)
				if !r.existing {
					answer.Made++
				}
			}
			return answer, nil
		})
	}
	roles["end"] = func(ctx context.Context, o order) (any, error) {
		var ids []string
		if err := json.Unmarshal(o.Args, &ids); err != nil {
			return nil, err
		}
		return withStore(ctx, o.DSN, func(s *Store) (any, error) {
			var firsts []string
			for _, id := range ids {
				first, err := s.MarkEnded(ctx, id, ptymgr.Exited, nil, "", epoch, 0, "")
				if err != nil {
					return nil, err
				}
				if first {
					firsts = append(firsts, id)
				}
			}
			return firsts, nil
		})
	}
	roles["redeem"] = func(ctx context.Context, o order) (any, error) {
		return withStore(ctx, o.DSN, func(s *Store) (any, error) {
			return together(10, func(i int) error {
				w := newWeb("", fmt.Sprintf("%p %d", s, i))
				w.CookieHash = hash(w.ID)
				_, err := s.RedeemLink(ctx, hash("link"), epoch, w)
				return err
			}), nil
		})
	}
}

func withStore(ctx context.Context, dsn string, fn func(*Store) (any, error)) (any, error) {
	s, err := Open(ctx, Options{DSN: dsn})
	if err != nil {
		return nil, err
	}
	if err := whenTold(); err != nil {
		return nil, err
	}
	v, err := fn(s)
	if e := s.Close(); err == nil {
		err = e
	}
	return v, err
}

func sum(answers []createAnswer) (outcomes map[problem.Code]int, made int, ids map[string]int) {
	outcomes, ids = map[problem.Code]int{}, map[string]int{}
	for _, a := range answers {
		for code, n := range a.Outcomes {
			outcomes[code] += n
		}
		made += a.Made
		for _, id := range a.IDs {
			ids[id]++
		}
	}
	return outcomes, made, ids
}

func testProcessKey(t *testing.T, db *database) {
	args := createArgs{Owner: db.user(t, "ann"), Times: 50, Key: "k", Limits: ptymgr.Limits{PerOwner: 1}}
	outcomes, made, ids := sum(finish[createAnswer](t, startChildren(t, 2, "create", db.dsn, args)))
	want(t, outcomes, map[problem.Code]int{"": 100})
	if made != 1 || len(ids) != 1 {
		t.Errorf("%d made, ids %v", made, ids)
	}
	rows, _, err := db.ListSessions(t.Context(), ptymgr.Filter{})
	if err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func testProcessLimits(t *testing.T, db *database) {
	ann := db.user(t, "ann")
	t.Run("names", func(t *testing.T) {
		args := createArgs{Owner: ann, Times: 20, Names: 5}
		outcomes, made, _ := sum(finish[createAnswer](t, startChildren(t, 2, "create", db.dsn, args)))
		want(t, outcomes, map[problem.Code]int{"": 5, problem.NameTaken: 35})
		if made != 5 {
			t.Errorf("%d made", made)
		}
	})
	t.Run("limits", func(t *testing.T) {
		// Five are there already.
		args := createArgs{Owner: ann, Times: 15, Limits: ptymgr.Limits{PerOwner: 12, Total: 13}}
		outcomes, _, _ := sum(finish[createAnswer](t, startChildren(t, 2, "create", db.dsn, args)))
		want(t, outcomes, map[problem.Code]int{"": 7, problem.LimitReached: 23})
		args.Owner = db.user(t, "bob")
		outcomes, _, _ = sum(finish[createAnswer](t, startChildren(t, 2, "create", db.dsn, args)))
		want(t, outcomes, map[problem.Code]int{"": 1, problem.LimitReached: 29})
	})
}

func testProcessEnd(t *testing.T, db *database) {
	owner := db.user(t, "ann")
	var ids []string
	for range 30 {
		ids = append(ids, db.create(t, record(owner, "")).ID)
	}
	firsts := map[string]int{}
	for _, answer := range finish[[]string](t, startChildren(t, 2, "end", db.dsn, ids)) {
		for _, id := range answer {
			firsts[id]++
		}
	}
	for _, id := range ids {
		if firsts[id] != 1 {
			t.Errorf("%s ended %d times", id, firsts[id])
		}
	}
}

func testProcessLink(t *testing.T, db *database) {
	wantCode(t, db.InsertLink(t.Context(), newLink(db.user(t, "ann")), hash("link")), "")
	won := 0
	for _, outcomes := range finish[map[problem.Code]int](t, startChildren(t, 2, "redeem", db.dsn, nil)) {
		won += outcomes[""]
		if outcomes[""]+outcomes[problem.NotFound] != 10 {
			t.Errorf("outcomes %v", outcomes)
		}
	}
	if won != 1 {
		t.Errorf("redeemed %d times", won)
	}
}

package store

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// Races between goroutines; those between processes are in process_test.go.
var sessionRaces = []conformCase{
	{"a session ends once", testSingleEnd},
	{"exit and loss are one end", testExitAgainstLoss},
	{"a label set is one of those that were set", testLabelRace},
	{"parallel creates stay within the limits", func(t *testing.T, db *database) {
		ann, bob := db.user(t, "ann"), db.user(t, "bob")
		counts := together(30, func(i int) error {
			_, _, err := db.CreateSession(t.Context(), record([]string{ann, bob}[i%2], ""), "", "", ptymgr.Limits{PerOwner: 7, Total: 11})
			return err
		})
		want(t, counts, map[problem.Code]int{"": 11, problem.LimitReached: 19})
	}},
	{"parallel creates share no name", func(t *testing.T, db *database) {
		ann := db.user(t, "ann")
		counts := together(20, func(i int) error {
			_, _, err := db.CreateSession(t.Context(), record(ann, fmt.Sprintf("n%d", i%4)), "", "", ptymgr.Limits{})
			return err
		})
		want(t, counts, map[problem.Code]int{"": 4, problem.NameTaken: 16})
	}},
	{"parallel creates with one key make one session", func(t *testing.T, db *database) {
		ann := db.user(t, "ann")
		var mu sync.Mutex // guards ids and made
		ids, made := map[string]int{}, 0
		counts := together(20, func(int) error {
			r, existing, err := db.CreateSession(t.Context(), record(ann, "n"), "k", "d", ptymgr.Limits{PerOwner: 1})
			mu.Lock()
			defer mu.Unlock()
			ids[r.ID]++
			if !existing {
				made++
			}
			return err
		})
		want(t, counts, map[problem.Code]int{"": 20})
		if len(ids) != 1 || made != 1 {
			t.Fatalf("%d made, ids %v", made, ids)
		}
	}},
	{"removing and ending: removed only after the end", testRemoveAgainstEnd},
}

// together runs fn n times at once and counts the outcomes by code.
func together(n int, fn func(i int) error) map[problem.Code]int {
	var mu sync.Mutex // guards counts
	counts := map[problem.Code]int{}
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-begin
			var code problem.Code
			if err := fn(i); err != nil {
				code = problem.CodeOf(err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[code]++
		})
	}
	close(begin)
	wg.Wait()
	return counts
}

func want(t testing.TB, got, want map[problem.Code]int) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}

func testSingleEnd(t *testing.T, db *database) {
	owner := db.user(t, "ann")
	for range 5 {
		r := db.create(t, record(owner, ""))
		var mu sync.Mutex // guards winner
		winner := -1
		counts := together(12, func(i int) error {
			first, err := db.MarkEnded(t.Context(), r.ID, ptymgr.Exited, ptr(i), "", epoch, uint64(i), "")
			if err == nil && !first {
				return problem.New(problem.SessionEnded, "late")
			}
			mu.Lock()
			defer mu.Unlock()
			winner = i
			return err
		})
		want(t, counts, map[problem.Code]int{"": 1, problem.SessionEnded: 11})
		got, err := db.GetSession(t.Context(), r.ID)
		wantCode(t, err, "")
		if got.ExitCode == nil || *got.ExitCode != winner || got.FinalOffset != uint64(winner) {
			t.Fatalf("%d won, and the row says %+v", winner, got)
		}
	}
}

func testExitAgainstLoss(t *testing.T, db *database) {
	owner := db.user(t, "ann")
	for range 5 {
		r := db.create(t, record(owner, ""))
		ends := make(chan string, 2)
		together(2, func(i int) error {
			if i == 0 {
				first, err := db.MarkEnded(t.Context(), r.ID, ptymgr.Exited, ptr(0), "", epoch, 1, "")
				if first {
					ends <- "exited"
				}
				return err
			}
			lost, err := db.LoseUnfinished(t.Context(), nil, epoch)
			if len(lost) > 0 {
				ends <- "lost"
			}
			return err
		})
		close(ends)
		first := <-ends
		if more, ok := <-ends; ok {
			t.Fatalf("ended as %s and as %s", first, more)
		}
		got, err := db.GetSession(t.Context(), r.ID)
		wantCode(t, err, "")
		if string(got.State) != first {
			t.Fatalf("%s won, and the row says %s", first, got.State)
		}
	}
}

func testLabelRace(t *testing.T, db *database) {
	r := db.create(t, record(db.user(t, "ann"), ""))
	sets := []map[string]string{{"a": "1", "b": "1"}, {"a": "2", "c": "2"}, {"d": "3"}}
	want(t, together(9, func(i int) error {
		return db.SetLabels(context.Background(), r.ID, sets[i%3])
	}), map[problem.Code]int{"": 9})
	got, err := db.GetSession(t.Context(), r.ID)
	wantCode(t, err, "")
	for _, s := range sets {
		if reflect.DeepEqual(got.Labels, s) {
			return
		}
	}
	t.Fatalf("mixed: %v", got.Labels)
}

func testRemoveAgainstEnd(t *testing.T, db *database) {
	owner := db.user(t, "ann")
	for range 5 {
		r := db.create(t, record(owner, ""))
		counts := together(4, func(i int) error {
			if i == 0 {
				_, err := db.MarkEnded(t.Context(), r.ID, ptymgr.Exited, nil, "", epoch, 0, "")
				return err
			}
			return db.DeleteSession(t.Context(), r.ID)
		})
		_, err := db.GetSession(t.Context(), r.ID)
		if removed := counts[""] == 2; removed != problem.Is(err, problem.NotFound) || counts[problem.Internal] > 0 {
			t.Fatalf("outcomes %v, then %v", counts, err)
		}
	}
}

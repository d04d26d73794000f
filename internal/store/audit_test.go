package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
)

var auditCases = []conformCase{
	{"the audit log comes back in order", testAudit},
	{"many audit entries at once are all there", testAuditParallel},
	{"the audit log is pruned by age and count", testPruneAudit},
	{"closing commits what is queued", testAuditDrain},
}

func testAudit(t *testing.T, db *database) {
	ctx := t.Context()
	entries := []AuditEntry{
		{At: epoch, Principal: "u_1", Via: "token", Action: "session.create", Target: "s_1", Detail: json.RawMessage(`{"argv":["ü"]}`)},
		{At: epoch.Add(-time.Hour), Principal: "", Via: "", Action: "login.failed", Target: "", Detail: nil},
		{At: epoch, Principal: "u_2", Via: "socket", Action: "user.add", Target: "u_3", Detail: json.RawMessage(`{}`)},
	}
	for i := range entries {
		wantCode(t, db.AppendAudit(ctx, entries[i]), "")
		entries[i].ID = int64(i + 1)
	}
	entries[1].Detail = json.RawMessage(`{}`)
	for _, tc := range []struct {
		after int64
		limit int
		want  []AuditEntry
	}{
		{0, 10, entries}, {0, 2, entries[:2]}, {1, 1, entries[1:2]}, {3, 10, []AuditEntry{}},
	} {
		got, err := db.ListAudit(ctx, tc.after, tc.limit)
		wantCode(t, err, "")
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("after %d: got %+v, want %+v", tc.after, got, tc.want)
		}
	}
	if err := db.AppendAudit(ctx, AuditEntry{Action: "x", Detail: json.RawMessage(`{`)}); err == nil {
		t.Error("accepted a broken detail")
	}
	if err := db.AppendAudit(ctx, AuditEntry{}); err == nil {
		t.Error("accepted an entry without an action")
	}
}

// A bad entry fails alone, whatever group it is in.
func testAuditParallel(t *testing.T, db *database) {
	const n = 60
	want(t, together(n, func(i int) error {
		e := AuditEntry{Action: "a", Target: fmt.Sprint(i)}
		if i%20 == 0 {
			e.Action = ""
		}
		return db.AppendAudit(t.Context(), e)
	}), map[problem.Code]int{"": n - 3, problem.Internal: 3})
	got, err := db.ListAudit(t.Context(), 0, 2*n)
	wantCode(t, err, "")
	seen := map[string]bool{}
	for _, e := range got {
		seen[e.Target] = true
	}
	if len(got) != n-3 || len(seen) != n-3 {
		t.Errorf("%d entries, %d different", len(got), len(seen))
	}
}

func testPruneAudit(t *testing.T, db *database) {
	ctx := t.Context()
	for i := range 10 {
		wantCode(t, db.AppendAudit(ctx, AuditEntry{At: epoch.Add(time.Duration(i) * time.Hour), Action: "a"}), "")
	}
	for _, tc := range []struct {
		before time.Time
		max    int
		gone   int64
		first  int64
	}{
		{time.Time{}, 0, 0, 1},
		{epoch, 0, 0, 1},
		{epoch.Add(2 * time.Hour), 100, 2, 3},
		{time.Time{}, 5, 3, 6},
		{time.Time{}, 5, 0, 6},
		{epoch.Add(7 * time.Hour), 1, 4, 10},
	} {
		gone, err := db.PruneAudit(ctx, tc.before, tc.max)
		wantCode(t, err, "")
		left, err := db.ListAudit(ctx, 0, 100)
		wantCode(t, err, "")
		if gone != tc.gone || left[0].ID != tc.first {
			t.Errorf("%+v: %d gone, first left %d", tc, gone, left[0].ID)
		}
	}
	// An id is never given twice, even when the newest rows have gone.
	if _, err := db.PruneAudit(ctx, epoch.Add(1000*time.Hour), 0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.AppendAudit(ctx, AuditEntry{Action: "a"}), "")
	if left, err := db.ListAudit(ctx, 0, 10); err != nil || len(left) != 1 || left[0].ID != 11 {
		t.Errorf("%+v, %v", left, err)
	}
}

func testAuditDrain(t *testing.T, db *database) {
	const n = 20
	other := openAt(t, db.dsn)
	outcomes := make(chan map[problem.Code]int, 1)
	begun := make(chan struct{}, n)
	go func() {
		outcomes <- together(n, func(i int) error {
			begun <- struct{}{}
			return other.AppendAudit(t.Context(), AuditEntry{Action: "a"})
		})
	}()
	<-begun
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	counts := <-outcomes
	if counts[""]+counts[problem.Unavailable] != n {
		t.Fatalf("outcomes %v", counts)
	}
	got, err := db.ListAudit(t.Context(), 0, 100)
	wantCode(t, err, "")
	if len(got) != counts[""] {
		t.Errorf("%d entries, and %d callers were told so", len(got), counts[""])
	}
	wantCode(t, other.AppendAudit(t.Context(), AuditEntry{Action: "a"}), problem.Unavailable)
	other.TouchToken("t_1", epoch) // must not hang or panic
	wantCode(t, second(other.GetSession(t.Context(), "s_1")), problem.Unavailable)
}

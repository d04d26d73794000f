package store

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// engine makes empty databases; every conformance case runs on every engine.
type engine struct {
	name  string
	fresh func(t *testing.T) (dsn string)
}

var engines = []engine{{"sqlite", freshSQLite}}

// freshSQLite copies a file that was migrated once: under the race detector the
// migration takes longer than most cases do.
func freshSQLite(t *testing.T) string {
	t.Helper()
	content, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	return writeTemp(t, content)
}

func writeTemp(t testing.TB, content []byte) string {
	t.Helper()
	dsn := filepath.Join(t.TempDir(), "test.db")
	if err := os.WriteFile(dsn, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dsn
}

var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "ptyd-store-test")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
	dsn := filepath.Join(dir, "template.db")
	s, err := Open(context.Background(), Options{DSN: dsn})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(dsn)
})

// conformCase is one thing that every engine must do.
type conformCase struct {
	name string
	run  func(t *testing.T, db *database)
}

// database is a fresh database of one case, open once; more may be opened.
type database struct {
	*Store
	dsn string
}

func TestConformance(t *testing.T) {
	cases := slices.Concat(sessionCases, sessionRaces, userCases, credentialCases, auditCases, processCases)
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			for _, c := range cases {
				t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
					dsn := e.fresh(t)
					c.run(t, &database{Store: openAt(t, dsn), dsn: dsn})
				})
			}
		})
	}
}

func openAt(t testing.TB, dsn string) *Store {
	t.Helper()
	s, err := Open(context.Background(), Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// epoch is a moment in whole microseconds, like all that is stored.
var epoch = time.Date(2026, 3, 4, 5, 6, 7, 891_234_000, time.UTC)

// user adds a user and returns their id.
func (db *database) user(t testing.TB, name string) string {
	t.Helper()
	u := auth.User{ID: ident.New("u"), Name: name, Role: auth.Operator, CreatedAt: epoch}
	if err := db.InsertUser(context.Background(), u, ""); err != nil {
		t.Fatal(err)
	}
	return u.ID
}

// record is a session as ptymgr would make it.
func record(owner, name string) ptymgr.Record {
	return ptymgr.Record{
		ID: ident.New("s"), Owner: owner, Name: name, Argv: []string{"true"}, Cwd: "/",
		Cols: 80, Rows: 24, CreatedAt: epoch,
	}
}

func (db *database) create(t testing.TB, r ptymgr.Record) ptymgr.Record {
	t.Helper()
	row, existing, err := db.CreateSession(context.Background(), r, "", "", ptymgr.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if existing {
		t.Fatal("a session without a key existed already")
	}
	return row
}

func (db *database) end(t testing.TB, id string, state ptymgr.State, at time.Time) {
	t.Helper()
	if first, err := db.MarkEnded(context.Background(), id, state, nil, "", at, 0, ""); err != nil || !first {
		t.Fatalf("end %s: %v, %v", id, first, err)
	}
}

// wantCode checks the code of err; "" is no error.
func wantCode(t testing.TB, err error, code problem.Code) {
	t.Helper()
	switch {
	case code == "" && err != nil:
		t.Fatalf("unexpected error: %v", err)
	case code != "" && !problem.Is(err, code):
		t.Fatalf("got %v, want %s", err, code)
	}
}

func ptr[T any](v T) *T { return &v }

package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/depcache"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	db := &database{Store: openAt(t, filepath.Join(dir, "x.db"))}
	db.user(t, "ann")
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("files %v, %v", files, err) // database, log, index
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f, info.Mode())
		}
	}
}

func TestPathsAreTakenLiterally(t *testing.T) {
	for _, name := range []string{"a b.db", "q?mode=memory.db", "h#x.db", "p%41.db", "ü&_pragma=x.db", "a;b.db"} {
		dir := t.TempDir()
		db := &database{Store: openAt(t, filepath.Join(dir, name))}
		db.user(t, "ann")
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 3 {
			t.Errorf("%q: %v, %v", name, entries, err)
		}
	}
}

func TestConnectionsAreSetUp(t *testing.T) {
	s := openAt(t, freshSQLite(t))
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000",
	} {
		var got string
		if err := s.w.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", pragma, got, err, want)
		}
	}
	if _, err := s.r.ExecContext(t.Context(), `DELETE FROM users`); err == nil {
		t.Error("the reading handle writes")
	}
}

// A full disk refuses what is new with a clear error, leaves what was there
// alone, and is over when there is room again.
func TestDiskFull(t *testing.T) {
	db := &database{Store: openAt(t, freshSQLite(t))}
	owner := db.user(t, "ann")
	there := db.create(t, record(owner, "there"))
	limit := func(pages string) {
		t.Helper()
		if _, err := db.w.ExecContext(t.Context(), "PRAGMA max_page_count = "+pages); err != nil {
			t.Fatal(err)
		}
	}
	limit("1") // SQLite takes the present size
	big := record(owner, "big")
	big.Argv = []string{strings.Repeat("x", 1<<20)}
	_, _, err := db.CreateSession(t.Context(), big, "k", "d", ptymgr.Limits{})
	wantCode(t, err, problem.DiskFull)
	if p, _ := errors.AsType[*problem.Error](err); p.Hint == "" {
		t.Error("no hint")
	}
	wantCode(t, db.AppendAudit(t.Context(), AuditEntry{Action: "a", Target: strings.Repeat("x", 1<<20)}), problem.DiskFull)
	db.end(t, there.ID, ptymgr.Exited, epoch) // needs no room
	limit("1000000")
	_, existing, err := db.CreateSession(t.Context(), big, "k", "d", ptymgr.Limits{})
	if err != nil || existing {
		t.Fatalf("%v, %v", existing, err)
	}
}

// Whoever gives up before a write begins leaves no trace; a write that has
// begun is finished though its caller is gone.
func TestContextOfWrites(t *testing.T) {
	db := &database{Store: openAt(t, freshSQLite(t))}
	owner := db.user(t, "ann")
	ctx, cancel := context.WithCancel(t.Context())
	err := db.write(ctx, "try", func(tx *txn) error {
		cancel()
		_, err := tx.exec(`UPDATE users SET name = 'renamed' WHERE id = $1`, owner)
		return err
	})
	wantCode(t, err, "")
	if a, err := db.AccountByID(t.Context(), owner); err != nil || a.Name != "renamed" {
		t.Errorf("%v, %v", a.Name, err)
	}
	_, _, err = db.CreateSession(ctx, record(owner, "n"), "", "", ptymgr.Limits{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if rows, _, err := db.ListSessions(t.Context(), ptymgr.Filter{}); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
}

// Against another process's write a transaction waits its time and is then
// refused with a clear error; a read never waits.
func TestBusy(t *testing.T) {
	dsn := freshSQLite(t)
	db := &database{Store: openAt(t, dsn)}
	db.user(t, "ann")
	impatient, err := Open(t.Context(), Options{DSN: dsn, BusyTimeout: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := impatient.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = db.write(t.Context(), "hold", func(*txn) error {
		wantCode(t, impatient.InsertUser(t.Context(), newUser("bob", nil), ""), problem.Unavailable)
		wantCode(t, second(impatient.AccountByName(t.Context(), "ann")), "")
		// Refused at its beginning: a transaction that may not write has read
		// nothing either.
		runs := 0
		wantCode(t, impatient.write(t.Context(), "try", func(*txn) error { runs++; return nil }), problem.Unavailable)
		if runs != 0 {
			t.Errorf("began %d times under another's write", runs)
		}
		return nil
	})
	wantCode(t, err, "")
	wantCode(t, impatient.InsertUser(t.Context(), newUser("bob", nil), ""), "")
}

// A transaction that lost is begun anew, a bounded number of times, and leaves
// nothing of the tries that failed.
func TestRetry(t *testing.T) {
	db := &database{Store: openAt(t, freshSQLite(t))}
	lost := errors.New("lost the race")
	d := *db.d
	d.kind = func(err error) errKind {
		if errors.Is(err, lost) {
			return errBusy
		}
		return sqliteKind(err)
	}
	db.Store.d = &d
	for _, tc := range []struct {
		losses, runs int
		code         problem.Code
	}{{0, 1, ""}, {2, 3, ""}, {tries - 1, tries, ""}, {tries, tries, problem.Unavailable}} {
		runs := 0
		err := db.write(t.Context(), "try", func(tx *txn) error {
			if _, err := tx.exec(insertUser, ident.New("u"), ident.New("x"), nil, "viewer", 0, "", 0); err != nil {
				return err
			}
			if runs++; runs <= tc.losses {
				return lost
			}
			return nil
		})
		wantCode(t, err, tc.code)
		if runs != tc.runs {
			t.Errorf("%d losses: %d runs, want %d", tc.losses, runs, tc.runs)
		}
	}
	if users, err := db.ListUsers(t.Context()); err != nil || len(users) != 3 {
		t.Errorf("%d users, %v", len(users), err)
	}
}

// A panic inside a transaction leaves nothing behind and blocks nobody.
func TestPanicInATransaction(t *testing.T) {
	db := &database{Store: openAt(t, freshSQLite(t))}
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		_ = db.write(t.Context(), "try", func(tx *txn) error {
			if _, err := tx.exec(insertUser, "u_1", "x", nil, "viewer", 0, "", 0); err != nil {
				t.Error(err)
			}
			panic("boom")
		})
	}()
	db.user(t, "ann")
	if users, err := db.ListUsers(t.Context()); err != nil || len(users) != 1 {
		t.Errorf("%d users, %v", len(users), err)
	}
}

func TestOpenShared(t *testing.T) {
	dsn := freshSQLite(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(dsn), link); err != nil {
		t.Fatal(err)
	}
	open := func(dsn string) *Shared {
		t.Helper()
		s, err := OpenShared(t.Context(), Options{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := open(dsn), open(filepath.Join(link, "..", "link", filepath.Base(dsn)))
	if a.Store != b.Store {
		t.Fatal("one file was opened twice")
	}
	_, err := OpenShared(t.Context(), Options{DSN: dsn, BusyTimeout: 7})
	if conflict, ok := errors.AsType[*depcache.ConflictError](err); !ok || conflict.Key == nil {
		t.Fatalf("got %v", err)
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.ListUsers(t.Context()); err != nil {
		t.Fatal("closed under its second user:", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, second(b.ListUsers(t.Context())), problem.Unavailable)
	again := open(dsn)
	if again.Store == a.Store {
		t.Fatal("got a closed store")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dsn := range []string{"", "x://y", filepath.Join(link, "none", "x.db")} {
		if _, err := OpenShared(t.Context(), Options{DSN: dsn}); err == nil {
			t.Errorf("opened %q", dsn)
		}
	}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
)

func init() {
	roles["open"] = func(ctx context.Context, o order) (any, error) {
		if err := whenTold(); err != nil {
			return nil, err
		}
		s, err := Open(ctx, Options{DSN: o.DSN})
		if err != nil {
			return nil, err
		}
		u, err := s.EnsureUser(ctx, newUser("owner", ptr(1000)))
		if err != nil {
			return nil, err
		}
		return u.ID, s.Close()
	}
}

// The bug of other migrators: several processes start on a new database, each
// finds no schema, all but one fail or apply a step twice. Here all succeed and
// see one schema and one owner.
func TestTenProcessesOpenANewDatabase(t *testing.T) {
	for name, dsn := range map[string]string{
		"no file":    filepath.Join(t.TempDir(), "new.db"),
		"empty file": writeTemp(t, nil), // so that all migrate
	} {
		t.Run(name, func(t *testing.T) {
			owners := map[string]int{}
			for _, id := range finish[string](t, startChildren(t, 10, "open", dsn, nil)) {
				owners[id]++
			}
			if len(owners) != 1 {
				t.Errorf("owners %v", owners)
			}
			s := openAt(t, dsn)
			steps, err := loadSteps(migrations)
			if err != nil {
				t.Fatal(err)
			}
			if got := versions(t, s); len(got) != len(steps) || got[0] != 1 || got[len(got)-1] != len(steps) {
				t.Errorf("versions %v", got)
			}
		})
	}
}

func versions(t *testing.T, s *Store) (got []int) {
	t.Helper()
	err := s.query(t.Context(), "versions", `SELECT version FROM schema_version ORDER BY version`, nil, func(row scanner) error {
		var v int
		err := row.Scan(&v)
		got = append(got, v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dsn := freshSQLite(t)
	s := openAt(t, dsn)
	err := s.write(t.Context(), "try", func(tx *txn) error {
		_, err := tx.exec(`INSERT INTO schema_version (version, applied_at) VALUES (1000, 0)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{DSN: dsn})
	p, ok := errors.AsType[*problem.Error](err)
	if !ok || p.Code != problem.Unsupported || !strings.Contains(p.Detail, "1000") || p.Hint == "" {
		t.Fatalf("got %v", err)
	}
	// Also when another process writes it between our look and our lock.
	if err := s.migrate(t.Context(), migrations); !problem.Is(err, problem.Unsupported) {
		t.Fatalf("got %v", err)
	}
}

// A migration that leaves alone what older releases know says so, and they go
// on; one that does not is refused by them, whatever comes after it.
func TestFloor(t *testing.T) {
	s := openAt(t, freshSQLite(t))
	known, err := KnownSchema()
	if err != nil {
		t.Fatal(err)
	}
	if have, err := s.Schema(t.Context()); err != nil || have != known || known.Floor > known.Known || known.Floor < floorSince {
		t.Fatalf("the database has %+v, this program knows %+v; %v", have, known, err)
	}
	texts := slices.Repeat([]string{""}, known.Known)
	added := append(slices.Clone(texts), fmt.Sprintf("-- floor: %d\nCREATE TABLE more (a INTEGER)", known.Floor))
	if err := s.migrate(t.Context(), steps(added...)); err != nil {
		t.Fatal(err)
	}
	if have, err := s.Schema(t.Context()); err != nil || have != (Schema{known.Known + 1, known.Floor}) {
		t.Errorf("after a migration that adds: %+v, %v", have, err)
	}
	if err := s.migrate(t.Context(), steps(texts...)); err != nil {
		t.Errorf("the older release: %v", err)
	}
	if err := s.migrate(t.Context(), steps(texts[1:]...)); !problem.Is(err, problem.Unsupported) {
		t.Errorf("one below the floor: %v", err)
	}
	changed := append(slices.Clone(added), "ALTER TABLE more ADD COLUMN b INTEGER", fmt.Sprintf("-- floor: %d\nALTER TABLE more ADD COLUMN c INTEGER", known.Floor))
	if err := s.migrate(t.Context(), steps(changed...)); err != nil {
		t.Fatal(err)
	}
	if err := s.migrate(t.Context(), steps(texts...)); !problem.Is(err, problem.Unsupported) {
		t.Errorf("the older release, after a migration that changes: %v", err)
	}
	if err := s.migrate(t.Context(), steps(changed[:len(changed)-1]...)); err != nil {
		t.Errorf("the release between: %v", err)
	}
}

// steps is a file system of migrations.
func steps(texts ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, text := range texts {
		fs[fmt.Sprintf("migrations/%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func TestMigrationsAreOneTransaction(t *testing.T) {
	s := openAt(t, freshSQLite(t))
	before := versions(t, s)
	good := append(slices.Repeat([]string{""}, len(before)), "CREATE TABLE two (a INTEGER)")
	bad := append(slices.Clone(good), "CREATE TABLE three (a INTEGER); CREATE TABLE users (a INTEGER)")
	if err := s.migrate(t.Context(), steps(bad...)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("migration %d", len(bad))) {
		t.Fatalf("got %v", err)
	}
	if got := versions(t, s); !slices.Equal(got, before) {
		t.Errorf("versions %v after a failure, want %v", got, before)
	}
	for _, table := range []string{"two", "three"} {
		if n := tables(t, s, table); n != 0 {
			t.Errorf("a failed migration left the table %s", table)
		}
	}
	// The same without the mistake goes through, and once only.
	for range 2 {
		if err := s.migrate(t.Context(), steps(good...)); err != nil {
			t.Fatal(err)
		}
	}
	if tables(t, s, "two") != 1 || len(versions(t, s)) != len(before)+1 {
		t.Errorf("versions %v", versions(t, s))
	}
}

func tables(t *testing.T, s *Store, name string) (n int) {
	t.Helper()
	if err := s.r.QueryRowContext(t.Context(), s.d.hasTable, name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	for _, names := range [][]string{{"0002_a.sql"}, {"0001_a.sql", "0003_b.sql"}, {"0001_a.sql", "0001_b.sql"}, {"first.sql"}} {
		fs := fstest.MapFS{}
		for _, name := range names {
			fs["migrations/"+name] = &fstest.MapFile{}
		}
		if _, err := loadSteps(fs); err == nil {
			t.Errorf("accepted %v", names)
		}
	}
	got, err := loadSteps(migrations)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range got {
		if left := sqliteDialect.words.Replace(text); strings.Contains(left, "${") && !strings.Contains(left, "${…}") {
			t.Errorf("migration %d has a word that the dialect does not know", i+1)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dsn := range []string{"", "postgres://host/db", filepath.Join(dir, "none", "x.db"), dir, garbage} {
		s, err := Open(t.Context(), Options{DSN: dsn})
		if err == nil {
			t.Errorf("opened %q: %v", dsn, s.Close())
		}
	}
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	dsn := writeTemp(t, nil) // has no tables: to open it is to write
	w, r, _, err := openSQLite(dsn, settings{BusyTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = w.Close(), r.Close() }()
	tx, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`CREATE TABLE t (a)`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := Open(ctx, Options{DSN: dsn, BusyTimeout: time.Millisecond}); err == nil {
		t.Errorf("opened a locked database: %v", s.Close())
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

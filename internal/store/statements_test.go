package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A query is compiled when it comes again, on both handles, and a bounded
// number of them is kept.
func TestStatementsAreKept(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "db"))
	one := func(q string) (n int) {
		t.Helper()
		if err := s.rs.row(t.Context(), q, 1).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const q = `SELECT $1 + 41`
	for range 3 {
		if n := one(q); n != 42 {
			t.Fatal(n)
		}
	}
	if st, _ := s.rs.get(q); st == nil {
		t.Error("it is not kept")
	}
	for i := range 3 * maxStatements {
		for range 2 {
			if n := one(fmt.Sprintf("SELECT $1 + %d", i)); n != i+1 {
				t.Fatal(n)
			}
		}
	}
	if n := len(s.rs.kept); n > maxStatements {
		t.Errorf("%d are kept", n)
	}
	// Many at once, also while they are compiled, and what fails fails as before.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := s.write(t.Context(), "test", func(tx *txn) error {
					var n int
					if err := tx.row(`SELECT $1 + 1`, 1).Scan(&n); err != nil || n != 2 {
						return fmt.Errorf("%d, %w", n, err)
					}
					_, err := tx.exec(`UPDATE users SET name = name WHERE id = $1`, "nobody")
					return err
				}); err != nil {
					t.Error(err)
				}
				err := s.write(t.Context(), "test", func(tx *txn) error { _, err := tx.exec(`INSERT INTO nothing VALUES (1)`); return err })
				if err == nil || !strings.Contains(err.Error(), "nothing") {
					t.Errorf("a wrong query: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if st, _ := s.ws.get(`SELECT $1 + 1`); st == nil {
		t.Error("the writer's is not kept")
	}
}

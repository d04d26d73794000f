package store

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

var updateImage = flag.Bool("update-image", false, "make image.db.gz from the migrations")

// contents is all that a database holds: its schema, and the rows of every
// table but the times at which its migrations were applied.
func contents(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var out, tables []string
	rows, err := db.Query(`SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY 1, 2`)
	if err != nil {
		t.Fatal(err)
	}
	err = each(rows, func(s scanner) error {
		var kind, name, table, text string
		if err := s.Scan(&kind, &name, &table, &text); err != nil {
			return err
		}
		if kind == "table" {
			tables = append(tables, name)
		}
		out = append(out, kind+" "+name+" on "+table+": "+text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM "` + table + `"`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s has %d rows", table, n))
	}
	for _, pragma := range []string{"journal_mode", "page_size", "auto_vacuum", "encoding", "user_version", "application_id", "integrity_check"} {
		var v string
		if err := db.QueryRow(`PRAGMA ` + pragma).Scan(&v); err != nil {
			t.Fatal(err)
		}
		out = append(out, pragma+" is "+v)
	}
	return out
}

// byMigrations makes a database by the migrations alone.
func byMigrations(t *testing.T, path string) *Store {
	t.Helper()
	// An empty file is a new database without the image.
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{DSN: path})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The image is what the migrations make, all of them.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	made := byMigrations(t, filepath.Join(dir, "made.db"))
	want := contents(t, made.w)
	if *updateImage {
		if _, err := made.w.Exec(`UPDATE schema_version SET applied_at = 0`); err != nil {
			t.Fatal(err)
		}
		if _, err := made.w.Exec(`VACUUM`); err != nil {
			t.Fatal(err)
		}
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	if *updateImage {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		raw, err := os.ReadFile(filepath.Join(dir, "made.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(raw); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("image.db.gz", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		image = b.Bytes()
	}

	path := filepath.Join(dir, "laid.db")
	if err := lay(path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if got := contents(t, db); !slices.Equal(got, want) {
		t.Errorf("the image is not what the migrations make; run go generate ./internal/store\nimage: %q\nmade:  %q", got, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A database that is there stays, and so does what a lost one left: the log of
// another database must not be played into a new one.
func TestImageReplacesNothing(t *testing.T) {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path+suffix, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := lay(path); err != nil {
			t.Errorf("%q: %v", suffix, err)
		}
		if b, err := os.ReadFile(path + suffix); string(b) != "precious" {
			t.Errorf("%q holds %q, %v", suffix, b, err)
		}
		if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
			t.Errorf("%q: %v", suffix, entries)
		}
	}
}

// A file system without hard links costs the shortcut, not the start.
func TestImageWithoutLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	err := layBy(path, func(string, string) error { return &os.LinkError{Op: "link", Err: unix.EPERM} })
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	sqlite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// QuickCheck looks through the file at path for damage, beside a daemon that uses
// it or without one, and makes no files. The error says what is damaged, why it
// could not be looked through, or that ctx ended first.
func QuickCheck(ctx context.Context, path string) error {
	there := func(suffix string) bool {
		_, err := os.Stat(path + suffix)
		return err == nil
	}
	if !there("-wal") {
		// Nobody has it open. A reader would make the log and its index, and
		// leave them, perhaps in the name of another user.
		err := quickCheck(ctx, path, "mode=ro&immutable=1")
		if err == nil || !there("-wal") {
			return err
		}
		// A daemon has started meanwhile, so what was seen may be half a change.
	}
	if !there("-shm") {
		return ErrNotClosed
	}
	return quickCheck(ctx, path, "mode=ro")
}

// ErrNotClosed says that the database was not closed in order and nobody uses
// it: the next start of the daemon recovers it.
var ErrNotClosed = errors.New("the database was not closed in order, and cannot be looked through before the daemon has started again")

func quickCheck(ctx context.Context, path, how string) (err error) {
	name := (&url.URL{Scheme: "file", Opaque: strings.ReplaceAll(url.PathEscape(path), "%2F", "/")}).String()
	db, err := sql.Open("sqlite", name+"?"+how)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `PRAGMA quick_check(3)`)
	if err != nil {
		return checkFailed(err)
	}
	defer func() { _ = rows.Close() }()
	var wrong []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return fmt.Errorf("check the database: %w", err)
		}
		if line != "ok" {
			wrong = append(wrong, strings.ReplaceAll(line, "\n", ": "))
		}
	}
	if err := rows.Err(); err != nil {
		return checkFailed(err)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the database is damaged: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// checkFailed tells damage that keeps the check itself from working from other
// failures.
func checkFailed(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		if c := e.Code() & 0xff; c == lib.SQLITE_CORRUPT || c == lib.SQLITE_NOTADB {
			return fmt.Errorf("the database is damaged: %w", err)
		}
	}
	return fmt.Errorf("check the database: %w", err)
}

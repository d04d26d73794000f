package store

import (
	"database/sql"
	"strings"
)

// dialect is what differs between engines. All other SQL is common.
type dialect struct {
	name string
	// words replaces ${…} in migrations.
	words *strings.Replacer
	// jsonObject is the aggregate that makes a JSON object of keys and values.
	jsonObject string
	// hasTable counts the tables named $1.
	hasTable string
	// lock makes transactions that run it with the same $1 follow each other;
	// "" where writing transactions do so anyway.
	lock string
	// kind says what an error of the engine means.
	kind func(error) errKind
}

// errKind is what an error of the engine means to the store.
type errKind int

const (
	errOther  errKind = iota
	errUnique         // a UNIQUE constraint refused a row
	errBusy           // somebody else held the database; a new transaction may succeed
	errFull           // no room on the disk
)

// Names of the locks that transactions take where the engine has no single
// writer.
const (
	lockMigration = 1
	lockSessions  = 2
)

func (d *dialect) serialize(tx *txn, lock int) error {
	if d.lock == "" {
		return nil
	}
	_, err := tx.exec(d.lock, lock)
	return err
}

// scanner is a *sql.Row or a *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

var (
	_ scanner = (*sql.Row)(nil)
	_ scanner = (*sql.Rows)(nil)
)

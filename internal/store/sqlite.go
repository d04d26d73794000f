package store

import (
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"

	sqlite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// readConns is how many reads run at once: a page that loads asks for a few
// lists, and more would only fight for the processor.
const readConns = 4

var sqliteDialect = dialect{
	name: "sqlite",
	words: strings.NewReplacer(
		"${id}", "TEXT",
		"${int}", "INTEGER",
		"${blob}", "BLOB",
		"${strict}", " STRICT",
		"${serial}", "INTEGER PRIMARY KEY AUTOINCREMENT",
	),
	jsonObject: "json_group_object",
	hasTable:   `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1`,
	lock:       "", // BEGIN IMMEDIATE
	kind:       sqliteKind,
}

// openSQLite opens both handles of the file at path, which it makes if needed;
// fresh says that it was empty.
func openSQLite(path string, o settings) (w, r *sql.DB, fresh bool, err error) {
	// SQLite gives a new file, its log and its index the umask's permissions
	// unless the file is there already.
	if err := lay(path); err != nil {
		return nil, nil, false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, false, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, false, err
	}
	fresh = info.Size() == 0
	common := url.Values{
		"_busy_timeout": {strconv.FormatInt(o.BusyTimeout.Milliseconds(), 10)},
		"_foreign_keys": {"1"},
		"_defensive":    {"1"},
		"_dqs":          {"0"}, // "x" is a column, never a string
		"_error_rc":     {"1"},
	}
	write := url.Values{
		"_txlock":       {"immediate"},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"}, // what was answered survives a power cut
	}
	read := url.Values{"mode": {"ro"}}
	for k, v := range common {
		write[k], read[k] = v, v
	}
	name := (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String()
	name = strings.ReplaceAll(name, "%2F", "/")
	if w, err = sql.Open("sqlite", name+"?"+write.Encode()); err != nil {
		return nil, nil, false, err
	}
	w.SetMaxOpenConns(1)
	w.SetMaxIdleConns(1)
	if r, err = sql.Open("sqlite", name+"?"+read.Encode()); err != nil {
		return nil, nil, false, errors.Join(err, w.Close())
	}
	r.SetMaxOpenConns(readConns)
	r.SetMaxIdleConns(readConns)
	return w, r, fresh, nil
}

func sqliteKind(err error) errKind {
	if errors.Is(err, syscall.ENOSPC) {
		return errFull
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return errOther
	}
	switch e.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return errUnique
	case lib.SQLITE_FULL, lib.SQLITE_IOERR_SHMSIZE:
		// The shared index is grown by ftruncate and touching: its failure is
		// the disk's in practice.
		return errFull
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return errBusy
	case lib.SQLITE_FULL:
		return errFull
	}
	return errOther
}

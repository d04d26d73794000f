package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/problem"
)

//go:embed migrations/*.sql
var migrations embed.FS

const versionTable = `CREATE TABLE schema_version (
	version    ${int} NOT NULL PRIMARY KEY,
	applied_at ${int} NOT NULL
)${strict};`

// migrate applies the migrations that the database lacks, all in one locked
// transaction, and refuses a database that a newer ptyd has written.
func (s *Store) migrate(ctx context.Context, files fs.FS) error {
	steps, err := loadSteps(files)
	if err != nil {
		return err
	}
	have, err := s.opened(ctx)
	if err != nil {
		return err
	}
	switch {
	case have == len(steps):
		return nil
	case have > len(steps):
		return s.tolerate(ctx, have, len(steps))
	}
	from := 0
	err = s.write(ctx, "migrate", func(tx *txn) error {
		if err := s.d.serialize(tx, lockMigration); err != nil {
			return err
		}
		// Again under the lock: another process may have been faster.
		if from, err = schemaVersion(tx); err != nil {
			return err
		}
		if from > len(steps) {
			var floor int
			if err := tx.row(floorQuery).Scan(&floor); err != nil {
				return err
			}
			if floor > len(steps) {
				return errNewer(from, len(steps))
			}
			return nil
		}
		if from == 0 {
			if _, err := tx.exec(s.d.words.Replace(versionTable)); err != nil {
				return err
			}
		}
		for v := from + 1; v <= len(steps); v++ {
			if _, err := tx.exec(s.d.words.Replace(steps[v-1])); err != nil {
				return fmt.Errorf("migration %d: %w", v, err)
			}
			if _, err := tx.exec(`INSERT INTO schema_version (version, applied_at) VALUES ($1, $2)`, v, micros(time.Now())); err != nil {
				return err
			}
			if v < floorSince {
				continue
			}
			if _, err := tx.exec(`UPDATE schema_version SET floor = $1 WHERE version = $2`, floorOf(steps[v-1]), v); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && from < len(steps) {
		s.log.Info("database schema migrated", zap.Int("from", from), zap.Int("to", len(steps)))
	}
	return err
}

// floorSince is the migration that made the column floor.
const floorSince = 5

// floorQuery finds what a program must know to work with the database: the
// greatest floor of all its migrations.
const floorQuery = `SELECT max(CASE WHEN floor = 0 THEN version ELSE floor END) FROM schema_version`

// tolerate goes on with a database that a newer ptyd has migrated, where its
// migrations left alone what this program knows.
func (s *Store) tolerate(ctx context.Context, have, know int) error {
	var floor int
	if err := s.w.QueryRowContext(ctx, floorQuery).Scan(&floor); err != nil {
		return err
	}
	if floor > know {
		return errNewer(have, know)
	}
	s.log.Warn("a newer ptyd has written the database; what it added is left alone", zap.Int("schema", have), zap.Int("known", know))
	return nil
}

// floorOf reads a migration's first line; 0: it says nothing.
func floorOf(step string) int {
	first, _, _ := strings.Cut(step, "\n")
	text, ok := strings.CutPrefix(first, "-- floor: ")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// Schema tells about versions of the schema.
type Schema struct {
	Known int // what a program knows, or a database has
	// Floor is what another program must know to work with a database that this
	// one has migrated.
	Floor int
}

// KnownSchema is this program's.
func KnownSchema() (Schema, error) {
	steps, err := loadSteps(migrations)
	if err != nil {
		return Schema{}, err
	}
	k := Schema{Known: len(steps)}
	for i, step := range steps {
		floor := floorOf(step)
		if floor == 0 {
			floor = i + 1
		}
		k.Floor = max(k.Floor, floor)
	}
	return k, nil
}

// Schema is the open database's.
func (s *Store) Schema(ctx context.Context) (k Schema, err error) {
	if err = s.r.QueryRowContext(ctx, `SELECT max(version) FROM schema_version`).Scan(&k.Known); err == nil {
		err = s.r.QueryRowContext(ctx, floorQuery).Scan(&k.Floor)
	}
	return k, s.fail("read the schema's version", err)
}

// opened makes the first contact and returns the schema's version, 0 for a new
// database. Switching a new file to the write-ahead log needs it alone for a
// moment and does not wait for other processes that do the same, so this tries
// again.
func (s *Store) opened(ctx context.Context) (int, error) {
	for {
		v, err := s.versionOutside(ctx)
		if err == nil || s.d.kind(err) != errBusy {
			return v, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// versionOutside reads the version without a transaction: one statement on a
// database that is as it should be.
func (s *Store) versionOutside(ctx context.Context) (int, error) {
	v, err := schemaVersionOf(ctx, s.w)
	if err == nil || s.d.kind(err) != errOther {
		return v, err
	}
	var tables int
	if e := s.w.QueryRowContext(ctx, s.d.hasTable, "schema_version").Scan(&tables); e != nil {
		return 0, e
	}
	if tables == 0 {
		return 0, nil
	}
	return 0, err
}

func schemaVersionOf(ctx context.Context, db *sql.DB) (v int, err error) {
	err = db.QueryRowContext(ctx, `SELECT max(version) FROM schema_version`).Scan(&v)
	return v, err
}

func schemaVersion(tx *txn) (int, error) {
	var tables int
	if err := tx.row(tx.d.hasTable, "schema_version").Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	var v int
	err := tx.row(`SELECT max(version) FROM schema_version`).Scan(&v)
	return v, err
}

func errNewer(have, know int) error {
	return problem.New(problem.Unsupported, "the database has schema version %d, this ptyd knows %d: a newer ptyd has written it", have, know).
		WithHint("run that version, or use another state directory")
}

// loadSteps reads the migrations, which are numbered from 1 without gaps.
func loadSteps(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	steps := make([]string, 0, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s: expected number %d", name, i+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, string(text))
	}
	return steps, nil
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/problem"
)

// Options configures a Store.
type Options struct {
	DSN string      // the path of the SQLite file
	Log *zap.Logger // nil logs nothing
	// BusyTimeout is how long a connection waits for another process's write;
	// 0 is DefaultBusyTimeout.
	BusyTimeout time.Duration
}

// DefaultBusyTimeout is for tools and tests: a daemon has its file to itself.
const DefaultBusyTimeout = 10 * time.Second

// settings are the options that make two opened stores of one file differ.
type settings struct{ BusyTimeout time.Duration }

func (o Options) settings() settings {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = DefaultBusyTimeout
	}
	return settings{BusyTimeout: o.BusyTimeout}
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	d     *dialect
	w     *sql.DB     // one connection; its transactions begin immediate
	r     *sql.DB     // cannot write
	ws    *statements // of w
	rs    *statements // of r
	log   *zap.Logger
	batch *batcher

	closeOnce sync.Once
	closeErr  atomic.Pointer[error] // of closing, once that has happened
}

// Open opens the database at o.DSN, which it makes if needed, and brings its
// schema up to date. Several processes may do so at once.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := checkDSN(o.DSN); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	w, r, fresh, err := openSQLite(o.DSN, o.settings())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{d: &sqliteDialect, w: w, r: r, ws: newStatements(w), rs: newStatements(r), log: o.Log}
	// Each connection parses the schema when it is first used, a millisecond
	// that everybody who starts the daemon waits for: both do it at once. In a
	// file that is still empty there is nothing to parse.
	var warm sync.WaitGroup
	if !fresh {
		warm.Go(func() { _, _ = schemaVersionOf(ctx, r) }) // what fails here fails again for whoever reads
	}
	err = s.migrate(ctx, migrations)
	warm.Wait()
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.DSN, errors.Join(err, s.closeHandles()))
	}
	s.batch = newBatcher(s.flush)
	return s, nil
}

func checkDSN(dsn string) error {
	if dsn == "" {
		return errors.New("open store: no path given")
	}
	if scheme, _, ok := strings.Cut(dsn, "://"); ok {
		return fmt.Errorf("open store: %q databases are not supported, give a file's path", scheme)
	}
	return nil
}

// Close commits what is queued and closes the database. Calls that are under
// way finish or fail; it may be called more than once.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.batch.close()
		err := s.closeHandles()
		s.closeErr.Store(&err)
	})
	return s.closeResult()
}

// closeResult is the error of closing, nil while the store is open.
func (s *Store) closeResult() error {
	if err := s.closeErr.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *Store) closeHandles() error {
	// The reader first: the last connection to go folds the log into the file,
	// which only a writer can.
	return errors.Join(s.r.Close(), s.w.Close())
}

// txn is one writing transaction.
type txn struct {
	ctx context.Context
	tx  *sql.Tx
	d   *dialect

	compiled *statements
	worth    []string // queries to compile once the connection is free
}

// stmt is the compiled query for this transaction, nil where there is none.
func (t *txn) stmt(query string) *sql.Stmt {
	st, worth := t.compiled.get(query)
	if worth {
		t.worth = append(t.worth, query)
	}
	if st == nil {
		return nil
	}
	return t.tx.StmtContext(t.ctx, st)
}

func (t *txn) exec(query string, args ...any) (sql.Result, error) {
	if st := t.stmt(query); st != nil {
		return st.ExecContext(t.ctx, args...)
	}
	return t.tx.ExecContext(t.ctx, query, args...)
}

func (t *txn) row(query string, args ...any) *sql.Row {
	if st := t.stmt(query); st != nil {
		return st.QueryRowContext(t.ctx, args...)
	}
	return t.tx.QueryRowContext(t.ctx, query, args...)
}

func (t *txn) rows(query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(t.ctx, query, args...)
}

// tries bounds how often a transaction that lost against another process is
// begun anew.
const tries = 5

// write runs fn in one transaction. ctx bounds the wait for the connection
// only: what has begun is finished, so that nobody is told "cancelled" about
// something that happened. fn may run more than once.
func (s *Store) write(ctx context.Context, what string, fn func(*txn) error) error {
	var worth []string
	defer func() { // after conn is back: w has no other
		for _, q := range worth {
			s.ws.compile(context.WithoutCancel(ctx), q)
		}
	}()
	conn, err := s.w.Conn(ctx)
	if err != nil {
		return s.fail(what, err)
	}
	defer func() { _ = conn.Close() }() // back into the pool; nothing to lose
	ctx = context.WithoutCancel(ctx)
	for try := 1; ; try++ {
		err := s.once(ctx, conn, &worth, fn)
		if err == nil {
			return nil
		}
		if try == tries || s.d.kind(err) != errBusy {
			return s.fail(what, err)
		}
		// Jitter, so that two losers do not meet again.
		time.Sleep(time.Duration(try)*10*time.Millisecond + rand.N(20*time.Millisecond))
	}
}

func (s *Store) once(ctx context.Context, conn *sql.Conn, worth *[]string, fn func(*txn) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned { // fn panicked: an open transaction would block the writer
			_ = tx.Rollback()
		}
	}()
	t := &txn{ctx: ctx, tx: tx, d: s.d, compiled: s.ws}
	err = fn(t)
	returned = true
	*worth = append(*worth, t.worth...)
	if err != nil {
		return joinRollback(err, tx.Rollback())
	}
	return tx.Commit()
}

// joinRollback adds a failed rollback to err. SQLite may have rolled back by
// itself (a full disk does that), which is no failure.
func joinRollback(err, rollback error) error {
	if rollback == nil || errors.Is(rollback, sql.ErrTxDone) || strings.Contains(rollback.Error(), "no transaction is active") {
		return err
	}
	return errors.Join(err, rollback)
}

// fail turns an error of the engine into what callers see.
func (s *Store) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	err = fmt.Errorf("%s: %w", what, err)
	switch s.d.kind(err) {
	case errFull:
		return problem.New(problem.DiskFull, "the disk that holds ptyd's state is full").
			WithHint("free some space; running sessions go on").Because(err)
	case errBusy:
		return problem.New(problem.Unavailable, "the database is busy").Because(err)
	}
	if errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "sql: database is closed") {
		return problem.New(problem.Unavailable, "the database is closed").Because(err)
	}
	return err
}

// query runs fn for each row of a read.
func (s *Store) query(ctx context.Context, what, query string, args []any, fn func(scanner) error) error {
	rows, err := s.r.QueryContext(ctx, query, args...)
	if err != nil {
		return s.fail(what, err)
	}
	return s.fail(what, each(rows, fn))
}

// each runs fn for each row and closes rows.
func each(rows *sql.Rows, fn func(scanner) error) error {
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

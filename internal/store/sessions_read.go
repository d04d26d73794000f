package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ptyd/ptyd/internal/ptymgr"
)

// defaultPage is the length of a page when the filter names none.
const defaultPage = 100

// sessionQuery selects what sessionDest takes. Labels come in the same
// statement: a second one could see another moment.
func (d *dialect) sessionQuery(where string) string {
	return `SELECT s.id, s.name, s.owner, s.state, s.argv, s.cwd, s.env, s.cols, s.rows, s.pid, s.exit_code,
		s.signal, s.created_at, s.started_at, s.ended_at, s.epoch, s.final_offset, s.error, s.memory_limit, s.pids_limit,
		s.birth, s.login_shell, s.output_limit, s.no_checkpoint, s.rerun_of,
		(SELECT ` + d.jsonObject + `(l.key, l.value) FROM session_labels l WHERE l.session_id = s.id)
		FROM sessions s WHERE ` + where
}

// sessionDest is where a row of sessionQuery is scanned to.
type sessionDest struct {
	r              ptymgr.Record
	argv, env      list
	exit           sql.NullInt64
	created        int64
	started, ended sql.NullInt64
	epoch, offset  int64
	labels         labels
}

func scanSession(row scanner) (ptymgr.Record, error) {
	var d sessionDest
	err := row.Scan(&d.r.ID, &d.r.Name, &d.r.Owner, &d.r.State, &d.argv, &d.r.Cwd, &d.env, &d.r.Cols, &d.r.Rows,
		&d.r.PID, &d.exit, &d.r.Signal, &d.created, &d.started, &d.ended, &d.epoch, &d.offset, &d.r.Error, &d.r.MemoryLimit, &d.r.PidsLimit,
		&d.r.Birth, &d.r.Shell, &d.r.OutputLimit, &d.r.NoCheckpoint, &d.r.RerunOf, &d.labels)
	if err != nil {
		return ptymgr.Record{}, err
	}
	d.r.Argv, d.r.Env, d.r.Labels = d.argv, d.env, d.labels
	d.r.ExitCode = intPtr(d.exit)
	d.r.CreatedAt, d.r.StartedAt, d.r.EndedAt = fromMicros(d.created), timeOrZero(d.started), timeOrZero(d.ended)
	d.r.Epoch, d.r.FinalOffset = uint64(d.epoch), uint64(d.offset)
	return d.r, nil
}

// sessionIn reads a session inside a transaction.
func sessionIn(tx *txn, id string) (ptymgr.Record, error) {
	r, err := scanSession(tx.row(tx.d.sessionQuery(`s.id = $1`), id))
	return r, orNotFound(err, noSession(id))
}

// GetSession implements ptymgr.Store.
func (s *Store) GetSession(ctx context.Context, id string) (ptymgr.Record, error) {
	r, err := scanSession(s.rs.row(ctx, s.d.sessionQuery(`s.id = $1`), id))
	return r, s.fail("read a session", orNotFound(err, noSession(id)))
}

// FindByName implements ptymgr.Store.
func (s *Store) FindByName(ctx context.Context, owner, name string) (ptymgr.Record, error) {
	r, err := scanSession(s.rs.row(ctx, s.d.sessionQuery(`s.name = $1 AND ($2 = '' OR s.owner = $2)
		ORDER BY CASE WHEN s.state IN ('starting', 'running') THEN 0 ELSE 1 END, s.id DESC LIMIT 1`), name, owner))
	return r, s.fail("find a session", orNotFound(err, noSession(name)))
}

// ListSessions implements ptymgr.Store.
func (s *Store) ListSessions(ctx context.Context, f ptymgr.Filter) (rows []ptymgr.Record, next string, err error) {
	if f.Limit <= 0 {
		f.Limit = defaultPage
	}
	where, args := sessionFilter(f)
	// One more than asked for tells whether there is a next page.
	args = append(args, f.Limit+1)
	query := s.d.sessionQuery(where + fmt.Sprintf(` ORDER BY s.id LIMIT $%d`, len(args)))
	rows = []ptymgr.Record{}
	err = s.query(ctx, "list sessions", query, args, func(row scanner) error {
		r, err := scanSession(row)
		rows = append(rows, r)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(rows) > f.Limit {
		rows = rows[:f.Limit]
		next = rows[f.Limit-1].ID
	}
	return rows, next, nil
}

// sessionFilter makes the condition of f and its arguments.
func sessionFilter(f ptymgr.Filter) (string, []any) {
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	terms := []string{`s.id > ` + arg(f.After)}
	if f.Owner != "" {
		terms = append(terms, `s.owner = `+arg(f.Owner))
	}
	if f.Name != "" {
		terms = append(terms, `s.name = `+arg(f.Name))
	}
	if len(f.States) > 0 {
		states := make([]string, len(f.States))
		for i, state := range f.States {
			states[i] = arg(string(state))
		}
		terms = append(terms, `s.state IN (`+strings.Join(states, ", ")+`)`)
	}
	for _, k := range slices.Sorted(maps.Keys(f.Labels)) {
		terms = append(terms, `EXISTS (SELECT 1 FROM session_labels l WHERE l.session_id = s.id AND l.key = `+
			arg(k)+` AND l.value = `+arg(f.Labels[k])+`)`)
	}
	return strings.Join(terms, " AND "), args
}

// EndedBefore implements ptymgr.Store.
func (s *Store) EndedBefore(ctx context.Context, t time.Time, limit int) ([]string, error) {
	var ids []string
	err := s.query(ctx, "find ended sessions", `SELECT id FROM sessions
		WHERE ended_at IS NOT NULL AND ended_at < $1 ORDER BY ended_at, id LIMIT $2`,
		[]any{micros(t), limit}, scanID(&ids))
	return ids, err
}

// TrimEnded implements ptymgr.Store. Who is over the bound is looked at first,
// without the writer: nearly always nobody is.
func (s *Store) TrimEnded(ctx context.Context, keep, limit int) ([]ptymgr.Removed, error) {
	var over []string
	err := s.query(ctx, "count ended sessions", `SELECT owner FROM sessions WHERE ended_at IS NOT NULL
		GROUP BY owner HAVING count(*) > $1`, []any{keep}, scanID(&over))
	if err != nil || len(over) == 0 {
		return nil, err
	}
	var gone []ptymgr.Removed
	err = s.write(ctx, "remove the oldest ended sessions", func(tx *txn) error {
		gone = nil
		rows, err := tx.rows(`DELETE FROM sessions WHERE ended_at IS NOT NULL AND id IN (
			SELECT id FROM (
				SELECT id, row_number() OVER (PARTITION BY owner ORDER BY ended_at DESC, id DESC) AS place
				FROM sessions WHERE ended_at IS NOT NULL) AS ended
			WHERE place > $1 ORDER BY place DESC LIMIT $2) RETURNING id, owner`, keep, limit)
		if err != nil {
			return err
		}
		return each(rows, func(row scanner) error {
			var r ptymgr.Removed
			err := row.Scan(&r.ID, &r.Owner)
			gone = append(gone, r)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

var _ ptymgr.Store = (*Store)(nil)

// living is the predicate of sessions that have not ended. The partial indexes
// are used where a query repeats it word for word.
const living = `state IN ('starting', 'running')`

// CreateSession implements ptymgr.Store.
func (s *Store) CreateSession(ctx context.Context, r ptymgr.Record, key, digest string, limits ptymgr.Limits) (row ptymgr.Record, existing bool, err error) {
	if r.ID == "" || r.Owner == "" {
		return ptymgr.Record{}, false, errors.New("create a session: no id or no owner")
	}
	argv, err := list(r.Argv).text()
	if err != nil {
		return ptymgr.Record{}, false, fmt.Errorf("create a session: %w", err)
	}
	env, err := list(r.Env).text()
	if err != nil {
		return ptymgr.Record{}, false, fmt.Errorf("create a session: %w", err)
	}
	err = s.write(ctx, "create a session", func(tx *txn) error {
		row, existing = ptymgr.Record{}, false
		if err := s.d.serialize(tx, lockSessions); err != nil {
			return err
		}
		if key != "" {
			var err error
			row, existing, err = takeKey(tx, r, key, digest)
			if err != nil || existing {
				return err
			}
		}
		if err := checkLimits(tx, r.Owner, limits); err != nil {
			return err
		}
		_, err := tx.exec(`INSERT INTO sessions (id, owner, name, state, argv, cwd, env, cols, rows, created_at, epoch,
				memory_limit, pids_limit, login_shell, output_limit, no_checkpoint, rerun_of)
			VALUES ($1, $2, $3, 'starting', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
			r.ID, r.Owner, r.Name, argv, r.Cwd, env, r.Cols, r.Rows, micros(r.CreatedAt), int64(r.Epoch),
			r.MemoryLimit, r.PidsLimit, boolInt(r.Shell), r.OutputLimit, boolInt(r.NoCheckpoint), r.RerunOf)
		if err != nil {
			return s.taken(err, "a living session is called %q", r.Name)
		}
		if err := insertLabels(tx, r.ID, r.Labels); err != nil {
			return err
		}
		row, err = sessionIn(tx, r.ID)
		return err
	})
	if err != nil {
		return ptymgr.Record{}, false, err
	}
	return row, existing, nil
}

// takeKey claims (owner, key) for r, or finds the session that had it before.
func takeKey(tx *txn, r ptymgr.Record, key, digest string) (row ptymgr.Record, existing bool, err error) {
	mine, err := tx.changed(`INSERT INTO idempotency (owner, key, digest, session_id, created_at)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner, key) DO NOTHING RETURNING session_id`,
		r.Owner, key, digest, r.ID, micros(r.CreatedAt))
	if err != nil || mine {
		return ptymgr.Record{}, false, err
	}
	var id, seen string
	if err := tx.row(`SELECT session_id, digest FROM idempotency WHERE owner = $1 AND key = $2`, r.Owner, key).Scan(&id, &seen); err != nil {
		return ptymgr.Record{}, false, err
	}
	if seen != digest {
		return ptymgr.Record{}, false, problem.New(problem.IdempotencyReuse, "this idempotency key came with another request before")
	}
	row, err = sessionIn(tx, id)
	if problem.Is(err, problem.NotFound) {
		return ptymgr.Record{}, false, problem.New(problem.Gone, "the session %s, which this idempotency key made, was removed", id)
	}
	return row, err == nil, err
}

// checkLimits counts in the transaction that will insert, so that no number of
// parallel calls gets past a limit. 0 is no limit.
func checkLimits(tx *txn, owner string, l ptymgr.Limits) error {
	var own, all int
	if err := tx.row(`SELECT
		(SELECT count(*) FROM sessions WHERE `+living+` AND owner = $1),
		(SELECT count(*) FROM sessions WHERE `+living+`)`, owner).Scan(&own, &all); err != nil {
		return err
	}
	switch {
	case l.PerOwner > 0 && own >= l.PerOwner:
		p := problem.New(problem.LimitReached, "%d of your sessions are living, and that is the limit", own)
		p.Field = "owner"
		return p.WithHint("close one, or raise the limit per owner in the configuration")
	case l.Total > 0 && all >= l.Total:
		p := problem.New(problem.LimitReached, "%d sessions are living, and that is the limit", all)
		p.Field = "sessions"
		return p.WithHint("close one, or raise the limit of sessions in the configuration")
	}
	return nil
}

func insertLabels(tx *txn, id string, labels map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if _, err := tx.exec(`INSERT INTO session_labels (session_id, key, value) VALUES ($1, $2, $3)`, id, k, labels[k]); err != nil {
			return err
		}
	}
	return nil
}

// MarkRunning implements ptymgr.Store. A session that has ended meanwhile stays
// ended, but its pid, start and birth are facts and are kept; the answer then is
// problem.SessionEnded.
func (s *Store) MarkRunning(ctx context.Context, id string, pid int, started time.Time, birth string) error {
	var state ptymgr.State
	err := s.write(ctx, "mark a session running", func(tx *txn) error {
		return orNotFound(tx.row(`UPDATE sessions SET pid = $2, started_at = coalesce(started_at, $3), birth = $4,
			state = CASE state WHEN 'starting' THEN 'running' ELSE state END
			WHERE id = $1 RETURNING state`, id, pid, microsOrNull(started), birth).Scan(&state), noSession(id))
	})
	if err == nil && state.Ended() {
		err = problem.New(problem.SessionEnded, "the session %s has ended", id)
	}
	return err
}

// MarkEnded implements ptymgr.Store. The predicate on the state makes the end
// one, however many call.
func (s *Store) MarkEnded(ctx context.Context, id string, state ptymgr.State, exitCode *int, signal string, ended time.Time, finalOffset uint64, errText string) (first bool, err error) {
	if !state.Ended() {
		return false, fmt.Errorf("mark a session ended: %q is no end", state)
	}
	err = s.write(ctx, "mark a session ended", func(tx *txn) error {
		var err error
		first, err = tx.changed(`UPDATE sessions SET state = $2, exit_code = $3, signal = $4, ended_at = $5,
			final_offset = $6, error = $7 WHERE id = $1 AND `+living+` RETURNING id`,
			id, state, nullInt(exitCode), signal, micros(ended), int64(finalOffset), errText)
		if err != nil || first {
			return err
		}
		return sessionThere(tx, id)
	})
	return first, err
}

// RenameSession implements ptymgr.Store.
func (s *Store) RenameSession(ctx context.Context, id, name string) error {
	return s.updateSession(ctx, "rename a session", id, func(tx *txn) (bool, error) {
		found, err := tx.changed(`UPDATE sessions SET name = $2 WHERE id = $1 RETURNING id`, id, name)
		return found, s.taken(err, "a living session is called %q", name)
	})
}

// ResizeSession implements ptymgr.Store.
func (s *Store) ResizeSession(ctx context.Context, id string, cols, rows uint16) error {
	return s.updateSession(ctx, "resize a session", id, func(tx *txn) (bool, error) {
		return tx.changed(`UPDATE sessions SET cols = $2, rows = $3 WHERE id = $1 RETURNING id`, id, cols, rows)
	})
}

// SetLabels implements ptymgr.Store.
func (s *Store) SetLabels(ctx context.Context, id string, labels map[string]string) error {
	return s.updateSession(ctx, "label a session", id, func(tx *txn) (bool, error) {
		// The session's row is locked first, so that two replacements do not mix.
		found, err := tx.changed(`UPDATE sessions SET id = id WHERE id = $1 RETURNING id`, id)
		if err != nil || !found {
			return found, err
		}
		if _, err := tx.exec(`DELETE FROM session_labels WHERE session_id = $1`, id); err != nil {
			return true, err
		}
		return true, insertLabels(tx, id, labels)
	})
}

func (s *Store) updateSession(ctx context.Context, what, id string, update func(*txn) (bool, error)) error {
	return s.write(ctx, what, func(tx *txn) error {
		found, err := update(tx)
		if err == nil && !found {
			err = noSession(id)
		}
		return err
	})
}

// DeleteSession implements ptymgr.Store. The session's idempotency key stays
// behind, unless the session never started: then nothing was made, its maker
// was told so, and the same request may be tried again.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	return s.write(ctx, "remove a session", func(tx *txn) error {
		if _, err := tx.exec(`DELETE FROM idempotency WHERE session_id = $1
			AND EXISTS (SELECT 1 FROM sessions WHERE id = $1 AND state = 'exited' AND started_at IS NULL)`, id); err != nil {
			return err
		}
		gone, err := tx.changed(`DELETE FROM sessions WHERE id = $1 AND NOT (`+living+`) RETURNING id`, id)
		if err != nil || gone {
			return err
		}
		if err := sessionThere(tx, id); err != nil {
			return err
		}
		return problem.New(problem.SessionRunning, "the session %s has not ended", id).WithHint("close it first")
	})
}

// loseText is what people read about a session whose end nobody saw.
const loseText = "the daemon stopped while this session was living, and its end was not seen"

// LoseUnfinished implements ptymgr.Store.
func (s *Store) LoseUnfinished(ctx context.Context, except []string, at time.Time) ([]string, error) {
	var lost []string
	err := s.write(ctx, "mark sessions lost", func(tx *txn) error {
		lost = nil
		keep := make(map[string]struct{}, len(except))
		for _, id := range except {
			keep[id] = struct{}{}
		}
		rows, err := tx.rows(`SELECT id FROM sessions WHERE ` + living + ` ORDER BY id`)
		if err != nil {
			return err
		}
		var ids []string
		if err := each(rows, scanID(&ids)); err != nil {
			return err
		}
		for _, id := range ids {
			if _, kept := keep[id]; kept {
				continue
			}
			// One by one: a list of any length has no place in a statement,
			// and this runs once at the start.
			changed, err := tx.changed(`UPDATE sessions SET state = 'lost', ended_at = $2, error = $3
				WHERE id = $1 AND `+living+` RETURNING id`, id, micros(at), loseText)
			if err != nil {
				return err
			}
			if changed {
				lost = append(lost, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// sessionThere is nil when the session exists.
func sessionThere(tx *txn, id string) error {
	var found string
	return orNotFound(tx.row(`SELECT id FROM sessions WHERE id = $1`, id).Scan(&found), noSession(id))
}

func noSession(ref string) *problem.Error {
	return problem.New(problem.NotFound, "there is no session %q", ref)
}

func scanID(ids *[]string) func(scanner) error {
	return func(row scanner) error {
		var id string
		if err := row.Scan(&id); err != nil {
			return err
		}
		*ids = append(*ids, id)
		return nil
	}
}

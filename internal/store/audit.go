package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// AuditEntry is one line of the audit log: who did what to what.
type AuditEntry struct {
	ID        int64 // ascending in the order of commits; set by the store
	At        time.Time
	Principal string // the user's id, or what was claimed by somebody unknown
	Via       string // how they came in
	Action    string
	Target    string
	Detail    json.RawMessage // an object; nil is {}
}

// AppendAudit adds e to the log and waits until it is committed, in a group
// with others. Entries are never changed, and leave only by PruneAudit.
func (s *Store) AppendAudit(ctx context.Context, e AuditEntry) error {
	if e.Detail == nil {
		e.Detail = json.RawMessage(`{}`)
	}
	if !json.Valid(e.Detail) {
		return fmt.Errorf("append to the audit log: the detail of %q is no JSON", e.Action)
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	return s.batch.commit(ctx, func(tx *txn) error {
		_, err := tx.exec(`INSERT INTO audit (at, principal, via, action, target, detail)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			micros(e.At), e.Principal, e.Via, e.Action, e.Target, string(e.Detail))
		return err
	})
}

// ListAudit returns at most limit entries with ids above after, oldest first.
func (s *Store) ListAudit(ctx context.Context, after int64, limit int) ([]AuditEntry, error) {
	entries := []AuditEntry{}
	err := s.query(ctx, "list the audit log", `SELECT id, at, principal, via, action, target, detail
		FROM audit WHERE id > $1 ORDER BY id LIMIT $2`, []any{after, limit}, func(row scanner) error {
		var e AuditEntry
		var at int64
		var detail string
		if err := row.Scan(&e.ID, &at, &e.Principal, &e.Via, &e.Action, &e.Target, &detail); err != nil {
			return err
		}
		e.At, e.Detail = fromMicros(at), json.RawMessage(detail)
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// PruneAudit removes the entries from before a time (none when it is zero) and
// the oldest beyond maxRows (none when it is 0), and returns how many went.
func (s *Store) PruneAudit(ctx context.Context, before time.Time, maxRows int) (int64, error) {
	var gone int64
	if !before.IsZero() {
		n, err := s.deleteChunks(ctx, "prune the audit log by age",
			`DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY id LIMIT $2)`, micros(before))
		gone += n
		if err != nil {
			return gone, err
		}
	}
	if maxRows > 0 {
		n, err := s.deleteChunks(ctx, "prune the audit log by count",
			`DELETE FROM audit WHERE id IN (SELECT id FROM audit
				WHERE id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET $1) ORDER BY id LIMIT $2)`, maxRows)
		gone += n
		if err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// chunk bounds the rows that one pruning transaction deletes, so that it holds
// up no session.
const chunk = 1000

// deleteChunks repeats query, whose $2 is the chunk's size, until it deletes
// nothing more.
func (s *Store) deleteChunks(ctx context.Context, what, query string, arg any) (int64, error) {
	var gone int64
	for {
		var n int64
		err := s.write(ctx, what, func(tx *txn) error {
			res, err := tx.exec(query, arg, chunk)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})
		gone += n
		if err != nil || n < chunk {
			return gone, err
		}
	}
}

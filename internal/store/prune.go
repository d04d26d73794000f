package store

import (
	"context"
	"errors"
	"time"
)

// How long what is used up is kept.
const (
	// idempotencyAge is how long a repeated request is recognised.
	idempotencyAge = 24 * time.Hour
	// deadAge is how long dead credentials can still be listed.
	deadAge = 30 * 24 * time.Hour
)

// Prune removes idempotency keys older than a day, and login links, web logins
// and tokens that have been dead for a month.
func (s *Store) Prune(ctx context.Context, now time.Time) error {
	dead := micros(now.Add(-deadAge))
	var errs []error
	for _, p := range []struct {
		what, query string
		before      int64
	}{
		{"prune idempotency keys", `DELETE FROM idempotency WHERE session_id IN
			(SELECT session_id FROM idempotency WHERE created_at < $1 LIMIT $2)`, micros(now.Add(-idempotencyAge))},
		{"prune login links", `DELETE FROM login_links WHERE id IN
			(SELECT id FROM login_links WHERE expires_at < $1 LIMIT $2)`, dead},
		{"prune web logins", `DELETE FROM web_logins WHERE id IN
			(SELECT id FROM web_logins WHERE expires_at < $1 OR revoked_at < $1 LIMIT $2)`, dead},
		{"prune tokens", `DELETE FROM tokens WHERE id IN
			(SELECT id FROM tokens WHERE expires_at < $1 OR revoked_at < $1 LIMIT $2)`, dead},
	} {
		_, err := s.deleteChunks(ctx, p.what, p.query, p.before)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

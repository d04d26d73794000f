package store

import (
	"context"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// InsertWeb implements auth.Store. The predicate on the user closes the window
// between checking a password and writing the login: whoever changes the
// password or disables the user in between wins.
func (s *Store) InsertWeb(ctx context.Context, w auth.Web, passwordHash string) error {
	return s.write(ctx, "add a login", func(tx *txn) error {
		found, err := tx.changed(`INSERT INTO web_logins (id, user_id, role, cookie_hash, key_hash, created_at, expires_at)
			SELECT $1, u.id, $3, $4, $5, $6, $7 FROM users u
			WHERE u.id = $2 AND u.disabled = 0 AND u.password_hash <> '' AND u.password_hash = $8 RETURNING id`,
			w.ID, w.UserID, w.Role, w.CookieHash, w.KeyHash, micros(w.CreatedAt), micros(w.ExpiresAt), passwordHash)
		if err == nil && !found {
			err = problem.New(problem.NotFound, "there is no such user")
		}
		return err
	})
}

const webColumns = `NULL, c.key_hash`

// WebByHash implements auth.Store.
func (s *Store) WebByHash(ctx context.Context, cookieHash []byte) (auth.Credential, error) {
	return s.credential(ctx, webColumns, `web_logins`, `c.cookie_hash = $1`, cookieHash)
}

// WebByID implements auth.Store.
func (s *Store) WebByID(ctx context.Context, id string) (auth.Credential, error) {
	return s.credential(ctx, webColumns, `web_logins`, `c.id = $1`, id)
}

// RevokeWeb implements auth.Store.
func (s *Store) RevokeWeb(ctx context.Context, id string, at time.Time) (first bool, err error) {
	err = s.write(ctx, "revoke a login", func(tx *txn) error {
		var err error
		first, err = tx.changed(`UPDATE web_logins SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id`, id, micros(at))
		if err != nil || first {
			return err
		}
		var found string
		return orNotFound(tx.row(`SELECT id FROM web_logins WHERE id = $1`, id).Scan(&found),
			problem.New(problem.NotFound, "there is no such credential"))
	})
	return first, err
}

package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// InsertLink implements auth.Store.
func (s *Store) InsertLink(ctx context.Context, l auth.Link, hash []byte) error {
	return s.write(ctx, "add a login link", func(tx *txn) error {
		if err := holdOrigin(tx, l.Origin); err != nil {
			return err
		}
		_, err := tx.exec(`INSERT INTO login_links (id, user_id, role, hash, created_by, created_at, expires_at, until, origin)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			l.ID, l.UserID, l.Role, hash, l.CreatedBy, micros(l.CreatedAt), micros(l.ExpiresAt), microsOrNull(l.Until), l.Origin)
		return err
	})
}

// RedeemLink implements auth.Store. One statement decides who wins; the login
// is written in the same transaction, so that a crash leaves the link unused or
// the login made.
func (s *Store) RedeemLink(ctx context.Context, hash []byte, now time.Time, w auth.Web) (auth.Credential, error) {
	err := s.write(ctx, "redeem a login link", func(tx *txn) error {
		var user, role, origin string
		var until sql.NullInt64
		err := tx.row(`UPDATE login_links SET used_at = $2, web_login = $3
			WHERE hash = $1 AND used_at IS NULL AND expires_at > $2
				AND user_id IN (SELECT id FROM users WHERE disabled = 0)
			RETURNING user_id, role, until, origin`, hash, micros(now), w.ID).Scan(&user, &role, &until, &origin)
		if err != nil {
			return orNotFound(err, problem.New(problem.NotFound, "there is no such login link"))
		}
		if err := holdOrigin(tx, origin); err != nil {
			return err
		}
		expires := micros(w.ExpiresAt)
		if until.Valid {
			expires = min(expires, until.Int64)
		}
		_, err = tx.exec(`INSERT INTO web_logins (id, user_id, role, cookie_hash, key_hash, created_at, expires_at, origin)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			w.ID, user, role, w.CookieHash, w.KeyHash, micros(w.CreatedAt), expires, origin)
		return err
	})
	if err != nil {
		return auth.Credential{}, err
	}
	return s.WebByID(ctx, w.ID)
}

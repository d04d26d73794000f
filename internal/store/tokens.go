package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// orNotFound replaces the absence of a row by p.
func orNotFound(err error, p *problem.Error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return p
	}
	return err
}

// InsertToken implements auth.Store.
func (s *Store) InsertToken(ctx context.Context, t auth.Token, hash []byte) error {
	return s.write(ctx, "add a token", func(tx *txn) error {
		// An expired token gives its name back.
		if _, err := tx.exec(`UPDATE tokens SET revoked_at = $3
			WHERE user_id = $1 AND name = $2 AND expires_at <= $3 AND revoked_at IS NULL`,
			t.UserID, t.Name, micros(t.CreatedAt)); err != nil {
			return err
		}
		if err := holdOrigin(tx, t.Origin); err != nil {
			return err
		}
		_, err := tx.exec(`INSERT INTO tokens (id, user_id, name, role, hash, created_at, expires_at, origin)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			t.ID, t.UserID, t.Name, t.Role, hash, micros(t.CreatedAt), micros(t.ExpiresAt), t.Origin)
		return s.taken(err, "%s has a token %q already", t.UserName, t.Name)
	})
}

// holdOrigin refuses what a revoked token would make, and keeps the token from
// being revoked until the transaction has ended.
func holdOrigin(tx *txn, id string) error {
	if id == "" {
		return nil
	}
	valid, err := tx.changed(`UPDATE tokens SET id = id WHERE id = $1 AND revoked_at IS NULL RETURNING id`, id)
	if err == nil && !valid {
		err = problem.New(problem.NotFound, "the token it was to be made with is no longer valid")
	}
	return err
}

// credential reads a token or a web login with its user; the table must be
// named c. Of what is NULL here, the other kind has it.
func (s *Store) credential(ctx context.Context, columns, table, where string, arg any) (auth.Credential, error) {
	var c auth.Credential
	var d accountDest
	var expires int64
	var revoked, used sql.NullInt64
	dest := append([]any{&c.ID, &c.Role, &c.Origin, &expires, &revoked, &used, &c.KeyHash}, d.dest()...)
	err := s.rs.row(ctx, `SELECT c.id, c.role, c.origin, c.expires_at, c.revoked_at, `+columns+`, `+accountColumns+`
		FROM `+table+` c JOIN users u ON u.id = c.user_id WHERE `+where, arg).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return auth.Credential{}, problem.New(problem.NotFound, "there is no such credential")
	}
	if err != nil {
		return auth.Credential{}, s.fail("read a credential", err)
	}
	c.ExpiresAt, c.RevokedAt, c.LastUsedAt = fromMicros(expires), timePtr(revoked), timePtr(used)
	c.Account = d.account()
	return c, nil
}

const tokenColumns = `c.last_used_at, NULL`

// TokenByHash implements auth.Store.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (auth.Credential, error) {
	return s.credential(ctx, tokenColumns, `tokens`, `c.hash = $1`, hash)
}

// TokenByID implements auth.Store.
func (s *Store) TokenByID(ctx context.Context, id string) (auth.Credential, error) {
	return s.credential(ctx, tokenColumns, `tokens`, `c.id = $1`, id)
}

// ListTokens implements auth.Store.
func (s *Store) ListTokens(ctx context.Context, userID string) ([]auth.Token, error) {
	tokens := []auth.Token{}
	err := s.query(ctx, "list tokens", `SELECT t.id, t.name, t.user_id, u.name, t.role,
			t.created_at, t.expires_at, t.revoked_at, t.last_used_at
		FROM tokens t JOIN users u ON u.id = t.user_id
		WHERE $1 = '' OR t.user_id = $1 ORDER BY t.id`, []any{userID}, func(row scanner) error {
		var t auth.Token
		var created, expires int64
		var revoked, used sql.NullInt64
		if err := row.Scan(&t.ID, &t.Name, &t.UserID, &t.UserName, &t.Role, &created, &expires, &revoked, &used); err != nil {
			return err
		}
		t.CreatedAt, t.ExpiresAt = fromMicros(created), fromMicros(expires)
		t.RevokedAt, t.LastUsedAt = timePtr(revoked), timePtr(used)
		tokens = append(tokens, t)
		return nil
	})
	return tokens, err
}

// RevokeToken implements auth.Store.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time) (ended []string, err error) {
	// A token, and the tokens made with it, and with those, whatever their state.
	const made = `WITH RECURSIVE made(id) AS (SELECT id FROM tokens WHERE id = $1
		UNION SELECT t.id FROM tokens t JOIN made m ON t.origin = m.id) `
	err = s.write(ctx, "revoke a token", func(tx *txn) error {
		ended = nil
		var found string
		if err := tx.row(`SELECT id FROM tokens WHERE id = $1`, id).Scan(&found); err != nil {
			return orNotFound(err, problem.New(problem.NotFound, "there is no such credential"))
		}
		for _, update := range []string{
			`UPDATE tokens SET revoked_at = $2 WHERE id IN (SELECT id FROM made) AND revoked_at IS NULL RETURNING id`,
			`UPDATE web_logins SET revoked_at = $2 WHERE origin IN (SELECT id FROM made) AND revoked_at IS NULL RETURNING id`,
		} {
			rows, err := tx.rows(made+update, id, micros(at))
			if err != nil {
				return err
			}
			if err := each(rows, scanID(&ended)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// TouchToken implements auth.Store.
func (s *Store) TouchToken(id string, at time.Time) {
	// Losing one is harmless: the next use a minute later writes again.
	_ = s.batch.add(job{key: "touch " + id, run: func(tx *txn) error {
		_, err := tx.exec(`UPDATE tokens SET last_used_at = $2
			WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`, id, micros(at))
		return err
	}})
}

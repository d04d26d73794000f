package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

var _ auth.Store = (*Store)(nil)

// accountColumns are those of scanAccount; the table users must be named u.
const accountColumns = `u.id, u.name, u.uid, u.role, u.disabled, u.password_hash, u.created_at,
	(SELECT string_agg(g.name, ',' ORDER BY g.name) FROM user_groups g
		JOIN group_members m ON m.group_id = g.id WHERE m.user_id = u.id)`

// accountDest is where accountColumns are scanned to.
type accountDest struct {
	a       auth.Account
	uid     sql.NullInt64
	created int64
	groups  groupNames
}

func (d *accountDest) dest() []any {
	return []any{&d.a.ID, &d.a.Name, &d.uid, &d.a.Role, &d.a.Disabled, &d.a.PasswordHash, &d.created, &d.groups}
}

func (d *accountDest) account() auth.Account {
	d.a.UID = intPtr(d.uid)
	d.a.CreatedAt = fromMicros(d.created)
	d.a.HasPassword = d.a.PasswordHash != ""
	d.a.Groups = d.groups
	return d.a
}

func (s *Store) account(ctx context.Context, where string, arg any) (auth.Account, error) {
	var d accountDest
	err := s.rs.row(ctx, `SELECT `+accountColumns+` FROM users u WHERE `+where, arg).Scan(d.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return auth.Account{}, problem.New(problem.NotFound, "there is no such user")
	}
	if err != nil {
		return auth.Account{}, s.fail("read a user", err)
	}
	return d.account(), nil
}

// AccountByID implements auth.Store.
func (s *Store) AccountByID(ctx context.Context, id string) (auth.Account, error) {
	return s.account(ctx, `u.id = $1`, id)
}

// AccountByName implements auth.Store.
func (s *Store) AccountByName(ctx context.Context, name string) (auth.Account, error) {
	return s.account(ctx, `lower(u.name) = lower($1)`, name)
}

// AccountByUID implements auth.Store.
func (s *Store) AccountByUID(ctx context.Context, uid int) (auth.Account, error) {
	return s.account(ctx, `u.uid = $1`, uid)
}

// ListUsers implements auth.Store.
func (s *Store) ListUsers(ctx context.Context) ([]auth.User, error) {
	users := []auth.User{}
	err := s.query(ctx, "list users", `SELECT `+accountColumns+` FROM users u ORDER BY u.id`, nil, func(row scanner) error {
		var d accountDest
		if err := row.Scan(d.dest()...); err != nil {
			return err
		}
		users = append(users, d.account().User)
		return nil
	})
	return users, err
}

const insertUser = `INSERT INTO users (id, name, uid, role, disabled, password_hash, created_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7)`

// EnsureUser implements auth.Store.
func (s *Store) EnsureUser(ctx context.Context, u auth.User) (auth.User, error) {
	if u.UID == nil {
		return auth.User{}, errors.New("ensure a user: no uid")
	}
	err := s.write(ctx, "ensure a user", func(tx *txn) error {
		_, err := tx.exec(insertUser+` ON CONFLICT DO NOTHING`,
			u.ID, u.Name, nullInt(u.UID), u.Role, boolInt(u.Disabled), "", micros(u.CreatedAt))
		return err
	})
	if err != nil {
		return auth.User{}, err
	}
	a, err := s.AccountByUID(ctx, *u.UID)
	return a.User, err
}

// InsertUser implements auth.Store.
func (s *Store) InsertUser(ctx context.Context, u auth.User, passwordHash string) error {
	return s.write(ctx, "add a user", func(tx *txn) error {
		if u.UID != nil {
			var n int
			if err := tx.row(`SELECT count(*) FROM users WHERE uid = $1`, *u.UID).Scan(&n); err != nil {
				return err
			}
			if n > 0 {
				p := problem.New(problem.Conflict, "another user has the uid %d", *u.UID)
				p.Field = "uid"
				return p
			}
		}
		_, err := tx.exec(insertUser, u.ID, u.Name, nullInt(u.UID), u.Role, boolInt(u.Disabled), passwordHash, micros(u.CreatedAt))
		return s.taken(err, "another user is called %q", u.Name)
	})
}

// taken turns the refusal of a UNIQUE index into NameTaken.
func (s *Store) taken(err error, format string, args ...any) error {
	if err != nil && s.d.kind(err) == errUnique {
		p := problem.New(problem.NameTaken, format, args...)
		p.Field = "name"
		return p
	}
	return err
}

// UpdateUser implements auth.Store.
func (s *Store) UpdateUser(ctx context.Context, id string, c auth.UserChange) error {
	var role, hash sql.NullString
	var disabled sql.NullInt64
	if c.Role != nil {
		role = sql.NullString{String: string(*c.Role), Valid: true}
	}
	if c.Disabled != nil {
		disabled = sql.NullInt64{Int64: int64(boolInt(*c.Disabled)), Valid: true}
	}
	if c.PasswordHash != nil {
		hash = sql.NullString{String: *c.PasswordHash, Valid: true}
	}
	return s.write(ctx, "change a user", func(tx *txn) error {
		found, err := tx.changed(`UPDATE users SET role = coalesce($2, role), disabled = coalesce($3, disabled),
			password_hash = coalesce($4, password_hash) WHERE id = $1 RETURNING id`, id, role, disabled, hash)
		if err != nil {
			return err
		}
		if !found {
			return problem.New(problem.NotFound, "there is no such user")
		}
		if !c.EndWebLogins {
			return nil
		}
		_, err = tx.exec(`UPDATE web_logins SET revoked_at = $2 WHERE user_id = $1 AND id <> $3 AND revoked_at IS NULL`,
			id, micros(c.At), c.KeepWeb)
		return err
	})
}

// changed runs a statement that returns the id of each row it changed, and
// reports whether there was any. Counts of affected rows are not asked for:
// engines count differently.
func (t *txn) changed(query string, args ...any) (bool, error) {
	rows, err := t.rows(query, args...)
	if err != nil {
		return false, err
	}
	any := false
	err = each(rows, func(scanner) error {
		any = true
		return nil
	})
	return any, err
}

package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// groupNames is a list that string_agg joined by commas, which names have not.
type groupNames []string

// Scan implements sql.Scanner.
func (g *groupNames) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*g = nil
	case string:
		*g = strings.Split(v, ",")
	default:
		return fmt.Errorf("scan names from %T", v)
	}
	return nil
}

// InsertGroup implements auth.Store.
func (s *Store) InsertGroup(ctx context.Context, g auth.Group) error {
	return s.write(ctx, "add a group", func(tx *txn) error {
		_, err := tx.exec(`INSERT INTO user_groups (id, name, created_at) VALUES ($1, $2, $3)`, g.ID, g.Name, micros(g.CreatedAt))
		return s.taken(err, "another group is called %q", g.Name)
	})
}

// DeleteGroup implements auth.Store.
func (s *Store) DeleteGroup(ctx context.Context, name string) error {
	return s.write(ctx, "remove a group", func(tx *txn) error {
		found, err := tx.changed(`DELETE FROM user_groups WHERE lower(name) = lower($1) RETURNING id`, name)
		if err == nil && !found {
			err = noGroup(name)
		}
		return err
	})
}

// ListGroups implements auth.Store.
func (s *Store) ListGroups(ctx context.Context) ([]auth.Group, error) {
	groups := []auth.Group{}
	err := s.query(ctx, "list groups", `SELECT g.id, g.name, g.created_at,
			(SELECT string_agg(u.name, ',' ORDER BY u.name) FROM users u
				JOIN group_members m ON m.user_id = u.id WHERE m.group_id = g.id)
		FROM user_groups g ORDER BY g.id`, nil, func(row scanner) error {
		var g auth.Group
		var created int64
		var members groupNames
		if err := row.Scan(&g.ID, &g.Name, &created, &members); err != nil {
			return err
		}
		g.CreatedAt, g.Members = fromMicros(created), append([]string{}, members...)
		groups = append(groups, g)
		return nil
	})
	return groups, err
}

// AddGroupMember implements auth.Store.
func (s *Store) AddGroupMember(ctx context.Context, group, user string) error {
	return s.write(ctx, "add a member", func(tx *txn) error {
		g, err := groupID(tx, group)
		if err != nil {
			return err
		}
		found, err := tx.changed(`INSERT INTO group_members (group_id, user_id)
			SELECT $1, id FROM users WHERE lower(name) = lower($2)
			ON CONFLICT (group_id, user_id) DO UPDATE SET user_id = excluded.user_id RETURNING user_id`, g, user)
		if err == nil && !found {
			err = problem.New(problem.NotFound, "there is no user %q", user)
		}
		return err
	})
}

// RemoveGroupMember implements auth.Store.
func (s *Store) RemoveGroupMember(ctx context.Context, group, user string) error {
	return s.write(ctx, "remove a member", func(tx *txn) error {
		g, err := groupID(tx, group)
		if err != nil {
			return err
		}
		_, err = tx.exec(`DELETE FROM group_members WHERE group_id = $1 AND user_id IN
			(SELECT id FROM users WHERE lower(name) = lower($2))`, g, user)
		return err
	})
}

func groupID(tx *txn, name string) (string, error) {
	var id string
	err := tx.row(`SELECT id FROM user_groups WHERE lower(name) = lower($1)`, name).Scan(&id)
	return id, orNotFound(err, noGroup(name))
}

func noGroup(name string) *problem.Error {
	return problem.New(problem.NotFound, "there is no group %q", name)
}

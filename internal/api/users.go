package api

import (
	"context"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// cut makes one page of a list that is short enough to be read whole. The
// cursor is the last id of the page before.
func cut[A, B any](c *call, all []A, id func(A) string, convert func(A) B) (list[B], error) {
	limit, cursor, err := c.paging()
	if err != nil {
		return list[B]{}, err
	}
	var items []B
	last := ""
	for _, a := range all {
		if id(a) <= cursor {
			continue
		}
		if len(items) == limit {
			return page(items, last), nil
		}
		items = append(items, convert(a))
		last = id(a)
	}
	return page(items, ""), nil
}

func (s *Server) listUsers(c *call, _ nothing) (list[User], error) {
	users, err := s.auth.Users(c.r.Context(), c.p)
	if err != nil {
		return list[User]{}, err
	}
	return cut(c, users, func(u auth.User) string { return u.ID }, toUser)
}

func (s *Server) createUser(c *call, in NewUser) (User, error) {
	u, err := s.auth.AddUser(c.r.Context(), c.p, auth.NewUser{Name: in.Name, Role: in.Role, UID: in.UID, Password: in.Password})
	if err != nil {
		return User{}, err
	}
	s.audit(c, "user.add", u.Name, map[string]any{"role": u.Role, "password": u.HasPassword})
	return toUser(u), nil
}

func (s *Server) patchUser(c *call, in PatchUser) (User, error) {
	ctx, name := c.r.Context(), c.r.PathValue("name")
	u, err := s.auth.User(ctx, c.p, name)
	if err != nil {
		return User{}, err
	}
	if in.Role != nil && !in.Role.Valid() {
		return User{}, problem.Field("role", "there is no role %q", clip(string(*in.Role)))
	}
	// What takes rights away comes first, so that a failure on the way leaves
	// less allowed than asked for, not more.
	if in.Disabled != nil && *in.Disabled {
		if err := s.auth.SetDisabled(ctx, c.p, name, true); err != nil {
			return User{}, err
		}
		s.audit(c, "user.disable", u.Name, nil)
	}
	if in.Role != nil {
		if err := s.auth.SetRole(ctx, c.p, name, *in.Role); err != nil {
			return User{}, err
		}
		s.audit(c, "user.role", u.Name, map[string]any{"role": *in.Role})
	}
	if in.Password != nil {
		if err := s.auth.SetPassword(ctx, c.p, name, *in.Password); err != nil {
			return User{}, err
		}
		s.audit(c, "user.password", u.Name, map[string]any{"removed": *in.Password == ""})
	}
	if in.Disabled != nil && !*in.Disabled {
		if err := s.auth.SetDisabled(ctx, c.p, name, false); err != nil {
			return User{}, err
		}
		s.audit(c, "user.enable", u.Name, nil)
	}
	if u, err = s.auth.User(ctx, c.p, name); err != nil {
		return User{}, err
	}
	return toUser(u), nil
}

func (s *Server) listGroups(c *call, _ nothing) (list[Group], error) {
	groups, err := s.auth.Groups(c.r.Context(), c.p)
	if err != nil {
		return list[Group]{}, err
	}
	return cut(c, groups, func(g auth.Group) string { return g.ID }, toGroup)
}

func (s *Server) createGroup(c *call, in NewGroup) (Group, error) {
	g, err := s.auth.AddGroup(c.r.Context(), c.p, in.Name)
	if err != nil {
		return Group{}, err
	}
	s.audit(c, "group.add", g.Name, nil)
	return toGroup(g), nil
}

func (s *Server) deleteGroup(c *call, _ nothing) (nothing, error) {
	name := c.r.PathValue("name")
	if err := s.auth.RemoveGroup(c.r.Context(), c.p, name); err != nil {
		return nothing{}, err
	}
	s.audit(c, "group.remove", clip(name), nil)
	return nothing{}, nil
}

func (s *Server) addMember(c *call, _ nothing) (nothing, error) {
	return s.changeMember(c, "group.join", s.auth.AddMember)
}

func (s *Server) removeMember(c *call, _ nothing) (nothing, error) {
	return s.changeMember(c, "group.leave", s.auth.RemoveMember)
}

func (s *Server) changeMember(c *call, action string, change func(ctx context.Context, by auth.Principal, group, user string) error) (nothing, error) {
	group, user := c.r.PathValue("name"), c.r.PathValue("user")
	if err := change(c.r.Context(), c.p, group, user); err != nil {
		return nothing{}, err
	}
	s.audit(c, action, clip(group), map[string]any{"user": clip(user)})
	return nothing{}, nil
}

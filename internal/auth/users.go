package auth

import (
	"context"
	"strings"

	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
)

// Users lists all users, oldest first.
func (s *Service) Users(ctx context.Context, by Principal) ([]User, error) {
	if err := need(by, UserManage); err != nil {
		return nil, err
	}
	return s.store.ListUsers(ctx)
}

// User returns a user by name: oneself (also for ""), or anybody for an admin.
func (s *Service) User(ctx context.Context, by Principal, name string) (User, error) {
	a, err := s.target(ctx, by, name)
	return a.User, err
}

// UserName returns the name of the user with id, for showing; the id itself
// when it cannot be told.
func (s *Service) UserName(ctx context.Context, id string) string {
	if name, ok := s.names.Load(id); ok {
		return name.(string)
	}
	a, err := s.store.AccountByID(ctx, id)
	if err != nil {
		return id
	}
	s.names.Store(id, a.Name)
	return a.Name
}

// AddUser adds a user.
func (s *Service) AddUser(ctx context.Context, by Principal, n NewUser) (User, error) {
	if err := need(by, UserManage); err != nil {
		return User{}, err
	}
	if err := checkName(n.Name, "u_"); err != nil {
		return User{}, err
	}
	if n.Role == "" {
		n.Role = Operator
	}
	if !n.Role.Valid() {
		return User{}, problem.Field("role", "there is no role %q", n.Role)
	}
	if n.UID != nil && (*n.UID < 0 || *n.UID == 0 && s.ownerUID != 0) {
		// Root's peers are the first admin; a row for uid 0 would never match.
		return User{}, problem.Field("uid", "must be a user's, not root's")
	}
	hash := ""
	if n.Password != "" {
		if err := checkPassword(n.Password); err != nil {
			return User{}, err
		}
		var err error
		if hash, err = s.passwords.hash(ctx, n.Password); err != nil {
			return User{}, err
		}
	}
	u := User{ID: ident.New("u"), Name: n.Name, UID: n.UID, Role: n.Role, HasPassword: hash != "", CreatedAt: s.now()}
	if err := s.store.InsertUser(ctx, u, hash); err != nil {
		return User{}, err
	}
	s.hub.Publish(events.Change{Type: "user", ID: u.ID, Owner: u.ID})
	return u, nil
}

func checkName(name, idPrefix string) error {
	if !namePattern().MatchString(name) || strings.HasPrefix(name, idPrefix) {
		return problem.Field("name", "must have 1 to 64 of A–Z, a–z, 0–9, _ . @ + -, begin with a letter, digit or _, and not look like an id")
	}
	return nil
}

// SetDisabled disables a user, which refuses all their credentials and ends
// their connections, or enables them again.
func (s *Service) SetDisabled(ctx context.Context, by Principal, name string, disabled bool) error {
	a, err := s.manage(ctx, by, name)
	if err != nil {
		return err
	}
	if disabled && s.isOwner(a.User) {
		return problem.New(problem.Conflict, "%q owns this daemon and cannot be disabled", a.Name)
	}
	return s.change(ctx, a.User, UserChange{Disabled: &disabled}, disabled)
}

// SetRole changes what a user may do. Their connections end, so that the new
// role holds everywhere at once; clients connect again by themselves.
func (s *Service) SetRole(ctx context.Context, by Principal, name string, role Role) error {
	a, err := s.manage(ctx, by, name)
	if err != nil {
		return err
	}
	if !role.Valid() {
		return problem.Field("role", "there is no role %q", role)
	}
	if role != Admin && s.isOwner(a.User) {
		return problem.New(problem.Conflict, "%q owns this daemon and stays an admin", a.Name)
	}
	return s.change(ctx, a.User, UserChange{Role: &role}, role != a.Role)
}

// SetPassword sets a user's password, "" for none, and ends their web logins
// but for the one it is done by. Users may set their own, unless they came by a
// credential that can do less than they can: it would give them the rest.
func (s *Service) SetPassword(ctx context.Context, by Principal, name, password string) error {
	a, err := s.target(ctx, by, name)
	if err != nil {
		return err
	}
	if by.Role != Admin && by.Role != a.Role || by.Via == ViaToken && by.Role != Admin {
		return problem.New(problem.Forbidden, "setting a password needs a login with all of the user's rights")
	}
	hash := ""
	if password != "" {
		if err := checkPassword(password); err != nil {
			return err
		}
		if hash, err = s.passwords.hash(ctx, password); err != nil {
			return err
		}
	}
	c := UserChange{PasswordHash: &hash, EndWebLogins: true, At: s.now()}
	if by.Via == ViaCookie {
		c.KeepWeb = by.CredID
	}
	if err := s.store.UpdateUser(ctx, a.ID, c); err != nil {
		return err
	}
	s.bindings.end(func(b Principal) bool {
		return b.UserID == a.ID && b.Via == ViaCookie && b.CredID != c.KeepWeb
	})
	s.hub.Publish(events.Change{Type: "user", ID: a.ID, Owner: a.ID})
	return nil
}

func (s *Service) manage(ctx context.Context, by Principal, name string) (Account, error) {
	if err := need(by, UserManage); err != nil {
		return Account{}, err
	}
	return s.store.AccountByName(ctx, name)
}

func (s *Service) isOwner(u User) bool { return u.UID != nil && *u.UID == s.ownerUID }

func (s *Service) change(ctx context.Context, u User, c UserChange, end bool) error {
	if err := s.store.UpdateUser(ctx, u.ID, c); err != nil {
		return err
	}
	if end {
		s.bindings.end(func(b Principal) bool { return b.UserID == u.ID })
	}
	s.hub.Publish(events.Change{Type: "user", ID: u.ID, Owner: u.ID})
	return nil
}

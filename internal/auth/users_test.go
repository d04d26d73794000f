package auth_test

import (
	"fmt"
	"testing"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/problem"
)

func ptr[T any](v T) *T { return &v }

func TestAddUserChecks(t *testing.T) {
	w := newWorld(t)
	w.add(t, "ann", "")
	for _, tc := range []struct {
		n    auth.NewUser
		code problem.Code
	}{
		{auth.NewUser{Name: "bob.b@example-1.org+x", Role: auth.Viewer, UID: ptr(5), Password: password}, ""},
		{auth.NewUser{Name: "Ann"}, problem.NameTaken},
		{auth.NewUser{Name: ""}, problem.InvalidArgument},
		{auth.NewUser{Name: "u_x"}, problem.InvalidArgument},
		{auth.NewUser{Name: "-x"}, problem.InvalidArgument},
		{auth.NewUser{Name: "a b"}, problem.InvalidArgument},
		{auth.NewUser{Name: "a,b"}, problem.InvalidArgument},
		{auth.NewUser{Name: "a\n"}, problem.InvalidArgument},
		{auth.NewUser{Name: "c", Role: "king"}, problem.InvalidArgument},
		{auth.NewUser{Name: "c", UID: ptr(-1)}, problem.InvalidArgument},
		{auth.NewUser{Name: "c", UID: ptr(0)}, problem.InvalidArgument},
		{auth.NewUser{Name: "c", UID: ptr(5)}, problem.Conflict},
		{auth.NewUser{Name: "c", UID: ptr(ownerUID)}, problem.Conflict},
		{auth.NewUser{Name: "c", Password: "short"}, problem.InvalidArgument},
	} {
		u, err := w.AddUser(t.Context(), w.owner, tc.n)
		if (err == nil) != (tc.code == "") || err != nil && problem.CodeOf(err) != tc.code {
			t.Errorf("%+v: %v, want %q", tc.n, err, tc.code)
		}
		if err == nil && (u.HasPassword != (tc.n.Password != "") || u.Role != tc.n.Role) {
			t.Errorf("%+v became %+v", tc.n, u)
		}
	}
}

// Whoever may not, may not: every method against every role.
func TestEveryMethodAsksForItsRight(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, role := range auth.Roles() {
		p := w.add(t, "x"+string(role), role)
		for _, tc := range []struct {
			name   string
			action auth.Action
			call   func() error
		}{
			{"Users", auth.UserManage, func() error { return second(w.Users(ctx, p)) }},
			{"AddUser", auth.UserManage, func() error { return second(w.AddUser(ctx, p, auth.NewUser{Name: "new" + string(role)})) }},
			{"SetDisabled", auth.UserManage, func() error { return w.SetDisabled(ctx, p, "x"+string(role), false) }},
			{"SetRole", auth.UserManage, func() error { return w.SetRole(ctx, p, "x"+string(role), role) }},
			{"Groups", auth.GroupManage, func() error { return second(w.Groups(ctx, p)) }},
			{"AddGroup", auth.GroupManage, func() error { return second(w.AddGroup(ctx, p, "g"+string(role))) }},
			{"AddMember", auth.GroupManage, func() error { return w.AddMember(ctx, p, "g"+string(role), "x"+string(role)) }},
			{"RemoveMember", auth.GroupManage, func() error { return w.RemoveMember(ctx, p, "g"+string(role), "x"+string(role)) }},
			{"RemoveGroup", auth.GroupManage, func() error { return w.RemoveGroup(ctx, p, "g"+string(role)) }},
			{"Tokens", auth.TokenManage, func() error { return second(w.Tokens(ctx, p)) }},
			{"CreateToken", auth.TokenManage, func() error { return second(second2(w.CreateToken(ctx, p, auth.NewToken{Name: "t"}))) }},
			{"RevokeToken", auth.TokenManage, func() error { return w.RevokeToken(ctx, p, "t") }},
			{"CreateLink", auth.LinkCreate, func() error { return second(second2(w.CreateLink(ctx, p, ""))) }},
		} {
			err := tc.call()
			if allowed := auth.Allowed(role, tc.action); allowed && err != nil || !allowed && !problem.Is(err, problem.Forbidden) {
				t.Errorf("%s by %s: %v", tc.name, role, err)
			}
		}
		others := []error{
			second(w.User(ctx, p, "uid12345")),
			w.SetPassword(ctx, p, "uid12345", password),
		}
		for i, err := range others {
			if (role == auth.Admin) != (err == nil) {
				t.Errorf("%s on another user, call %d: %v", role, i, err)
			}
		}
		if u, err := w.User(ctx, p, ""); err != nil || u.ID != p.UserID {
			t.Errorf("%s on oneself: %+v, %v", role, u, err)
		}
	}
}

func TestTheOwnerStays(t *testing.T) {
	w := newWorld(t)
	admin := w.add(t, "ann", auth.Admin)
	wantCode(t, w.SetDisabled(t.Context(), admin, "uid12345", true), problem.Conflict)
	wantCode(t, w.SetRole(t.Context(), admin, "uid12345", auth.Operator), problem.Conflict)
	wantCode(t, w.SetDisabled(t.Context(), admin, "uid12345", false), "")
	wantCode(t, w.SetRole(t.Context(), admin, "uid12345", auth.Admin), "")
	wantCode(t, w.SetDisabled(t.Context(), w.owner, "none", true), problem.NotFound)
	wantCode(t, w.SetRole(t.Context(), w.owner, "ann", "king"), problem.InvalidArgument)
}

func TestGroupsOfAPrincipal(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	ann := w.add(t, "ann", auth.Operator)
	for _, g := range []string{"ops", "dev"} {
		if _, err := w.AddGroup(ctx, w.owner, g); err != nil {
			t.Fatal(err)
		}
		wantCode(t, w.AddMember(ctx, w.owner, g, "ann"), "")
	}
	wantCode(t, second(w.AddGroup(ctx, w.owner, "g_x")), problem.InvalidArgument)
	_, secret := w.token(t, ann, auth.NewToken{})
	groups := func() string {
		t.Helper()
		p, err := w.Token(ctx, secret)
		wantCode(t, err, "")
		return fmt.Sprint(p.Groups)
	}
	if got := groups(); got != "[dev ops]" {
		t.Error(got)
	}
	wantCode(t, w.RemoveMember(ctx, w.owner, "dev", "ann"), "")
	wantCode(t, w.RemoveGroup(ctx, w.owner, "ops"), "")
	if got := groups(); got != "[]" {
		t.Error(got)
	}
}

func TestUserName(t *testing.T) {
	w := newWorld(t)
	ann := w.add(t, "ann", auth.Operator)
	for range 2 {
		if got := w.UserName(t.Context(), ann.UserID); got != "ann" {
			t.Error(got)
		}
		if got := w.UserName(t.Context(), "u_none"); got != "u_none" {
			t.Error(got)
		}
	}
}

func TestChangesAreTold(t *testing.T) {
	w := newWorld(t)
	hub := events.NewHub()
	s, err := auth.New(auth.Options{Store: w.store, OwnerUID: ownerUID, Hub: hub})
	if err != nil {
		t.Fatal(err)
	}
	sub := hub.Subscribe()
	defer sub.Close()
	// Who else must not hear of it: other users' ids and the names of groups are
	// not theirs to see.
	told := func(want, owner string) {
		t.Helper()
		got := sub.Take()
		if len(got) != 1 || got[0].Type != want || got[0].Owner != owner {
			t.Errorf("told %v, want %s to %s", got, want, owner)
		}
	}
	u, err := s.AddUser(t.Context(), w.owner, auth.NewUser{Name: "ann"})
	wantCode(t, err, "")
	told("user", u.ID)
	wantCode(t, s.SetDisabled(t.Context(), w.owner, "ann", true), "")
	told("user", u.ID)
	if _, err := s.AddGroup(t.Context(), w.owner, "ops"); err != nil {
		t.Fatal(err)
	}
	told("group", events.Admins)
	wantCode(t, s.RemoveGroup(t.Context(), w.owner, "ops"), "")
	told("group", events.Admins)
	if (auth.Principal{UserID: u.ID, Role: auth.Operator}).CanSee(events.Admins) {
		t.Error("an operator sees what is for admins")
	}
	if _, _, err := s.CreateToken(t.Context(), w.owner, auth.NewToken{Name: "ci"}); err != nil {
		t.Fatal(err)
	}
	told("token", w.owner.UserID)
	wantCode(t, s.RevokeToken(t.Context(), w.owner, "ci"), "")
	told("token", w.owner.UserID)
	wantCode(t, s.SetRole(t.Context(), auth.Principal{UserID: u.ID, Role: auth.Viewer}, "ann", auth.Admin), problem.Forbidden)
	if got := sub.Take(); got != nil {
		t.Errorf("a refusal told %v", got)
	}
}

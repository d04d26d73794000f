package store

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
)

var userCases = []conformCase{
	{"users come back as they were written", testUserRoundTrip},
	{"the owner is made once", testEnsureUser},
	{"names and uids of users are unique", testUserUnique},
	{"users change member by member", testUpdateUser},
	{"groups have members", testGroups},
}

func newUser(name string, uid *int) auth.User {
	return auth.User{ID: ident.New("u"), Name: name, UID: uid, Role: auth.Viewer, CreatedAt: epoch}
}

func testUserRoundTrip(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := newUser("Ann", ptr(1000)), newUser("bob", nil)
	ann.ID, bob.ID = "u_1", "u_2" // their order
	bob.Disabled, bob.Role = true, auth.Agent
	wantCode(t, db.InsertUser(ctx, ann, "hash"), "")
	wantCode(t, db.InsertUser(ctx, bob, ""), "")
	ann.HasPassword = true
	users, err := db.ListUsers(ctx)
	wantCode(t, err, "")
	if !reflect.DeepEqual(users, []auth.User{ann, bob}) {
		t.Fatalf("got %+v", users)
	}
	wantAnn := auth.Account{User: ann, PasswordHash: "hash"}
	for how, got := range map[string]func() (auth.Account, error){
		"id":      func() (auth.Account, error) { return db.AccountByID(ctx, ann.ID) },
		"name":    func() (auth.Account, error) { return db.AccountByName(ctx, "Ann") },
		"anyCase": func() (auth.Account, error) { return db.AccountByName(ctx, "aNN") },
		"uid":     func() (auth.Account, error) { return db.AccountByUID(ctx, 1000) },
	} {
		a, err := got()
		wantCode(t, err, "")
		if !reflect.DeepEqual(a, wantAnn) {
			t.Errorf("by %s: got %+v", how, a)
		}
	}
	for _, err := range []error{
		second(db.AccountByID(ctx, "u_none")), second(db.AccountByName(ctx, "")),
		second(db.AccountByUID(ctx, 7)), db.UpdateUser(ctx, "u_none", auth.UserChange{}),
	} {
		wantCode(t, err, problem.NotFound)
	}
}

func testEnsureUser(t *testing.T, db *database) {
	ctx := t.Context()
	var mu sync.Mutex // guards ids
	ids := map[string]bool{}
	want(t, together(10, func(i int) error {
		u, err := db.EnsureUser(ctx, newUser("owner", ptr(1000)))
		mu.Lock()
		defer mu.Unlock()
		ids[u.ID] = true
		return err
	}), map[problem.Code]int{"": 10})
	if len(ids) != 1 {
		t.Fatalf("several owners: %v", ids)
	}
	_, err := db.EnsureUser(ctx, newUser("OWNER", ptr(1001)))
	wantCode(t, err, problem.NotFound)
	// Another name does not rename the one who is there.
	u, err := db.EnsureUser(ctx, newUser("other", ptr(1000)))
	if err != nil || u.Name != "owner" {
		t.Fatalf("%+v, %v", u, err)
	}
	if _, err := db.EnsureUser(ctx, newUser("nobody", nil)); err == nil {
		t.Error("ensured a user without a uid")
	}
}

func testUserUnique(t *testing.T, db *database) {
	ctx := t.Context()
	wantCode(t, db.InsertUser(ctx, newUser("ann", ptr(1)), ""), "")
	wantCode(t, db.InsertUser(ctx, newUser("ann", nil), ""), problem.NameTaken)
	wantCode(t, db.InsertUser(ctx, newUser("ANN", nil), ""), problem.NameTaken)
	wantCode(t, db.InsertUser(ctx, newUser("bob", ptr(1)), ""), problem.Conflict)
	want(t, together(10, func(i int) error {
		return db.InsertUser(ctx, newUser("eve", ptr(10+i)), "")
	}), map[problem.Code]int{"": 1, problem.NameTaken: 9})
	bad := newUser("x", nil)
	bad.Role = "king"
	if err := db.InsertUser(ctx, bad, ""); err == nil {
		t.Error("the schema accepts any role")
	}
}

func testUpdateUser(t *testing.T, db *database) {
	ctx := t.Context()
	u := newUser("ann", nil)
	wantCode(t, db.InsertUser(ctx, u, "old"), "")
	want := auth.Account{User: u, PasswordHash: "old"}
	want.HasPassword = true
	for _, tc := range []struct {
		change auth.UserChange
		apply  func()
	}{
		{auth.UserChange{}, func() {}},
		{auth.UserChange{Role: ptr(auth.Admin)}, func() { want.Role = auth.Admin }},
		{auth.UserChange{Disabled: ptr(true)}, func() { want.Disabled = true }},
		{auth.UserChange{PasswordHash: ptr("new")}, func() { want.PasswordHash = "new" }},
		{auth.UserChange{Disabled: ptr(false)}, func() { want.Disabled = false }},
		{auth.UserChange{PasswordHash: ptr("")}, func() { want.PasswordHash, want.HasPassword = "", false }},
	} {
		wantCode(t, db.UpdateUser(ctx, u.ID, tc.change), "")
		tc.apply()
		got, err := db.AccountByID(ctx, u.ID)
		wantCode(t, err, "")
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("after %+v: %+v", tc.change, got)
		}
	}
}

func testGroups(t *testing.T, db *database) {
	ctx := t.Context()
	db.user(t, "ann")
	db.user(t, "bob")
	groups := []auth.Group{
		{ID: "g_1", Name: "Ops", Members: []string{}, CreatedAt: epoch},
		{ID: "g_2", Name: "dev", Members: []string{}, CreatedAt: epoch},
	}
	for _, g := range groups {
		wantCode(t, db.InsertGroup(ctx, g), "")
	}
	wantCode(t, db.InsertGroup(ctx, auth.Group{ID: "g_3", Name: "OPS", CreatedAt: epoch}), problem.NameTaken)
	for range 2 { // idempotent
		wantCode(t, db.AddGroupMember(ctx, "ops", "bob"), "")
		wantCode(t, db.AddGroupMember(ctx, "Ops", "ann"), "")
		wantCode(t, db.AddGroupMember(ctx, "dev", "BOB"), "")
	}
	groups[0].Members, groups[1].Members = []string{"ann", "bob"}, []string{"bob"}
	check := func() {
		t.Helper()
		got, err := db.ListGroups(ctx)
		wantCode(t, err, "")
		if !reflect.DeepEqual(got, groups) {
			t.Fatalf("got %+v, want %+v", got, groups)
		}
	}
	check()
	bob, err := db.AccountByName(ctx, "bob")
	if err != nil || fmt.Sprint(bob.Groups) != "[Ops dev]" {
		t.Fatalf("%v, %v", bob.Groups, err)
	}
	for _, err := range []error{
		db.AddGroupMember(ctx, "none", "ann"), db.AddGroupMember(ctx, "ops", "none"),
		db.RemoveGroupMember(ctx, "none", "ann"), db.DeleteGroup(ctx, "none"),
	} {
		wantCode(t, err, problem.NotFound)
	}
	for range 2 { // idempotent
		wantCode(t, db.RemoveGroupMember(ctx, "ops", "ANN"), "")
	}
	groups[0].Members = []string{"bob"}
	check()
	wantCode(t, db.DeleteGroup(ctx, "ops"), "")
	groups = groups[1:]
	check()
	if bob, err = db.AccountByName(ctx, "bob"); err != nil || fmt.Sprint(bob.Groups) != "[dev]" {
		t.Fatalf("%v, %v", bob.Groups, err)
	}
}

package store

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
)

var credentialCases = []conformCase{
	{"tokens are found by their hash", testTokens},
	{"a token's name is its user's until it ends", testTokenNames},
	{"what a token made ends with it", testOrigins},
	{"a token's last use is noted", testTouchToken},
	{"a login needs the password as it is now", testInsertWeb},
	{"changing a password ends the other logins", testEndWebLogins},
	{"a login link is redeemed once", testRedeemOnce},
	{"a dead login link is refused", testRedeemDead},
	{"a login link and its login are one step", testRedeemAtomic},
	{"dead credentials are pruned", testPrune},
}

func hash(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

func newToken(user, name string) auth.Token {
	return auth.Token{
		ID: ident.New("t"), Name: name, UserID: user, Role: auth.Viewer,
		CreatedAt: epoch, ExpiresAt: epoch.Add(time.Hour),
	}
}

func newWeb(user, secret string) auth.Web {
	return auth.Web{
		ID: ident.New("w"), UserID: user, Role: auth.Admin, CookieHash: hash(secret), KeyHash: hash("key " + secret),
		CreatedAt: epoch, ExpiresAt: epoch.Add(24 * time.Hour),
	}
}

func newLink(user string) auth.Link {
	return auth.Link{
		ID: ident.New("l"), UserID: user, Role: auth.Operator, CreatedBy: user,
		CreatedAt: epoch, ExpiresAt: epoch.Add(5 * time.Minute),
	}
}

func testTokens(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	a, b := newToken(ann, "ci"), newToken(bob, "")
	a.ID, b.ID = "t_1", "t_2"
	wantCode(t, db.InsertToken(ctx, a, hash("a")), "")
	wantCode(t, db.InsertToken(ctx, b, hash("b")), "")

	for _, get := range []func() (auth.Credential, error){
		func() (auth.Credential, error) { return db.TokenByHash(ctx, hash("a")) },
		func() (auth.Credential, error) { return db.TokenByID(ctx, a.ID) },
	} {
		c, err := get()
		wantCode(t, err, "")
		if c.ID != a.ID || c.Role != a.Role || !c.ExpiresAt.Equal(a.ExpiresAt) || c.RevokedAt != nil || c.LastUsedAt != nil ||
			c.Account.ID != ann || c.Account.Name != "ann" || c.KeyHash != nil {
			t.Errorf("got %+v", c)
		}
	}
	all, err := db.ListTokens(ctx, "")
	wantCode(t, err, "")
	own, err := db.ListTokens(ctx, bob)
	wantCode(t, err, "")
	if len(all) != 2 || all[0].UserName != "ann" || len(own) != 1 || own[0].ID != b.ID {
		t.Errorf("all %+v, own %+v", all, own)
	}
	for _, err := range []error{
		second(db.TokenByHash(ctx, hash("c"))), second(db.TokenByID(ctx, "t_none")),
		second(db.RevokeToken(ctx, "t_none", epoch)), second(db.WebByID(ctx, a.ID)),
	} {
		wantCode(t, err, problem.NotFound)
	}

	var mu sync.Mutex // guards firsts
	firsts := 0
	want(t, together(8, func(int) error {
		ended, err := db.RevokeToken(ctx, a.ID, epoch.Add(time.Minute))
		mu.Lock()
		defer mu.Unlock()
		if len(ended) > 0 {
			firsts++
		}
		return err
	}), map[problem.Code]int{"": 8})
	if firsts != 1 {
		t.Errorf("%d calls revoked it", firsts)
	}
	c, err := db.TokenByHash(ctx, hash("a"))
	if err != nil || c.RevokedAt == nil || !c.RevokedAt.Equal(epoch.Add(time.Minute)) {
		t.Errorf("revoked at %v, %v", c.RevokedAt, err)
	}
}

func testTokenNames(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := db.user(t, "ann"), db.user(t, "bob")
	insert := func(tok auth.Token) error { return db.InsertToken(ctx, tok, hash(tok.ID)) }
	first := newToken(ann, "ci")
	wantCode(t, insert(first), "")
	wantCode(t, insert(newToken(ann, "ci")), problem.NameTaken)
	wantCode(t, insert(newToken(bob, "ci")), "")
	wantCode(t, insert(newToken(ann, "")), "")
	wantCode(t, insert(newToken(ann, "")), "")
	if _, err := db.RevokeToken(ctx, first.ID, epoch); err != nil {
		t.Fatal(err)
	}
	wantCode(t, insert(newToken(ann, "ci")), "")
	later := newToken(ann, "ci")
	later.CreatedAt, later.ExpiresAt = epoch.Add(time.Hour), epoch.Add(2*time.Hour)
	wantCode(t, insert(later), "") // the one before has just expired
	if err := db.InsertToken(ctx, newToken(ann, "x"), hash(later.ID)); err == nil {
		t.Error("two tokens have one hash")
	}
	if err := db.InsertToken(ctx, newToken(ann, "y"), []byte("short")); err == nil {
		t.Error("accepted something that is no hash")
	}
}

// A token makes a token and links, and each of these makes more. Revoking the
// first ends all of them and nothing else, and nothing is made with it after.
func testOrigins(t *testing.T, db *database) {
	ctx := t.Context()
	ann := db.user(t, "ann")
	token := func(name, origin string) error {
		tok := newToken(ann, name)
		tok.ID, tok.Origin = "t_"+name, origin
		return db.InsertToken(ctx, tok, hash(name))
	}
	link := func(secret, origin string) error {
		l := newLink(ann)
		l.Origin = origin
		return db.InsertLink(ctx, l, hash(secret))
	}
	redeem := func(secret string) (auth.Credential, error) {
		return db.RedeemLink(ctx, hash(secret), epoch, newWeb("", secret))
	}
	for _, err := range []error{
		token("root", ""), token("other", ""), token("child", "t_root"), token("grandchild", "t_child"),
		link("used", "t_grandchild"), link("unused", "t_child"), link("plain", ""),
	} {
		wantCode(t, err, "")
	}
	used, err := redeem("used")
	wantCode(t, err, "")
	plain, err := redeem("plain")
	wantCode(t, err, "")
	if used.Origin != "t_grandchild" || plain.Origin != "" {
		t.Errorf("origins %q and %q", used.Origin, plain.Origin)
	}
	// In the middle first: the whole must be found though a part has ended.
	ended, err := db.RevokeToken(ctx, "t_child", epoch)
	wantCode(t, err, "")
	if want := []string{"t_child", "t_grandchild", used.ID}; !slices.Equal(slices.Sorted(slices.Values(ended)), want) {
		t.Errorf("ended %v, want %v", ended, want)
	}
	ended, err = db.RevokeToken(ctx, "t_root", epoch)
	wantCode(t, err, "")
	if !slices.Equal(ended, []string{"t_root"}) {
		t.Errorf("ended %v", ended)
	}
	wantCode(t, token("late", "t_root"), problem.NotFound)
	wantCode(t, link("late", "t_root"), problem.NotFound)
	_, err = redeem("unused")
	wantCode(t, err, problem.NotFound)
	for get, revoked := range map[string]bool{"t_other": false, "t_grandchild": true} {
		c, err := db.TokenByID(ctx, get)
		if err != nil || (c.RevokedAt != nil) != revoked {
			t.Errorf("%s: %+v, %v", get, c, err)
		}
	}
	for get, revoked := range map[string]bool{plain.ID: false, used.ID: true} {
		c, err := db.WebByID(ctx, get)
		if err != nil || (c.RevokedAt != nil) != revoked {
			t.Errorf("%s: %+v, %v", get, c, err)
		}
	}
}

func testTouchToken(t *testing.T, db *database) {
	ctx := t.Context()
	tok := newToken(db.user(t, "ann"), "ci")
	wantCode(t, db.InsertToken(ctx, tok, hash("a")), "")
	// Queued uses are committed with whatever is committed after them.
	for _, use := range []struct{ at, want time.Duration }{{time.Minute, time.Minute}, {3 * time.Minute, 3 * time.Minute}, {2 * time.Minute, 3 * time.Minute}} {
		db.TouchToken(tok.ID, epoch.Add(use.at))
		db.TouchToken("t_none", epoch)
		wantCode(t, db.AppendAudit(ctx, AuditEntry{Action: "x"}), "")
		c, err := db.TokenByID(ctx, tok.ID)
		if err != nil || c.LastUsedAt == nil || !c.LastUsedAt.Equal(epoch.Add(use.want)) {
			t.Fatalf("last used %v, %v; want %v", c.LastUsedAt, err, use.want)
		}
	}
}

func testInsertWeb(t *testing.T, db *database) {
	ctx := t.Context()
	u := newUser("ann", nil)
	wantCode(t, db.InsertUser(ctx, u, "pw1"), "")
	nobody := newUser("bob", nil)
	wantCode(t, db.InsertUser(ctx, nobody, ""), "")
	insert := func(user, pw string) error {
		w := newWeb(user, ident.New("x"))
		return db.InsertWeb(ctx, w, pw)
	}
	wantCode(t, insert(u.ID, "pw1"), "")
	wantCode(t, insert(u.ID, "pw0"), problem.NotFound)
	wantCode(t, insert(nobody.ID, ""), problem.NotFound) // no password is not an empty one
	wantCode(t, insert("u_none", "pw1"), problem.NotFound)
	wantCode(t, db.UpdateUser(ctx, u.ID, auth.UserChange{Disabled: ptr(true)}), "")
	wantCode(t, insert(u.ID, "pw1"), problem.NotFound)

	w := newWeb(u.ID, "s")
	wantCode(t, db.UpdateUser(ctx, u.ID, auth.UserChange{Disabled: ptr(false)}), "")
	wantCode(t, db.InsertWeb(ctx, w, "pw1"), "")
	c, err := db.WebByHash(ctx, hash("s"))
	wantCode(t, err, "")
	if c.ID != w.ID || !bytes.Equal(c.KeyHash, w.KeyHash) || !c.ExpiresAt.Equal(w.ExpiresAt) || c.Account.ID != u.ID {
		t.Errorf("got %+v", c)
	}
	for i := range 2 {
		first, err := db.RevokeWeb(ctx, w.ID, epoch)
		if err != nil || first != (i == 0) {
			t.Errorf("revoke %d: %v, %v", i, first, err)
		}
	}
}

func testEndWebLogins(t *testing.T, db *database) {
	ctx := t.Context()
	ann, bob := newUser("ann", nil), newUser("bob", nil)
	var webs []auth.Web
	for _, u := range []auth.User{ann, bob} {
		wantCode(t, db.InsertUser(ctx, u, "pw"), "")
		for i := range 2 {
			w := newWeb(u.ID, fmt.Sprint(u.Name, i))
			wantCode(t, db.InsertWeb(ctx, w, "pw"), "")
			webs = append(webs, w)
		}
	}
	at := epoch.Add(time.Minute)
	wantCode(t, db.UpdateUser(ctx, ann.ID, auth.UserChange{PasswordHash: ptr("new"), EndWebLogins: true, KeepWeb: webs[0].ID, At: at}), "")
	for i, w := range webs {
		c, err := db.WebByID(ctx, w.ID)
		wantCode(t, err, "")
		if ended := c.RevokedAt != nil; ended != (i == 1) {
			t.Errorf("login %d ended: %v", i, ended)
		}
	}
}

func testRedeemOnce(t *testing.T, db *database) {
	ctx := t.Context()
	ann := db.user(t, "ann")
	l := newLink(ann)
	l.Until = epoch.Add(time.Hour)
	wantCode(t, db.InsertLink(ctx, l, hash("link")), "")
	var mu sync.Mutex // guards won
	var won []auth.Credential
	want(t, together(100, func(i int) error {
		c, err := db.RedeemLink(ctx, hash("link"), epoch.Add(time.Minute), newWeb("ignored", fmt.Sprint(i)))
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			won = append(won, c)
		}
		return err
	}), map[problem.Code]int{"": 1, problem.NotFound: 99})
	if c := won[0]; c.Account.ID != ann || c.Role != l.Role || !c.ExpiresAt.Equal(l.Until) {
		t.Errorf("got %+v", c)
	}
	var n int
	if err := db.r.QueryRowContext(ctx, `SELECT count(*) FROM web_logins`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d logins, %v", n, err)
	}
}

func testRedeemDead(t *testing.T, db *database) {
	ctx := t.Context()
	ann := db.user(t, "ann")
	redeem := func(secret string, after time.Duration) error {
		_, err := db.RedeemLink(ctx, hash(secret), epoch.Add(after), newWeb("", ident.New("x")))
		return err
	}
	for _, secret := range []string{"a", "b"} {
		wantCode(t, db.InsertLink(ctx, newLink(ann), hash(secret)), "")
	}
	wantCode(t, redeem("a", 5*time.Minute), problem.NotFound)
	wantCode(t, redeem("none", 0), problem.NotFound)
	wantCode(t, db.UpdateUser(ctx, ann, auth.UserChange{Disabled: ptr(true)}), "")
	wantCode(t, redeem("a", 0), problem.NotFound)
	wantCode(t, db.UpdateUser(ctx, ann, auth.UserChange{Disabled: ptr(false)}), "")
	wantCode(t, redeem("a", 5*time.Minute-time.Microsecond), "")
	c, err := db.RedeemLink(ctx, hash("b"), epoch, newWeb("", "b"))
	if err != nil || !c.ExpiresAt.Equal(epoch.Add(24*time.Hour)) {
		t.Errorf("without Until the login ends at %v, %v", c.ExpiresAt, err)
	}
}

func testRedeemAtomic(t *testing.T, db *database) {
	ctx := t.Context()
	ann := db.user(t, "ann")
	for _, secret := range []string{"a", "b"} {
		wantCode(t, db.InsertLink(ctx, newLink(ann), hash(secret)), "")
	}
	_, err := db.RedeemLink(ctx, hash("a"), epoch, newWeb("", "same"))
	wantCode(t, err, "")
	// The second login cannot be written; its link must stay usable.
	if _, err = db.RedeemLink(ctx, hash("b"), epoch, newWeb("", "same")); err == nil {
		t.Fatal("two logins have one cookie")
	}
	_, err = db.RedeemLink(ctx, hash("b"), epoch, newWeb("", "other"))
	wantCode(t, err, "")
}

func testPrune(t *testing.T, db *database) {
	ctx := t.Context()
	u := newUser("ann", nil)
	wantCode(t, db.InsertUser(ctx, u, "pw"), "")
	live, old, revoked := newToken(u.ID, "live"), newToken(u.ID, "old"), newToken(u.ID, "revoked")
	live.ExpiresAt = epoch.Add(400 * 24 * time.Hour)
	revoked.ExpiresAt = live.ExpiresAt
	for _, tok := range []auth.Token{live, old, revoked} {
		wantCode(t, db.InsertToken(ctx, tok, hash(tok.ID)), "")
	}
	if _, err := db.RevokeToken(ctx, revoked.ID, epoch); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.InsertLink(ctx, newLink(u.ID), hash("l")), "")
	wantCode(t, db.InsertWeb(ctx, newWeb(u.ID, "w"), "pw"), "")
	count := func(table string) (n int) {
		t.Helper()
		if err := db.r.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	wantCode(t, db.Prune(ctx, epoch.Add(deadAge)), "")
	if count("tokens") != 3 || count("login_links") != 1 || count("web_logins") != 1 {
		t.Fatal("pruned too early")
	}
	wantCode(t, db.Prune(ctx, epoch.Add(deadAge+25*time.Hour)), "")
	if count("tokens") != 1 || count("login_links") != 0 || count("web_logins") != 0 {
		t.Fatalf("%d tokens, %d links, %d logins left", count("tokens"), count("login_links"), count("web_logins"))
	}
	wantCode(t, second(db.TokenByID(ctx, live.ID)), "")
}

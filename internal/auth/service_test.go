package auth_test

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ownerUID = 12345

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a service on a real store, with an owner.
type world struct {
	*auth.Service
	store *store.Store
	clock *clock
	logs  *observer.ObservedLogs
	owner auth.Principal
}

// newWorld makes a world; wrap may put itself between service and store.
func newWorld(t *testing.T, wrap ...func(auth.Store) auth.Store) *world {
	t.Helper()
	content, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	dsn := filepath.Join(t.TempDir(), "ptyd.db")
	if err := os.WriteFile(dsn, content, 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	core, logs := observer.New(zapcore.DebugLevel)
	w := &world{store: st, logs: logs, clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	var s auth.Store = st
	for _, f := range wrap {
		s = f(s)
	}
	w.Service, err = auth.New(auth.Options{
		Store: s, Now: w.clock.Now, Log: zap.New(core), OwnerUID: ownerUID,
		Passwords: auth.PasswordCost{MemoryKiB: 64, Time: 1, Threads: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.EnsureOwner(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.owner, err = w.Peer(t.Context(), ownerUID); err != nil {
		t.Fatal(err)
	}
	return w
}

// migrated is an empty database's file, made once: under the race detector that
// takes longer than most tests do.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "ptyd-auth-test")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
	dsn := filepath.Join(dir, "template.db")
	st, err := store.Open(context.Background(), store.Options{DSN: dsn})
	if err != nil {
		return nil, err
	}
	if err := st.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(dsn)
})

// add adds a user and returns a principal as if they came by the socket.
func (w *world) add(t *testing.T, name string, role auth.Role) auth.Principal {
	t.Helper()
	u, err := w.AddUser(context.Background(), w.owner, auth.NewUser{Name: name, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return auth.Principal{UserID: u.ID, UserName: name, Role: u.Role, Via: auth.ViaSocket}
}

func (w *world) token(t *testing.T, by auth.Principal, n auth.NewToken) (auth.Token, string) {
	t.Helper()
	tok, secret, err := w.CreateToken(context.Background(), by, n)
	if err != nil {
		t.Fatal(err)
	}
	return tok, secret
}

func wantCode(t testing.TB, err error, code problem.Code) {
	t.Helper()
	switch {
	case code == "" && err != nil:
		t.Fatalf("unexpected error: %v", err)
	case code != "" && !problem.Is(err, code):
		t.Fatalf("got %v, want %s", err, code)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNewRefuses(t *testing.T) {
	for _, o := range []auth.Options{{}, {Store: new(store.Store), OwnerUID: -1}} {
		if _, err := auth.New(o); err == nil {
			t.Errorf("accepted %+v", o)
		}
	}
}

func TestEnsureOwner(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := w.EnsureOwner(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	users, err := w.Users(t.Context(), w.owner)
	if err != nil || len(users) != 1 {
		t.Fatalf("%+v, %v", users, err)
	}
	if u := users[0]; u.Name != "uid12345" || u.UID == nil || *u.UID != ownerUID || u.Role != auth.Admin {
		t.Errorf("owner %+v", u)
	}
}

func TestOwnerHasTheLoginName(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	s, err := auth.New(auth.Options{Store: w.store, OwnerUID: uid})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.EnsureOwner(t.Context()), "")
	p, err := s.Peer(t.Context(), uid)
	if err != nil || p.UserName != me.Username || p.Role != auth.Admin {
		t.Errorf("%+v, %v", p, err)
	}
}

// The state directory was given to another user: the name is taken, and the new
// owner is an admin all the same.
func TestOwnerWhoseNameIsTaken(t *testing.T) {
	w := newWorld(t)
	if _, err := w.AddUser(t.Context(), w.owner, auth.NewUser{Name: "root"}); err != nil {
		t.Fatal(err)
	}
	s, err := auth.New(auth.Options{Store: w.store, OwnerUID: 0})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.EnsureOwner(t.Context()), "")
	if p, err := s.Peer(t.Context(), 0); err != nil || p.UserName != "uid0" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPeer(t *testing.T) {
	w := newWorld(t)
	uid := 777
	if _, err := w.AddUser(t.Context(), w.owner, auth.NewUser{Name: "ann", Role: auth.Viewer, UID: &uid}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		uid  int
		name string
		role auth.Role
	}{{0, "uid12345", auth.Admin}, {ownerUID, "uid12345", auth.Admin}, {777, "ann", auth.Viewer}} {
		p, err := w.Peer(t.Context(), tc.uid)
		if err != nil || p.UserName != tc.name || p.Role != tc.role || p.Via != auth.ViaSocket || !p.Expires.IsZero() {
			t.Errorf("uid %d: %+v, %v", tc.uid, p, err)
		}
	}
	wantCode(t, second(w.Peer(t.Context(), 778)), problem.Unauthenticated)
	wantCode(t, w.SetDisabled(t.Context(), w.owner, "ann", true), "")
	wantCode(t, second(w.Peer(t.Context(), 777)), problem.Unauthenticated)
}

func TestTokenLife(t *testing.T) {
	w := newWorld(t)
	ann := w.add(t, "ann", auth.Operator)
	tok, secret := w.token(t, ann, auth.NewToken{Name: "ci"})
	if !strings.HasPrefix(secret, "ptyd_") || len(secret) != 5+43 {
		t.Errorf("secret %q", secret)
	}
	if want := w.clock.Now().Add(auth.DefaultTokenTTL); !tok.ExpiresAt.Equal(want) || tok.Role != auth.Operator || tok.UserName != "ann" {
		t.Errorf("token %+v", tok)
	}
	p, err := w.Token(t.Context(), secret)
	if err != nil || p.UserID != ann.UserID || p.Via != auth.ViaToken || p.CredID != tok.ID || !p.Expires.Equal(tok.ExpiresAt) {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "ptyd_", secret + "x", secret[:len(secret)-1], strings.ToUpper(secret), strings.Repeat("x", 1<<20)} {
		wantCode(t, second(w.Token(t.Context(), bad)), problem.Unauthenticated)
	}
	w.clock.add(auth.DefaultTokenTTL - time.Microsecond)
	wantCode(t, second(w.Token(t.Context(), secret)), "")
	w.clock.add(time.Microsecond)
	wantCode(t, second(w.Token(t.Context(), secret)), problem.Unauthenticated)

	_, secret = w.token(t, ann, auth.NewToken{Name: "ci"}) // the expired one gave its name back
	wantCode(t, second(w.Token(t.Context(), secret)), "")
	wantCode(t, w.SetDisabled(t.Context(), w.owner, "ann", true), "")
	wantCode(t, second(w.Token(t.Context(), secret)), problem.Unauthenticated)
	wantCode(t, w.SetDisabled(t.Context(), w.owner, "ann", false), "")
	wantCode(t, second(w.Token(t.Context(), secret)), "")
	for range 2 {
		wantCode(t, w.RevokeToken(t.Context(), ann, "ci"), "")
		wantCode(t, second(w.Token(t.Context(), secret)), problem.Unauthenticated)
	}
	wantCode(t, w.RevokeToken(t.Context(), ann, "none"), problem.NotFound)
}

func TestTokenUseIsNotedOnceAMinute(t *testing.T) {
	w := newWorld(t)
	tok, secret := w.token(t, w.owner, auth.NewToken{})
	// A committed audit entry proves that what was queued before it is written.
	used := func() *time.Time {
		t.Helper()
		if _, err := w.Token(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if err := w.store.AppendAudit(t.Context(), store.AuditEntry{Action: "x"}); err != nil {
			t.Fatal(err)
		}
		tokens, err := w.Tokens(t.Context(), w.owner)
		if err != nil || tokens[0].ID != tok.ID {
			t.Fatalf("%+v, %v", tokens, err)
		}
		return tokens[0].LastUsedAt
	}
	start := w.clock.Now()
	for _, tc := range []struct{ after, noted time.Duration }{
		{0, 0}, {59 * time.Second, 0}, {time.Second, time.Minute}, {time.Hour, 61 * time.Minute},
	} {
		w.clock.add(tc.after)
		if got := used(); got == nil || !got.Equal(start.Add(tc.noted)) {
			t.Errorf("after %v: %v", tc.after, got)
		}
	}
}

func TestTokenRoles(t *testing.T) {
	w := newWorld(t)
	ann := w.add(t, "ann", auth.Operator)
	w.add(t, "vic", auth.Viewer)
	for _, tc := range []struct {
		by   auth.Principal
		user string
		role auth.Role
		got  auth.Role
		code problem.Code
	}{
		{ann, "", "", auth.Operator, ""},
		{ann, "ann", auth.Viewer, auth.Viewer, ""},
		{ann, "", auth.Agent, auth.Agent, ""},
		{ann, "", auth.Admin, "", problem.Forbidden},
		{ann, "", auth.Approver, "", problem.Forbidden},
		{ann, "", "king", "", problem.InvalidArgument},
		{ann, "vic", "", "", problem.Forbidden},
		{ann, "none", "", "", problem.Forbidden}, // tells nothing about who is there
		{w.owner, "vic", "", auth.Viewer, ""},
		{w.owner, "vic", auth.Operator, "", problem.Forbidden},
		{w.owner, "none", "", "", problem.NotFound},
		{w.owner, "", "", auth.Admin, ""},
		{auth.Principal{UserID: ann.UserID, UserName: "ann", Role: auth.Viewer, Via: auth.ViaToken}, "", "", "", problem.Forbidden},
	} {
		tok, secret, err := w.CreateToken(t.Context(), tc.by, auth.NewToken{User: tc.user, Role: tc.role})
		wantCode(t, err, tc.code)
		if err == nil {
			if p, err := w.Token(t.Context(), secret); err != nil || p.Role != tc.got || tok.Role != tc.got {
				t.Errorf("%+v: token %s, principal %s, %v", tc, tok.Role, p.Role, err)
			}
		}
	}
	// The user's role now bounds what was made before.
	_, secret := w.token(t, ann, auth.NewToken{})
	for _, role := range []auth.Role{auth.Viewer, auth.Approver, auth.Agent, auth.Admin} {
		wantCode(t, w.SetRole(t.Context(), w.owner, "ann", role), "")
		p, err := w.Token(t.Context(), secret)
		if err != nil || p.Role != auth.LesserRole(auth.Operator, role) {
			t.Errorf("user %s: token %s, %v", role, p.Role, err)
		}
	}
}

func TestTokenBounds(t *testing.T) {
	w := newWorld(t)
	for _, n := range []auth.NewToken{
		{TTL: -1}, {TTL: auth.MaxTokenTTL + 1}, {Name: strings.Repeat("x", 65)}, {Name: "t_x"}, {Name: "a/b"}, {Name: "a\nb"}, {Name: "\xff"},
	} {
		wantCode(t, second(second2(w.CreateToken(t.Context(), w.owner, n))), problem.InvalidArgument)
	}
	w.token(t, w.owner, auth.NewToken{Name: "ci server ü"})
	wantCode(t, second(second2(w.CreateToken(t.Context(), w.owner, auth.NewToken{Name: "ci server ü"}))), problem.NameTaken)

	// What a short-lived token makes does not outlive it.
	_, secret := w.token(t, w.owner, auth.NewToken{TTL: time.Hour})
	p, err := w.Token(t.Context(), secret)
	wantCode(t, err, "")
	if tok, _ := w.token(t, p, auth.NewToken{}); !tok.ExpiresAt.Equal(p.Expires) {
		t.Errorf("expires %v, its maker %v", tok.ExpiresAt, p.Expires)
	}
	link, _, err := w.CreateLink(t.Context(), p, "")
	wantCode(t, err, "")
	if login, err := w.RedeemLink(t.Context(), link, "r"); err != nil || !login.Expires.Equal(p.Expires) {
		t.Errorf("expires %v, %v", login.Expires, err)
	}
}

func second2[A, B any](a A, _ B, err error) (A, error) { return a, err }

func TestRevokeByName(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.add(t, "ann", auth.Operator), w.add(t, "bob", auth.Operator)
	annsCI, _ := w.token(t, ann, auth.NewToken{Name: "ci"})
	bobsCI, _ := w.token(t, bob, auth.NewToken{Name: "ci"})
	ownersCI, _ := w.token(t, w.owner, auth.NewToken{Name: "ci"})
	revoked := func() (ids []string) {
		t.Helper()
		tokens, err := w.Tokens(t.Context(), w.owner)
		wantCode(t, err, "")
		for _, tok := range tokens {
			if tok.RevokedAt != nil {
				ids = append(ids, tok.ID)
			}
		}
		return ids
	}
	wantCode(t, w.RevokeToken(t.Context(), ann, bobsCI.ID), problem.NotFound) // not hers
	wantCode(t, w.RevokeToken(t.Context(), w.owner, "ci"), "")                // his own first
	if got := revoked(); len(got) != 1 || got[0] != ownersCI.ID {
		t.Fatalf("revoked %v", got)
	}
	wantCode(t, w.RevokeToken(t.Context(), w.owner, "ci"), problem.Conflict) // ann's or bob's?
	wantCode(t, w.RevokeToken(t.Context(), w.owner, bobsCI.ID), "")
	wantCode(t, w.RevokeToken(t.Context(), w.owner, "ci"), "") // the only one left
	if got := revoked(); len(got) != 3 {
		t.Fatalf("revoked %v, want %v too", got, annsCI.ID)
	}
	wantCode(t, w.RevokeToken(t.Context(), w.owner, ""), problem.NotFound)
}

func TestNoSecretIsLogged(t *testing.T) {
	w := newWorld(t)
	wantCode(t, w.SetPassword(t.Context(), w.owner, "", "correct horse battery"), "")
	_, token := w.token(t, w.owner, auth.NewToken{})
	link, _, err := w.CreateLink(t.Context(), w.owner, "")
	wantCode(t, err, "")
	secrets := []string{token, link, "correct horse battery", "wrong horse battery", "badlinksecret"}
	login, err := w.Login(t.Context(), "uid12345", "correct horse battery", "r")
	wantCode(t, err, "")
	secrets = append(secrets, login.Cookie, login.Key)
	for _, try := range []func() error{
		func() error { return second(w.Login(t.Context(), "uid12345", "wrong horse battery", "r")) },
		func() error { return second(w.RedeemLink(t.Context(), "badlinksecret", "r")) },
		func() error { return second(w.Token(t.Context(), token+"x")) },
		func() error { return second(w.Cookie(t.Context(), login.Cookie, "badlinksecret")) },
	} {
		if err := try(); err == nil || contains(err.Error(), secrets) {
			t.Errorf("error %v", err)
		}
	}
	if w.logs.Len() == 0 {
		t.Error("failures are not logged")
	}
	for _, e := range w.logs.All() {
		line := e.Message
		for _, f := range e.Context {
			line += " " + f.Key + "=" + f.String
		}
		if contains(line, secrets) {
			t.Errorf("logged %q", line)
		}
	}
}

func contains(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

package auth_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// conn is an open connection that counts how often it was ended.
type conn struct{ ended atomic.Int32 }

func (c *conn) cancel() { c.ended.Add(1) }

// Each way to lose one's rights ends what they opened, and nothing else.
func TestBindEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, w *world, ann map[string]auth.Principal) error
		ends []string
	}{
		{"revoking the token", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.RevokeToken(t.Context(), w.owner, "one")
		}, []string{"token one"}},
		{"logging out", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.Logout(t.Context(), ann["login one"])
		}, []string{"login one"}},
		{"disabling", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.SetDisabled(t.Context(), w.owner, "ann", true)
		}, []string{"token one", "token two", "login one", "login two", "socket"}},
		{"another role", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.SetRole(t.Context(), w.owner, "ann", auth.Viewer)
		}, []string{"token one", "token two", "login one", "login two", "socket"}},
		{"the same role", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.SetRole(t.Context(), w.owner, "ann", auth.Operator)
		}, nil},
		{"her new password", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.SetPassword(t.Context(), ann["login one"], "", password+"2")
		}, []string{"login two"}},
		{"a password by an admin", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.SetPassword(t.Context(), w.owner, "ann", password+"2")
		}, []string{"login one", "login two"}},
		{"enabling", func(t *testing.T, w *world, ann map[string]auth.Principal) error {
			return w.SetDisabled(t.Context(), w.owner, "ann", false)
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			uid := 777
			if _, err := w.AddUser(t.Context(), w.owner, auth.NewUser{Name: "ann", UID: &uid, Password: password}); err != nil {
				t.Fatal(err)
			}
			peer, err := w.Peer(t.Context(), uid)
			wantCode(t, err, "")
			ann := map[string]auth.Principal{"socket": peer}
			for _, n := range []string{"one", "two"} {
				_, secret := w.token(t, peer, auth.NewToken{Name: n})
				if ann["token "+n], err = w.Token(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
				l, err := w.Login(t.Context(), "ann", password, "r")
				wantCode(t, err, "")
				ann["login "+n] = l.Principal
			}
			conns := map[string]*conn{}
			for name, p := range ann {
				conns[name] = &conn{}
				defer w.Bind(p, conns[name].cancel)()
			}
			owner, released := &conn{}, &conn{}
			defer w.Bind(w.owner, owner.cancel)()
			for _, p := range ann {
				release := w.Bind(p, released.cancel)
				release()
				release()
			}
			for range 2 { // the second time there is nothing left to end
				wantCode(t, tc.do(t, w, ann), "")
				for name, c := range conns {
					want := int32(0)
					for _, e := range tc.ends {
						if e == name {
							want = 1
						}
					}
					if got := c.ended.Load(); got != want {
						t.Errorf("%s ended %d times, want %d", name, got, want)
					}
				}
			}
			if owner.ended.Load() != 0 || released.ended.Load() != 0 {
				t.Error("ended somebody else's or a released connection")
			}
		})
	}
}

// A principal that was checked before its credential went, and is bound after.
func TestBindTooLate(t *testing.T) {
	w := newWorld(t)
	ann := w.add(t, "ann", auth.Operator)
	tok, secret := w.token(t, ann, auth.NewToken{})
	p, err := w.Token(t.Context(), secret)
	wantCode(t, err, "")
	wantCode(t, w.RevokeToken(t.Context(), w.owner, tok.ID), "")
	wantCode(t, w.SetRole(t.Context(), w.owner, "ann", auth.Viewer), "")
	for _, p := range []auth.Principal{p, ann, {}, {Via: auth.ViaToken, CredID: "t_none"}, {Via: auth.ViaCookie}} {
		c := &conn{}
		release := w.Bind(p, c.cancel)
		if n := c.ended.Load(); n != 1 {
			t.Errorf("%+v: ended %d times", p, n)
		}
		release()
	}
}

func TestBindExpires(t *testing.T) {
	w := newWorld(t)
	_, secret := w.token(t, w.owner, auth.NewToken{TTL: 30 * time.Millisecond})
	p, err := w.Token(t.Context(), secret)
	wantCode(t, err, "")
	ended := make(chan struct{})
	release := w.Bind(p, func() { close(ended) })
	defer release()
	<-ended
	w.clock.add(time.Second)
	c := &conn{}
	w.Bind(p, c.cancel)()
	if c.ended.Load() != 1 {
		t.Error("bound after its time")
	}
}

// pausing is a store whose next look at a token stops between reading and
// answering.
type pausing struct {
	auth.Store
	armed  atomic.Bool
	paused chan struct{}
	resume chan struct{}
	err    error
}

func (s *pausing) TokenByID(ctx context.Context, id string) (auth.Credential, error) {
	c, err := s.Store.TokenByID(ctx, id)
	if s.armed.CompareAndSwap(true, false) {
		close(s.paused)
		<-s.resume
	}
	if s.err != nil {
		return auth.Credential{}, s.err
	}
	return c, err
}

// The window: Bind has read that the token is good, and before it returns the
// token is revoked. A Bind that registered only now would have been missed.
func TestRevokedWhileBinding(t *testing.T) {
	st := &pausing{paused: make(chan struct{}), resume: make(chan struct{})}
	w := newWorld(t, func(s auth.Store) auth.Store { st.Store = s; return st })
	tok, secret := w.token(t, w.owner, auth.NewToken{})
	p, err := w.Token(t.Context(), secret)
	wantCode(t, err, "")
	st.armed.Store(true)
	c := &conn{}
	bound := make(chan func())
	go func() { bound <- w.Bind(p, c.cancel) }()
	<-st.paused
	wantCode(t, w.RevokeToken(t.Context(), w.owner, tok.ID), "")
	close(st.resume)
	defer (<-bound)()
	if n := c.ended.Load(); n != 1 {
		t.Errorf("ended %d times", n)
	}
}

// When the store cannot be asked, the answer is no.
func TestBindWithoutAStore(t *testing.T) {
	st := &pausing{}
	w := newWorld(t, func(s auth.Store) auth.Store { st.Store = s; return st })
	_, secret := w.token(t, w.owner, auth.NewToken{})
	p, err := w.Token(t.Context(), secret)
	wantCode(t, err, "")
	st.err = errors.New("the disk is gone")
	c := &conn{}
	w.Bind(p, c.cancel)()
	if c.ended.Load() != 1 {
		t.Error("let in")
	}
}

// Connections come while the token is revoked: none survives, each is ended
// once, and those that were refused before did not begin.
func TestBindRacesRevoke(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		tok, secret := w.token(t, w.owner, auth.NewToken{})
		var wg sync.WaitGroup
		begin := make(chan struct{})
		conns := make([]conn, 20)
		bound := make([]bool, len(conns))
		for i := range conns {
			wg.Go(func() {
				<-begin
				p, err := w.Token(context.Background(), secret)
				if err != nil {
					if !problem.Is(err, problem.Unauthenticated) {
						t.Error(err)
					}
					return
				}
				bound[i] = true
				release := w.Bind(p, conns[i].cancel)
				t.Cleanup(release)
			})
		}
		wg.Go(func() {
			<-begin
			if err := w.RevokeToken(context.Background(), w.owner, tok.ID); err != nil {
				t.Error(err)
			}
		})
		close(begin)
		wg.Wait()
		for i := range conns {
			want := int32(0)
			if bound[i] {
				want = 1
			}
			if got := conns[i].ended.Load(); got != want {
				t.Errorf("connection %d ended %d times, want %d", i, got, want)
			}
		}
	}
}

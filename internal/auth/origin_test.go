package auth_test

import (
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// A short-lived token makes a link, the link a web login, and that a token: in
// three steps somebody with a leaked token had a credential for a decade, and
// revoking the token changed nothing. All of it ends with the token, in time
// and by revocation, and what it opened is closed.
func TestWhatATokenMadeEndsWithIt(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	ann := w.add(t, "ann", auth.Operator)
	tok, secret := w.token(t, ann, auth.NewToken{Name: "leaked", TTL: time.Hour})
	p, err := w.Token(ctx, secret)
	wantCode(t, err, "")
	link, _, err := w.CreateLink(ctx, p, "")
	wantCode(t, err, "")
	unused, _, err := w.CreateLink(ctx, p, "")
	wantCode(t, err, "")
	login, err := w.RedeemLink(ctx, link, "192.0.2.1:1")
	wantCode(t, err, "")
	web, err := w.Cookie(ctx, login.Cookie, login.Key)
	wantCode(t, err, "")

	child, childSecret := w.token(t, web, auth.NewToken{Name: "child", TTL: auth.MaxTokenTTL})
	if !child.ExpiresAt.Equal(tok.ExpiresAt) {
		t.Errorf("ends %v, the token it came from %v", child.ExpiresAt, tok.ExpiresAt)
	}
	byChild, err := w.Token(ctx, childSecret)
	wantCode(t, err, "")
	_, own := w.token(t, ann, auth.NewToken{Name: "own"}) // made without the token
	ended := make(chan string, 3)
	for name, q := range map[string]auth.Principal{"web": web, "child": byChild, "token": p} {
		defer w.Bind(q, func() { ended <- name })()
	}

	wantCode(t, w.RevokeToken(ctx, w.owner, tok.ID), "")
	for range 3 {
		select {
		case <-ended:
		default:
			t.Error("something that the token opened stays open")
		}
	}
	wantCode(t, second(w.Cookie(ctx, login.Cookie, login.Key)), problem.Unauthenticated)
	wantCode(t, second(w.Token(ctx, childSecret)), problem.Unauthenticated)
	wantCode(t, second(w.RedeemLink(ctx, unused, "192.0.2.1:1")), problem.Unauthenticated)
	wantCode(t, second(w.Token(ctx, own)), "")
	// Requests that were under way when it was revoked.
	for _, q := range []auth.Principal{p, web} {
		wantCode(t, second(second2(w.CreateToken(ctx, q, auth.NewToken{}))), problem.Unauthenticated)
		wantCode(t, second(second2(w.CreateLink(ctx, q, ""))), problem.Unauthenticated)
	}
}

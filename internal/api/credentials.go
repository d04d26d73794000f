package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// keyHeader carries the half of a web login that a cookie does not: cookies
// ignore ports, so a server on another port of this host receives the cookie,
// but no other origin can read this origin's storage.
const keyHeader = "Ptyd-Key"

type peerKey struct{}

// WithPeer marks a connection's context as one of the Unix socket, whose peer
// runs as uid. It is for http.Server.ConnContext.
func WithPeer(ctx context.Context, uid int) context.Context {
	return context.WithValue(ctx, peerKey{}, uid)
}

// peer returns the uid behind a connection of the Unix socket.
func peer(ctx context.Context) (uid int, ok bool) {
	uid, ok = ctx.Value(peerKey{}).(int)
	return uid, ok
}

// cookieName differs by address and path, so that several daemons on one host
// do not overwrite each other's cookies.
func cookieName(addr, basePath string) string {
	sum := sha256.Sum256([]byte(addr + "\n" + basePath))
	return "ptyd_" + hex.EncodeToString(sum[:4])
}

// credential finds the principal of r. Given credentials decide alone: a bad
// token is an error, never a reason to look at the next kind.
func (s *Server) credential(r *http.Request) (auth.Principal, error) {
	if _, given := r.Header["Authorization"]; given {
		secret, err := bearer(r)
		if err != nil {
			return auth.Principal{}, err
		}
		return s.auth.Token(r.Context(), secret)
	}
	if uid, ok := peer(r.Context()); ok {
		if relayed(r) {
			return auth.Principal{}, problem.New(problem.Unauthenticated, "the socket's own rights are not for requests that a proxy or a browser passes on").
				WithHint("let the proxy use the TCP address")
		}
		return s.auth.Peer(r.Context(), uid)
	}
	cookie, err := s.cookie(r)
	if err != nil {
		return auth.Principal{}, err
	}
	if cookie == "" {
		return auth.Principal{}, problem.New(problem.Unauthenticated, "not logged in")
	}
	if err := s.checkOrigin(r, true); err != nil {
		return auth.Principal{}, err
	}
	return s.auth.Cookie(r.Context(), cookie, r.Header.Get(keyHeader))
}

// bearer takes the secret out of the one Authorization header.
func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	scheme, secret, _ := strings.Cut(values[0], " ")
	secret = strings.TrimSpace(secret)
	if len(values) != 1 || !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", problem.New(problem.Unauthenticated, "the Authorization header must be one Bearer token")
	}
	return secret, nil
}

// cookie returns the web login's cookie, "" when there is none.
func (s *Server) cookie(r *http.Request) (string, error) {
	found := r.CookiesNamed(s.cookieName)
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0].Value, nil
	default:
		// A server on another path or port planted a second one.
		return "", problem.New(problem.Unauthenticated, "the login cookie was sent twice")
	}
}

// setCookie gives the browser its half of a login, or takes it back when value
// is "".
func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, value string, expires time.Time) {
	c := &http.Cookie{
		Name: s.cookieName, Value: value, Path: s.base + "/", Expires: expires,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.hosts.secure(r),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// relayed reports whether r came through something that speaks for others: a
// proxy in front of the socket would lend its rights to everybody.
func relayed(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"} {
		if _, ok := r.Header[name]; ok {
			return true
		}
	}
	return false
}

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/wire"
)

// Which Host and Origin, with which credential, gets where.
func TestOriginMatrix(t *testing.T) {
	t.Parallel()
	d := start(t)
	b := d.loginByLink(t)
	_, secret := d.token(spec{"name": "matrix"})
	_, port, err := net.SplitHostPort(d.Addr())
	if err != nil {
		t.Fatal(err)
	}
	own := d.URL
	const cookie, bearer = "cookie", "bearer"
	for _, c := range []struct {
		name   string
		cred   string
		host   string
		header map[string]string
		want   int
		code   string
	}{
		{"own origin", cookie, "", map[string]string{"Origin": own, "Sec-Fetch-Site": "same-origin"}, 200, ""},
		{"no Origin, as a simple GET has none", cookie, "", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200, ""},
		{"null origin", cookie, "", map[string]string{"Origin": "null"}, 403, "origin_refused"},
		{"foreign origin", cookie, "", map[string]string{"Origin": "https://evil.example"}, 403, "origin_refused"},
		{"same host, other port", cookie, "", map[string]string{"Origin": "http://127.0.0.1:1"}, 403, "origin_refused"},
		{"cross-site by Sec-Fetch-Site", cookie, "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "origin_refused"},
		{"same-site subdomain", cookie, "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403, "origin_refused"},
		{"forwarded host is not believed", cookie, "", map[string]string{"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example"}, 403, "origin_refused"},
		{"rebinding: Host of an attacker", cookie, "evil.example:" + port, map[string]string{"Origin": "http://evil.example:" + port}, 421, "host_refused"},
		{"rebinding: Host without a port", cookie, "evil.example", nil, 421, "host_refused"},
		{"rebinding: name that ends like a loopback one", cookie, "localhost.evil.example:" + port, nil, 421, "host_refused"},
		{"rebinding: bearer does not help", bearer, "evil.example:" + port, nil, 421, "host_refused"},
		{"another address", bearer, "169.254.169.254", nil, 421, "host_refused"},
		{"loopback name", bearer, "localhost:" + port, nil, 200, ""},
		{"a bearer from any origin that could read it", bearer, "", map[string]string{"Origin": "https://tool.example"}, 200, ""},
	} {
		r := request{Path: "/v1/me", TCP: true, Host: c.host, Header: c.header}
		if c.cred == cookie {
			r.Cookie, r.Key = b.Cookie, b.Key
		} else {
			r.Token = secret
		}
		if a := d.call(r); a.Status != c.want || a.code() != c.code {
			t.Errorf("%s: got %v, want %d %s", c.name, a, c.want, c.code)
		}
	}
	// Hosts are checked before anything is served, the page included.
	for _, path := range []string{"/", "/healthz", "/v1/openapi.json", "/v1/ws"} {
		if a := d.call(request{Path: path, TCP: true, Host: "evil.example"}); a.Status != 421 {
			t.Errorf("%s for a foreign Host: %v", path, a)
		}
	}
	// Login is refused across origins too: nobody is logged in to somebody else's account.
	for _, h := range []map[string]string{{"Origin": "https://evil.example"}, {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "cross-site"}} {
		d.call(request{Method: "POST", Path: "/v1/login", TCP: true, Body: spec{"link": "x"}, Header: h}).want(t, 403, "origin_refused")
	}
}

// The same for the WebSocket, where the browser sends the cookie by itself.
func TestOriginMatrixOfTheSocket(t *testing.T) {
	t.Parallel()
	d := start(t)
	b := d.loginByLink(t)
	_, port, _ := net.SplitHostPort(d.Addr())
	for _, c := range []struct {
		name   string
		header http.Header
		want   int
	}{
		{"foreign origin", http.Header{"Origin": {"https://evil.example"}}, 403},
		{"null origin", http.Header{"Origin": {"null"}}, 403},
		{"other port", http.Header{"Origin": {"http://127.0.0.1:1"}}, 403},
		{"rebinding", http.Header{"Origin": {"http://evil.example:" + port}, "Host": {"evil.example:" + port}}, 421},
	} {
		c.header.Set("Cookie", b.Cookie.String())
		x, resp, err := d.dial(dialing{TCP: true, Header: c.header})
		if err == nil {
			x.close()
			t.Errorf("%s: the upgrade went through", c.name)
		} else if resp == nil || resp.StatusCode != c.want {
			t.Errorf("%s: %v, %v; want %d", c.name, resp, err, c.want)
		}
	}
	own := http.Header{"Origin": {d.URL}, "Cookie": {b.Cookie.String()}}
	hello := plainHello(strings.Repeat("1", 32))
	for name, key := range map[string]string{"no key": "", "wrong key": b.Key + "x", "the cookie as the key": b.Cookie.Value} {
		h := hello
		h.Key = key
		x := d.mustDial(dialing{TCP: true, Header: own, NoHello: true})
		if err := x.send(wire.Control(wire.TypeHello, 0, 0, h)); err != nil {
			t.Fatal(err)
		}
		if code, _ := x.end(t); code != wire.CloseUnauthenticated {
			t.Errorf("cookie with %s: ended with %d, want %d", name, code, wire.CloseUnauthenticated)
		}
	}
	// The key alone opens nothing.
	h := hello
	h.Key = b.Key
	if x, resp, err := d.dial(dialing{TCP: true, Header: http.Header{"Origin": {d.URL}}, Hello: &h}); err == nil {
		x.close()
		t.Error("the key without the cookie opened a connection")
	} else if resp != nil && resp.StatusCode != 101 && resp.StatusCode != 401 {
		t.Errorf("the key without the cookie: %v, %v", resp.Status, err)
	}
	x := d.mustDial(dialing{TCP: true, Header: own, Hello: &h})
	if x.srv.User == "" || x.srv.Role != "admin" {
		t.Errorf("HELLO says user %q, role %q", x.srv.User, x.srv.Role)
	}
}

// Cookies ignore ports: a server on another port of the same host receives the
// daemon's cookie. It has no key, and so it gets nowhere.
func TestStolenCookieIsWorthless(t *testing.T) {
	t.Parallel()
	d := start(t)
	b := d.loginByLink(t)
	var stolen *http.Cookie
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen, _ = r.Cookie(b.Cookie.Name)
	}))
	defer thief.Close()
	// What a browser does with a cookie of 127.0.0.1 on a visit to the thief.
	req, _ := http.NewRequest("GET", thief.URL, nil)
	req.AddCookie(b.Cookie)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if stolen == nil || stolen.Value != b.Cookie.Value {
		t.Fatal("the thief did not get the cookie: this test tests nothing")
	}
	for _, path := range []string{"/v1/me", "/v1/sessions", "/v1/status", "/v1/tokens", "/metrics"} {
		// The thief is no browser: it can claim any origin.
		r := request{Path: path, TCP: true, Cookie: stolen, Header: map[string]string{"Origin": d.URL, "Sec-Fetch-Site": "same-origin"}}
		d.call(r).want(t, 401, "unauthenticated")
		r.Key = "guess"
		d.call(r).want(t, 401, "unauthenticated")
		r.Key = b.Key
		r.Cookie = nil
		d.call(r).want(t, 401, "unauthenticated")
		r.Cookie = b.Cookie
		if a := d.call(r); a.Status != 200 {
			t.Errorf("%s with both halves: %v", path, a)
		}
	}
	d.call(request{Method: "POST", Path: "/v1/sessions", TCP: true, Cookie: stolen, Body: spec{"shell": true}, Header: map[string]string{"Origin": d.URL}}).want(t, 401, "unauthenticated")
	if n := len(d.sessions()); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// The page forbids what it does not need, and tells nothing to strangers.
func TestHeaders(t *testing.T) {
	t.Parallel()
	d := start(t)
	a := d.call(request{Path: "/", TCP: true})
	if a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("the page: %v", a)
	}
	csp := a.Header.Get("Content-Security-Policy")
	for _, need := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action"} {
		if !strings.Contains(csp, need) {
			t.Errorf("the policy lacks %q: %s", need, csp)
		}
	}
	for _, never := range []string{"unsafe-eval", "script-src 'self' 'unsafe-inline'", "*"} {
		if strings.Contains(csp, never) {
			t.Errorf("the policy holds %q: %s", never, csp)
		}
	}
	for k, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin"} {
		if got := a.Header.Get(k); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := d.call(request{Path: path, TCP: true}); a.Status != 200 || len(a.Body) > 64 {
			t.Errorf("%s: %v", path, a)
		}
	}
	for _, path := range []string{"/v1/status", "/v1/me", "/v1/sessions", "/metrics", "/v1/users", "/v1/audit"} {
		d.call(request{Path: path, TCP: true}).want(t, 401, "unauthenticated")
	}
	// A preflight from elsewhere is never answered with permission.
	p := d.call(request{Method: "OPTIONS", Path: "/v1/sessions", TCP: true, Header: map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}})
	if v := p.Header.Get("Access-Control-Allow-Origin"); v != "" {
		t.Errorf("a preflight is allowed for %q", v)
	}
	if s := fmt.Sprint(a.Header); strings.Contains(s, "Server:") {
		t.Errorf("the headers name the server: %s", s)
	}
}

package api

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// TestHostsAndOrigins is the matrix of who may address the daemon how, and from
// where a browser's requests may come.
func TestHostsAndOrigins(t *testing.T) {
	e := newEnv(t, func(o *Options) {
		o.AllowedHosts = []string{"box.lan", "fixed.lan:9000"}
		o.PublicURL = "https://term.example.com"
	})
	_, port, err := net.SplitHostPort(e.addr)
	check(t, err)
	page := e.login()
	token := e.user("bearer", auth.Operator)
	own := e.url
	for _, tt := range []struct {
		name   string
		method string
		cred   string // "cookie", "token" or none
		host   string
		header []string
		status int
		code   problem.Code
	}{
		{name: "own page", cred: "cookie", header: []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, status: 200},
		{name: "own page, a GET without Origin", cred: "cookie", header: []string{"Sec-Fetch-Site", "same-origin"}, status: 200},
		{name: "an old browser's GET says nothing", cred: "cookie", status: 200},
		{name: "own page, POST", method: "POST", cred: "cookie", header: []string{"Origin", own}, status: 201},
		{name: "POST with Sec-Fetch-Site alone", method: "POST", cred: "cookie", header: []string{"Sec-Fetch-Site", "same-origin"}, status: 201},
		{name: "POST that says nothing", method: "POST", cred: "cookie", status: 403, code: problem.OriginRefused},
		{name: "null origin", cred: "cookie", header: []string{"Origin", "null"}, status: 403, code: problem.OriginRefused},
		{name: "empty origin", method: "POST", cred: "cookie", header: []string{"Origin", ""}, status: 403, code: problem.OriginRefused},
		{name: "another site", cred: "cookie", header: []string{"Origin", "https://evil.example"}, status: 403, code: problem.OriginRefused},
		{name: "same host, other port", cred: "cookie", header: []string{"Origin", "http://127.0.0.1:1"}, status: 403, code: problem.OriginRefused},
		{name: "same host and port, other scheme", cred: "cookie", header: []string{"Origin", "https://" + e.addr}, status: 403, code: problem.OriginRefused},
		{name: "own origin as a prefix", cred: "cookie", header: []string{"Origin", own + ".evil.example"}, status: 403, code: problem.OriginRefused},
		{name: "another loopback name", cred: "cookie", header: []string{"Origin", "http://localhost:" + port}, status: 403, code: problem.OriginRefused},
		{name: "cross-site", cred: "cookie", header: []string{"Sec-Fetch-Site", "cross-site"}, status: 403, code: problem.OriginRefused},
		{name: "another port by Sec-Fetch-Site", cred: "cookie", header: []string{"Sec-Fetch-Site", "same-site"}, status: 403, code: problem.OriginRefused},
		{name: "an address that was typed", cred: "cookie", header: []string{"Sec-Fetch-Site", "none"}, status: 403, code: problem.OriginRefused},
		{name: "own origin, but Sec-Fetch-Site knows better", cred: "cookie", header: []string{"Origin", own, "Sec-Fetch-Site", "cross-site"}, status: 403, code: problem.OriginRefused},
		{name: "forwarded host is not believed", cred: "cookie", header: []string{"Origin", "https://evil.example", "X-Forwarded-Host", "evil.example"}, status: 403, code: problem.OriginRefused},
		{name: "public origin", cred: "cookie", header: []string{"Origin", "https://term.example.com"}, status: 200},
		{name: "public origin with http", cred: "cookie", header: []string{"Origin", "http://term.example.com"}, status: 403, code: problem.OriginRefused},

		{name: "rebinding", cred: "cookie", host: "evil.example:" + port, header: []string{"Origin", "http://evil.example:" + port}, status: 421, code: problem.HostRefused},
		{name: "rebinding with a token", cred: "token", host: "evil.example:" + port, status: 421, code: problem.HostRefused},
		{name: "rebinding, forwarded host", cred: "cookie", host: "evil.example", header: []string{"X-Forwarded-Host", e.addr}, status: 421, code: problem.HostRefused},
		{name: "a name that begins like a loopback one", host: "localhost.evil.example:" + port, status: 421, code: problem.HostRefused},
		{name: "an address of another machine", host: "169.254.169.254:" + port, status: 421, code: problem.HostRefused},
		{name: "loopback address, other port", host: "127.0.0.1:1", status: 421, code: problem.HostRefused},
		{name: "loopback address without a port", host: "127.0.0.1", status: 421, code: problem.HostRefused},
		{name: "loopback name", cred: "token", host: "localhost:" + port, status: 200},
		{name: "loopback name with a dot and capitals", cred: "token", host: "LocalHost.:" + port, status: 200},
		{name: "IPv6 loopback", cred: "token", host: "[::1]:" + port, status: 200},
		{name: "configured, any port", cred: "token", host: "box.lan:1234", status: 200},
		{name: "configured, no port", cred: "token", host: "box.lan", status: 200},
		{name: "configured with a port", cred: "token", host: "fixed.lan:9000", status: 200},
		{name: "configured with another port", cred: "token", host: "fixed.lan:9001", status: 421, code: problem.HostRefused},
		{name: "below a configured name", cred: "token", host: "a.box.lan", status: 421, code: problem.HostRefused},
		{name: "public name", cred: "token", host: "term.example.com", status: 200},
		{name: "public name with another port", cred: "token", host: "term.example.com:1", status: 421, code: problem.HostRefused},
		{name: "configured name behind TLS", cred: "cookie", host: "box.lan", header: []string{"Origin", "https://box.lan"}, status: 200},
		{name: "configured name without", cred: "cookie", host: "box.lan", header: []string{"Origin", "http://box.lan"}, status: 200},
		{name: "configured name, another's origin", cred: "cookie", host: "box.lan", header: []string{"Origin", "https://fixed.lan:9000"}, status: 403, code: problem.OriginRefused},

		{name: "a token needs no origin", method: "POST", cred: "token", status: 201},
		{name: "a token's owner may be any page", cred: "token", header: []string{"Origin", "https://tool.example", "Sec-Fetch-Site", "cross-site"}, status: 200},
		{name: "nobody", status: 401, code: problem.Unauthenticated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e.t = t
			r := req{path: "/v1/me", host: tt.host, header: with(nil, tt.header...)}
			if tt.method == "POST" {
				r.method, r.path = "POST", "/v1/tickets"
			}
			switch tt.cred {
			case "cookie":
				r.header = with(page, tt.header...)
			case "token":
				r.token = token
			}
			e.want(r, tt.status, tt.code)
		})
	}
	e.t = t
	// The list of hosts is before everything, the page and the probes included.
	for _, path := range []string{"/", "/assets/x.js", "/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/ws", "/v1/nothing"} {
		e.want(req{path: path, host: "evil.example"}, 421, problem.HostRefused)
	}
	// Nobody is logged in to another's account from outside.
	for _, h := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		e.want(req{method: "POST", path: "/v1/login", body: object{"link": "x"}, header: with(nil, h...)}, 403, problem.OriginRefused)
	}
	// No permission for other origins, ever.
	got := e.do(req{method: "OPTIONS", path: "/v1/sessions", header: map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}})
	for name := range got.header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s", name, got.header.Get(name))
		}
	}
}

// TestCookieNeedsItsKey: a server on another port of the host gets the cookie.
func TestCookieNeedsItsKey(t *testing.T) {
	e := newEnv(t)
	page, other := e.login(), e.login()
	thief := []string{"Origin", e.url, "Sec-Fetch-Site", "same-origin"} // it can say what it likes
	for name, header := range map[string]map[string]string{
		"no key":        {"Cookie": page["Cookie"]},
		"a guess":       {"Cookie": page["Cookie"], keyHeader: "guess"},
		"another's key": {"Cookie": page["Cookie"], keyHeader: other[keyHeader]},
		"the cookie":    {"Cookie": page["Cookie"], keyHeader: strings.SplitN(page["Cookie"], "=", 2)[1]},
		"key alone":     {keyHeader: page[keyHeader]},
		"two cookies":   {"Cookie": page["Cookie"] + "; " + other["Cookie"], keyHeader: page[keyHeader]},
		"another name":  {"Cookie": "x" + page["Cookie"], keyHeader: page[keyHeader]},
	} {
		for _, path := range []string{"/v1/me", "/v1/sessions", "/metrics"} {
			got := e.do(req{path: path, header: with(header, thief...)})
			if got.status != 401 {
				t.Errorf("%s with %s: %d %s", path, name, got.status, got.body)
			}
		}
	}
	e.want(req{path: "/v1/me", header: page}, 200, "")
	// Logging out ends both halves.
	e.want(req{method: "POST", path: "/v1/logout", header: with(page, "Origin", e.url)}, 204, "")
	e.want(req{path: "/v1/me", header: page}, 401, problem.Unauthenticated)
	e.want(req{path: "/v1/me", header: other}, 200, "")
}

// TestTokenDecidesAlone: with an Authorization header nothing else is looked at.
func TestTokenDecidesAlone(t *testing.T) {
	e := newEnv(t)
	page := e.login()
	weak := e.user("weak", auth.Viewer)
	var me Me
	for _, socket := range []bool{false, true} {
		for _, bad := range []string{"Bearer ptyd_" + strings.Repeat("A", 43), "Bearer ", "Bearer", "", "Basic cm9vdDo=", "Bearer a b", "bearer"} {
			e.want(req{path: "/v1/me", socket: socket, header: with(page, "Authorization", bad)}, 401, problem.Unauthenticated)
		}
		e.do(req{path: "/v1/me", socket: socket, token: weak, header: page}).into(t, &me)
		if me.User.Name != "weak" || me.User.Role != auth.Viewer || me.Via != auth.ViaToken {
			t.Errorf("a token beside other credentials is %+v", me)
		}
		e.want(req{method: "POST", path: "/v1/sessions", socket: socket, token: weak, header: page, body: object{"shell": true}}, 403, problem.Forbidden)
	}
	if got := e.do(req{path: "/v1/me"}); got.header.Get("WWW-Authenticate") == "" {
		t.Error("401 without WWW-Authenticate")
	}
}

// TestSocketPeers: the owner and root, and nobody who is passed on by a proxy.
func TestSocketPeers(t *testing.T) {
	e := newEnv(t)
	ask := func(uid int, header map[string]string) int {
		r := httptest.NewRequestWithContext(WithPeer(t.Context(), uid), "GET", "/v1/me", nil)
		for k, v := range header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		e.s.ServeHTTP(w, r)
		return w.Code
	}
	token := map[string]string{"Authorization": "Bearer " + e.user("far", auth.Operator)}
	_, err := e.auth.AddUser(t.Context(), e.owner, auth.NewUser{Name: "near", UID: ptr(12345)})
	check(t, err)
	for _, tt := range []struct {
		name   string
		uid    int
		header map[string]string
		want   int
	}{
		{"owner", os.Getuid(), nil, 200},
		{"root", 0, nil, 200},
		{"another user", 12345, nil, 403},
		{"another user with a token", 12345, token, 403},
		{"unknown", -1, nil, 403},
		{"owner with a token", os.Getuid(), token, 200},
		{"through a proxy", os.Getuid(), map[string]string{"X-Forwarded-For": "192.0.2.1"}, 401},
		{"through a proxy, by the standard", os.Getuid(), map[string]string{"Forwarded": "for=192.0.2.1"}, 401},
		{"through a proxy's Via", os.Getuid(), map[string]string{"Via": "1.1 proxy"}, 401},
		{"a browser's", os.Getuid(), map[string]string{"Origin": "http://127.0.0.1"}, 401},
		{"a browser's GET", os.Getuid(), map[string]string{"Sec-Fetch-Site": "same-origin"}, 401},
	} {
		if got := ask(tt.uid, tt.header); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	// A proxy in front of the socket cannot be logged in to either.
	e.want(req{method: "POST", path: "/v1/login", socket: true, body: object{"link": "x"}}, 400, problem.InvalidArgument)
}

func ptr[T any](v T) *T { return &v }

// TestUpgrade: which upgrades get to the WebSocket, and with what.
func TestUpgrade(t *testing.T) {
	e := newEnv(t)
	page := e.login()
	token, agent := e.user("watcher", auth.Viewer), e.user("robot", auth.Agent)
	up := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Protocol": "other, ptyd.v1", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}
	cookie := map[string]string{"Cookie": page["Cookie"]}
	for _, tt := range []struct {
		name   string
		r      req
		status int // 418: it got there
		user   string
		cookie bool
	}{
		{"token", req{token: token}, 418, "watcher", false},
		{"socket", req{socket: true}, 418, e.owner.UserName, false},
		{"token on the socket", req{socket: true, token: token}, 418, "watcher", false},
		{"token from another origin", req{token: token, header: with(nil, "Origin", "https://evil.example")}, 403, "", false},
		{"role", req{token: agent}, 403, "", false},
		{"bad token", req{token: "ptyd_bad"}, 401, "", false},
		{"bad token on the socket", req{socket: true, token: "ptyd_bad"}, 401, "", false},
		{"cookie", req{header: with(cookie, "Origin", e.url)}, 418, "", true},
		{"cookie from another port", req{header: with(cookie, "Origin", "http://127.0.0.1:1")}, 403, "", false},
		{"cookie, null origin", req{header: with(cookie, "Origin", "null")}, 403, "", false},
		{"cookie without an origin", req{header: cookie}, 403, "", false},
		{"cookie with Sec-Fetch-Site alone", req{header: with(cookie, "Sec-Fetch-Site", "same-origin")}, 403, "", false},
		{"cookie, cross-site", req{header: with(cookie, "Origin", e.url, "Sec-Fetch-Site", "cross-site")}, 403, "", false},
		{"a ticket will come", req{header: with(nil, "Origin", e.url)}, 418, "", false},
		{"a ticket from another origin", req{header: with(nil, "Origin", "https://evil.example")}, 403, "", false},
		{"proxy on the socket", req{socket: true, header: with(nil, "X-Forwarded-For", "192.0.2.1")}, 401, "", false},
		{"a secret in the address", req{path: "/v1/ws?token=" + token}, 400, "", false},
		{"another protocol", req{token: token, header: with(nil, "Sec-WebSocket-Protocol", "chat")}, 400, "", false},
		{"no upgrade", req{token: token, header: with(nil, "Upgrade", "h2c")}, 400, "", false},
	} {
		tt.r.header = with(up, flat(tt.r.header)...)
		if tt.r.path == "" {
			tt.r.path = "/v1/ws"
		}
		before := e.ws.served
		got := e.do(tt.r)
		if got.status != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.name, got.status, got.body, tt.status)
			continue
		}
		if reached := e.ws.served > before; reached != (tt.status == 418) {
			t.Errorf("%s: reached the WebSocket: %v", tt.name, reached)
		} else if reached {
			user := ""
			if e.ws.p != nil {
				user = e.ws.p.UserName
			}
			if user != tt.user || (e.ws.cookie != "") != tt.cookie {
				t.Errorf("%s: served as %q with cookie %v", tt.name, user, e.ws.cookie != "")
			}
		}
	}
}

func flat(m map[string]string) []string {
	var out []string
	for k, v := range m {
		out = append(out, k, v)
	}
	return out
}

// TestLoginCookie looks at what a browser is given.
func TestLoginCookie(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		host   string
		path   string
		secure bool
	}{
		{"plain", func(*Options) {}, "", "/", false},
		{"base path", func(o *Options) { o.BasePath = "/a/b" }, "", "/a/b/", false},
		{"behind TLS", func(o *Options) { o.PublicURL = "https://term.example.com" }, "term.example.com", "/", true},
		{"behind TLS, reached directly", func(o *Options) { o.PublicURL = "https://term.example.com" }, "", "/", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnv(t, tt.change)
			secret, _, err := e.auth.CreateLink(t.Context(), e.owner, "")
			check(t, err)
			got := e.want(req{method: "POST", path: "/v1/login", body: object{"link": secret}, host: tt.host}, 200, "")
			c := (&http.Response{Header: got.header}).Cookies()
			if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Secure != tt.secure || c[0].Path != tt.path || c[0].Domain != "" {
				t.Fatalf("cookies %+v", c)
			}
			if c[0].Name != cookieName(e.addr, e.s.base) || len(c[0].Name) != len("ptyd_")+8 {
				t.Errorf("name %q", c[0].Name)
			}
			var in LoggedIn
			got.into(t, &in)
			if strings.Contains(string(got.body), c[0].Value) || in.Key == c[0].Value {
				t.Error("the body holds the cookie")
			}
			e.want(req{method: "POST", path: "/v1/login", body: object{"link": secret}, host: tt.host}, 401, problem.Unauthenticated)
		})
	}
	if cookieName("127.0.0.1:1", "") == cookieName("127.0.0.1:2", "") || cookieName("127.0.0.1:1", "") == cookieName("127.0.0.1:1", "/a") {
		t.Error("two daemons of one host share a cookie")
	}
}

// TestHeaderLimit: headers have a bound.
func TestHeaderLimit(t *testing.T) {
	e := newEnv(t)
	got := e.do(req{path: "/healthz", header: map[string]string{"X-Long": strings.Repeat("a", 64<<10)}})
	if got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers: %d", got.status)
	}
}

package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

var builtPage = fstest.MapFS{
	"index.html":        {Data: []byte("<!doctype html><script type=module src=./assets/a-1234.js></script>")},
	"favicon.svg":       {Data: []byte("<svg/>")},
	".gitkeep":          {},
	"assets/a-1234.js":  {Data: []byte("import './b.js'")},
	"assets/f-1.woff2":  {Data: []byte("font")},
	"assets/.hidden.js": {Data: []byte("hidden")},
}

func TestPage(t *testing.T) {
	for _, base := range []string{"", "/some/where"} {
		e := newEnv(t, func(o *Options) { o.Page, o.BasePath = builtPage, base })
		for _, tt := range []struct {
			path, contentType, cache, body string
		}{
			{"/", "text/html; charset=utf-8", "no-store", "<!doctype"},
			{"/index.html", "text/html; charset=utf-8", "no-store", "<!doctype"},
			{"/favicon.svg", "image/svg+xml", "no-cache", "<svg/>"},
			{"/assets/a-1234.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "import"},
			{"/assets/f-1.woff2", "font/woff2", "public, max-age=31536000, immutable", "font"},
		} {
			got := e.want(req{path: tt.path}, 200, "")
			if ct, cc := got.header.Get("Content-Type"), got.header.Get("Cache-Control"); ct != tt.contentType || cc != tt.cache || !strings.HasPrefix(string(got.body), tt.body) {
				t.Errorf("%s%s: %q, %q, %q", base, tt.path, ct, cc, got.body)
			}
			if tag := got.header.Get("ETag"); tag != "" {
				e.want(req{path: tt.path, header: map[string]string{"If-None-Match": tag}}, 304, "")
				e.want(req{path: tt.path, header: map[string]string{"If-None-Match": `"other"`}}, 200, "")
			} else if tt.cache != "no-store" {
				t.Errorf("%s has no ETag", tt.path)
			}
			if head := e.do(req{method: "HEAD", path: tt.path}); head.status != 200 || len(head.body) != 0 || head.header.Get("Content-Length") != got.header.Get("Content-Length") {
				t.Errorf("HEAD %s: %d %v", tt.path, head.status, head.header)
			}
		}
		for _, path := range []string{"/.gitkeep", "/assets/.hidden.js", "/assets/", "/assets", "/none.js", "/v1", "/v1/none", "/%2e%2e/etc/passwd", "/assets/%2e%2e%2findex.html"} {
			if got := e.do(req{path: path}); got.status != 404 {
				t.Errorf("%s%s: %d %s", base, path, got.status, got.body)
			}
		}
	}
}

func TestCompression(t *testing.T) {
	text := strings.Repeat("const x = 1;\n", 1000)
	e := newEnv(t, func(o *Options) {
		o.Page = fstest.MapFS{"index.html": {Data: []byte("x")}, "assets/a.js": {Data: []byte(text)}, "assets/short.js": {Data: []byte("x")}}
	})
	for accept, compressed := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "deflate , gzip": true, "": false, "identity": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false, "xgzip": false,
	} {
		for range 2 { // made, then kept
			got := e.want(req{path: "/assets/a.js", header: map[string]string{"Accept-Encoding": accept}}, 200, "")
			if got.header.Get("Vary") != "Accept-Encoding" {
				t.Error("a cache would mix up the forms")
			}
			if is := got.header.Get("Content-Encoding") == "gzip"; is != compressed {
				t.Errorf("Accept-Encoding %q: compressed %v", accept, is)
				continue
			}
			body := got.body
			if compressed {
				z, err := gzip.NewReader(bytes.NewReader(body))
				check(t, err)
				body, err = io.ReadAll(z)
				check(t, err)
			}
			if string(body) != text {
				t.Errorf("Accept-Encoding %q: another content", accept)
			}
			tag := got.header.Get("ETag")
			e.want(req{path: "/assets/a.js", header: map[string]string{"Accept-Encoding": accept, "If-None-Match": tag}}, 304, "")
			other := "gzip"
			if compressed {
				other = "identity"
			}
			e.want(req{path: "/assets/a.js", header: map[string]string{"Accept-Encoding": other, "If-None-Match": tag}}, 200, "")
		}
	}
	if got := e.do(req{path: "/assets/short.js", header: map[string]string{"Accept-Encoding": "gzip"}}); got.header.Get("Content-Encoding") != "" || string(got.body) != "x" {
		t.Errorf("a short file: %v %q", got.header, got.body)
	}
}

func TestBasePath(t *testing.T) {
	e := newEnv(t, func(o *Options) { o.BasePath, o.Page = "/some/where", builtPage })
	root := *e
	root.url = "http://" + e.addr
	got := root.do(req{path: "/some/where"})
	if got.status != 308 || got.header.Get("Location") != "/some/where/" {
		t.Errorf("without the slash: %d to %q", got.status, got.header.Get("Location"))
	}
	for _, path := range []string{"/", "/v1/me", "/healthz", "/some/wherever/", "/some"} {
		root.want(req{path: path}, 404, problem.NotFound)
	}
	// The mux's own redirect to the clean path would lead out of the base.
	for _, path := range []string{"//v1//me", "/v1/./me", "/v1/../../me", "//", "/v1/me//"} {
		e.want(req{path: path}, 404, problem.NotFound)
	}
	e.want(req{path: "//v1/me", socket: true}, 404, problem.NotFound)
	e.want(req{path: "/"}, 200, "")
	e.want(req{path: "/healthz"}, 200, "")
	// Who comes by the socket need not know the base path.
	e.want(req{path: "/v1/me", socket: true}, 200, "")
	e.want(req{path: "/some/where/v1/me", socket: true}, 200, "")
	s := e.create("", object{"argv": []string{"cat"}, "name": "a"})
	e.want(req{path: "/some/where/v1/sessions/" + s.ID, socket: true}, 200, "")
	var l Link
	e.do(req{method: "POST", path: "/v1/login-links", socket: true}).into(t, &l)
	if !strings.HasPrefix(l.URL, "http://"+e.addr+"/some/where/#login=") {
		t.Errorf("link %q", l.URL)
	}
}

func TestLinksStartWithTheAddressPeopleUse(t *testing.T) {
	e := newEnv(t, func(o *Options) { o.AllowedHosts = []string{"box.lan"} })
	token := e.user("bob", auth.Operator)
	var l Link
	e.do(req{method: "POST", path: "/v1/login-links", token: token, host: "box.lan:80"}).into(t, &l)
	if !strings.HasPrefix(l.URL, "http://box.lan:80/#login=") {
		t.Errorf("link %q", l.URL)
	}
	public := newEnv(t, func(o *Options) { o.PublicURL = "https://term.example.com/x" })
	public.do(req{method: "POST", path: "/v1/login-links", socket: true}).into(t, &l)
	if !strings.HasPrefix(l.URL, "https://term.example.com/x/#login=") {
		t.Errorf("link %q", l.URL)
	}
	for addr, want := range map[string]string{"0.0.0.0:1": "127.0.0.1:1", "[::]:1": "127.0.0.1:1", ":1": "127.0.0.1:1", "10.0.0.1:1": "10.0.0.1:1", "[::1]:1": "[::1]:1"} {
		if got := localHost(addr); got != want {
			t.Errorf("on this machine %s is %s, want %s", addr, got, want)
		}
	}
}

// TestWildcardListener: on all addresses, the one a client used is a name.
func TestWildcardListener(t *testing.T) {
	e := newEnv(t, func(o *Options) {
		_, port, _ := strings.Cut(o.Addr, ":")
		o.Addr = "0.0.0.0:" + port
	})
	_, port, _ := strings.Cut(e.addr, ":")
	e.want(req{path: "/healthz", host: "127.0.0.1:" + port}, 200, "")
	e.want(req{path: "/healthz", host: "localhost:" + port}, 200, "")
	e.want(req{path: "/healthz", host: "192.0.2.1:" + port}, 421, problem.HostRefused)
	e.want(req{path: "/healthz", host: "evil.example:" + port}, 421, problem.HostRefused)
}

func TestPlainPage(t *testing.T) {
	e := newEnv(t)
	got := e.want(req{path: "/"}, 200, "")
	if !strings.Contains(string(got.body), "make build") || !strings.Contains(got.header.Get("Content-Security-Policy"), "style-src 'sha256-") {
		t.Errorf("%s\n%s", got.header, got.body)
	}
	e.want(req{path: "/assets/a.js"}, 404, problem.NotFound)
}

func TestSecurityHeaders(t *testing.T) {
	e := newEnv(t, func(o *Options) { o.Page, o.PublicURL = builtPage, "https://term.example.com" })
	for _, path := range []string{"/", "/assets/a-1234.js", "/v1/me", "/healthz", "/none", "/v1/openapi.json"} {
		got := e.do(req{path: path})
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.header.Get(name))
			}
		}
		csp := got.header.Get("Content-Security-Policy")
		for _, need := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(csp, need) {
				t.Errorf("%s: the policy lacks %s: %s", path, need, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s: the policy is loose: %s", path, csp)
		}
	}
	// On plain http under another name browsers would log an error about it.
	plain := newEnv(t, func(o *Options) { o.Page, o.AllowedHosts = builtPage, []string{"box.lan"} })
	if got := plain.want(req{path: "/", host: "box.lan"}, 200, "").header.Get("Cross-Origin-Opener-Policy"); got != "" {
		t.Errorf("plain http has the opener policy %q", got)
	}
	csp := e.do(req{path: "/"}).header.Get("Content-Security-Policy")
	for _, need := range []string{"script-src 'self';", "style-src 'self';", "require-trusted-types-for 'script'", "trusted-types 'none'", "connect-src 'self' ws://" + e.addr + " wss://term.example.com;"} {
		if !strings.Contains(csp, need) {
			t.Errorf("the page's policy lacks %q: %s", need, csp)
		}
	}
}

// TestDashboard holds docs/grafana/ptyd.json and the metrics to each other.
func TestDashboard(t *testing.T) {
	e := newEnv(t)
	data, err := os.ReadFile("../../docs/grafana/ptyd.json")
	check(t, err)
	var board struct {
		Title, UID string
		Panels     []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	check(t, json.Unmarshal(data, &board))
	used := map[string]bool{}
	name := regexp.MustCompile(`\b(ptyd_[a-z_]+|go_[a-z_]+|process_[a-z_]+)\b`)
	for _, p := range board.Panels {
		if p.Title == "" {
			t.Error("a panel has no title")
		}
		for _, target := range p.Targets {
			found := name.FindAllString(target.Expr, -1)
			if len(found) == 0 {
				t.Errorf("panel %q: no metric in %q", p.Title, target.Expr)
			}
			for _, n := range found {
				used[n] = true
			}
		}
	}
	e.want(req{path: "/v1/me", socket: true}, 200, "")
	shown := map[string]bool{}
	text := string(e.want(req{path: "/metrics", socket: true}, 200, "").body)
	for line := range strings.Lines(text) {
		if of, ok := strings.CutPrefix(line, "# TYPE "); ok {
			n, _, _ := strings.Cut(of, " ")
			shown[n] = true
		}
	}
	for n := range used {
		if !shown[n] {
			t.Errorf("the dashboard uses %s, which /metrics does not show", n)
		}
	}
	for n := range shown {
		if strings.HasPrefix(n, "ptyd_") && !used[n] {
			t.Errorf("no panel shows %s", n)
		}
	}
	if !strings.Contains(text, `ptyd_http_requests_total{code="200",route="GET /v1/me"} 1`) {
		t.Error("the request is not counted by route and code")
	}
	for _, n := range []string{"go_goroutines", "process_open_fds", "ptyd_build_info"} {
		if !shown[n] {
			t.Errorf("/metrics lacks %s", n)
		}
	}
	// Labels come from the table, whatever is asked for.
	for _, path := range []string{"/v1/sessions/a", "/v1/sessions/b", "/x", "/y"} {
		e.do(req{path: path, socket: true})
	}
	text = string(e.want(req{path: "/metrics", socket: true}, 200, "").body)
	if strings.Contains(text, "sessions/a\"") || strings.Contains(text, "\"/x") {
		t.Error("a path became a label")
	}
}

func TestMetricsOff(t *testing.T) {
	e := newEnv(t, func(o *Options) { o.Metrics = nil })
	e.want(req{path: "/metrics", socket: true}, 404, problem.NotFound)
	e.want(req{path: "/metrics"}, 401, problem.Unauthenticated)
}

func TestReadiness(t *testing.T) {
	d := &fakeDaemon{}
	e := newEnv(t, func(o *Options) { o.Daemon = d })
	e.want(req{path: "/readyz"}, 200, "")
	d.mu.Lock()
	d.ready = os.ErrClosed
	d.mu.Unlock()
	if got := e.want(req{path: "/readyz"}, 503, problem.Unavailable); strings.Contains(string(got.body), "closed") {
		t.Errorf("the probe tells details: %s", got.body)
	}
	e.want(req{path: "/healthz"}, 200, "")
}

// TestListPages: pages follow each other without a gap or a repeat.
func TestListPages(t *testing.T) {
	e := newEnv(t)
	var want []string
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		e.user(n, auth.Viewer)
		want = append(want, n)
	}
	slices.Sort(want)
	for _, path := range []string{"/v1/users", "/v1/tokens"} {
		var got []string
		cursor := ""
		for {
			var l list[struct{ Name string }]
			e.do(req{path: path + "?limit=2" + cursor, socket: true}).into(t, &l)
			for _, it := range l.Items {
				if it.Name != e.owner.UserName {
					got = append(got, it.Name)
				}
			}
			if l.NextCursor == "" {
				break
			}
			if len(l.Items) != 2 {
				t.Errorf("%s: a page of %d that is not the last", path, len(l.Items))
			}
			cursor = "&cursor=" + l.NextCursor
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

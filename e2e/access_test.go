package e2e

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/wire"
)

// Revoking a token, disabling its user and logging out end what is open.
func TestCredentialEndsConnections(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", "echo up; cat")
	d.call(request{Method: "POST", Path: "/v1/users", Body: spec{"name": "carol", "role": "admin"}}).into(t, &struct{}{})
	id, first := d.token(spec{"name": "first", "user": "carol", "role": "admin"})
	_, second := d.token(spec{"name": "second", "user": "carol", "role": "admin"})
	open := func(secret string) *conn {
		c := d.mustDial(dialing{TCP: true, Token: secret})
		c.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24})
		return c
	}
	ended := func(c *conn, what string) {
		t.Helper()
		if code, reason := c.end(t); code != wire.CloseUnauthenticated {
			t.Errorf("%s: the connection ended with %d %s, want %d", what, code, reason, wire.CloseUnauthenticated)
		}
	}
	a, b := open(first), open(second)
	if r := d.call(request{Method: "DELETE", Path: "/v1/tokens/" + id}); r.Status != 204 {
		t.Fatal(r)
	}
	ended(a, "revoked")
	d.call(request{Path: "/v1/me", TCP: true, Token: first}).want(t, 401, "unauthenticated")
	// The other token of the same user goes on.
	if err := b.send(wire.Frame{Type: wire.TypePing, Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	b.until(t, wire.TypePong)
	if r := d.call(request{Method: "PATCH", Path: "/v1/users/carol", Body: spec{"disabled": true}}); r.Status >= 300 {
		t.Fatal(r)
	}
	ended(b, "disabled")
	d.call(request{Path: "/v1/me", TCP: true, Token: second}).want(t, 401, "unauthenticated")
	if x, _, err := d.dial(dialing{TCP: true, Token: second}); err == nil {
		x.close()
		t.Error("a disabled user's token opens connections")
	}

	page := d.loginByLink(t)
	h := plainHello(strings.Repeat("2", 32))
	h.Key = page.Key
	c := d.mustDial(dialing{TCP: true, Header: map[string][]string{"Cookie": {page.Cookie.String()}, "Origin": {d.URL}}, Hello: &h})
	if r := d.call(request{Method: "POST", Path: "/v1/logout", TCP: true, Cookie: page.Cookie, Key: page.Key, Header: map[string]string{"Origin": d.URL}}); r.Status != 204 {
		t.Fatal(r)
	}
	ended(c, "logged out")
	d.call(request{Path: "/v1/me", TCP: true, Cookie: page.Cookie, Key: page.Key, Header: map[string]string{"Origin": d.URL}}).want(t, 401, "unauthenticated")
	if got := d.session(s.ID); got.State != "running" {
		t.Errorf("the session is %s", got.State)
	}
}

// A token decides alone: a bad one is an error also where the peer's uid would do.
func TestTokenIsNeverAFallback(t *testing.T) {
	t.Parallel()
	d := start(t)
	for _, bad := range []string{"ptyd_" + strings.Repeat("A", 43), "nonsense", "ptyd_"} {
		d.call(request{Path: "/v1/me", Token: bad}).want(t, 401, "unauthenticated")
		if r := d.CLIWith(cliOptions{Env: []string{"PTYD_TOKEN=" + bad}}, "ls"); r.Code != 125 || r.Stdout != "" {
			t.Errorf("ls with a bad token: %v", r)
		}
		if x, _, err := d.dial(dialing{Token: bad}); err == nil {
			x.close()
			t.Errorf("the token %q opened a connection on the socket", bad)
		}
	}
	id, secret := d.token(spec{"name": "weak", "role": "viewer"})
	var me struct {
		User struct{ Role string }
		Via  string
	}
	d.call(request{Path: "/v1/me", Token: secret}).into(t, &me)
	if me.User.Role != "viewer" || me.Via != "token" {
		t.Errorf("a viewer's token on the admin's socket is %+v", me)
	}
	d.call(request{Method: "POST", Path: "/v1/sessions", Token: secret, Body: spec{"shell": true}}).want(t, 403, "forbidden")
	// It may watch what its user may see, and not type.
	s := d.run("bash", "-c", "stty -echo; echo up; cat")
	d.waitText(s.ID, "up")
	weak := d.mustDial(dialing{Token: secret})
	if a := weak.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24}); !a.ReadOnly {
		t.Error("a viewer's channel is not read-only")
	}
	if err := weak.send(wire.Frame{Type: wire.TypeInput, Channel: 1, Payload: []byte("typed by a viewer\n")}); err != nil {
		t.Fatal(err)
	}
	if bye := weak.detached(t, 1); bye.Code != wire.CloseForbidden {
		t.Errorf("a viewer who types: %+v", bye)
	}
	for _, r := range []request{
		{Method: "POST", Path: "/v1/sessions/" + s.ID + "/input", Body: spec{"text": "typed by a viewer\n"}},
		{Method: "POST", Path: "/v1/sessions/" + s.ID + "/resize", Body: spec{"cols": 100, "rows": 30}},
		{Method: "POST", Path: "/v1/sessions/" + s.ID + "/signal", Body: spec{"signal": "KILL"}},
		{Method: "POST", Path: "/v1/sessions/" + s.ID + "/close", Body: spec{}},
		{Method: "PATCH", Path: "/v1/sessions/" + s.ID, Body: spec{"name": "mine"}},
		{Method: "DELETE", Path: "/v1/sessions/" + s.ID},
		{Method: "POST", Path: "/v1/tokens", Body: spec{"role": "admin"}},
		{Method: "POST", Path: "/v1/login-links", Body: spec{}},
	} {
		r.Token = secret
		if a := d.call(r); a.Status != 403 && r.Path != "/v1/tokens" && r.Path != "/v1/login-links" || a.Status < 400 {
			t.Errorf("a viewer's token, %s %s: %v", r.Method, r.Path, a)
		}
	}
	if out := string(d.output(s.ID, 0)); strings.Contains(out, "typed by a viewer") {
		t.Error("a viewer typed")
	}
	if r := d.call(request{Method: "DELETE", Path: "/v1/tokens/" + id}); r.Status != 204 {
		t.Fatal(r)
	}
	d.call(request{Path: "/v1/me", Token: secret}).want(t, 401, "unauthenticated")
}

// Tokens by the command line: printed alone, read from a variable, a file or
// standard input, never stored in clear.
func TestTokenCommands(t *testing.T) {
	t.Parallel()
	d := start(t)
	out := d.mustCLI("token", "create", "--name", "remote", "--role", "operator")
	secret := strings.TrimSuffix(out, "\n")
	if !strings.HasPrefix(secret, "ptyd_") || strings.ContainsAny(secret, " \n") {
		t.Fatalf("token create printed %q", out)
	}
	far := func(o cliOptions, args ...string) result {
		o.NoDir = true
		return d.CLIWith(o, append([]string{"--url", d.URL}, args...)...)
	}
	id := strings.TrimSpace(d.mustCLI("run", "-d", "--name", "mine", "--", "sleep", "1000"))
	if r := far(cliOptions{Env: []string{"PTYD_TOKEN=" + secret}}, "ls", "--json"); r.Code != 0 || !strings.Contains(r.Stdout, id) {
		t.Errorf("by variable: %v", r)
	}
	file := stateDir(t) + "/token"
	writeFile(t, file, secret+"\n")
	if r := far(cliOptions{}, "--token-file", file, "ls", "--json"); r.Code != 0 || !strings.Contains(r.Stdout, id) {
		t.Errorf("by file: %v", r)
	}
	if r := far(cliOptions{Stdin: secret + "\n"}, "--token-file", "-", "ls", "--json"); r.Code != 0 || !strings.Contains(r.Stdout, id) {
		t.Errorf("by standard input: %v", r)
	}
	if r := far(cliOptions{}, "ls"); r.Code != 125 || !strings.Contains(r.Stderr, "PTYD_TOKEN") {
		t.Errorf("without a token: %v", r)
	}
	if r := far(cliOptions{Env: []string{"PTYD_TOKEN=" + secret}}, "run", "--", "bash", "-c", "exit 9"); r.Code != 9 {
		t.Errorf("run from afar: %v", r)
	}
	if ls := d.mustCLI("token", "ls"); !strings.Contains(ls, "remote") || strings.Contains(ls, secret) {
		t.Errorf("token ls printed %q", ls)
	}
	d.mustCLI("token", "revoke", "remote")
	if r := far(cliOptions{Env: []string{"PTYD_TOKEN=" + secret}}, "ls"); r.Code != 125 {
		t.Errorf("after revoke: %v", r)
	}
	d.note()
	d.Stop()
	for _, f := range []string{"ptyd.db", "ptyd.db-wal"} {
		if fileHas(d.StateDir+"/"+f, secret) {
			t.Errorf("%s holds the token in clear", f)
		}
	}
	if strings.Contains(d.Log(), secret) {
		t.Error("the log holds the token")
	}
}

// A login link works once, however many try at the same moment, and not for long.
func TestLinkIsSingleUse(t *testing.T) {
	t.Parallel()
	var d *Daemon
	for range full(1, 20) {
		d = start(t) // a new one each time: failed logins are limited by rate
		secret := d.link("")
		var wg sync.WaitGroup
		codes := make([]int, 50)
		begin := make(chan struct{})
		for i := range codes {
			wg.Go(func() {
				<-begin
				codes[i] = d.call(request{Method: "POST", Path: "/v1/login", TCP: true, Body: spec{"link": secret}}).Status
			})
		}
		close(begin)
		wg.Wait()
		n := map[int]int{}
		for _, c := range codes {
			n[c]++
		}
		if n[200] != 1 || n[200]+n[401]+n[429] != len(codes) {
			t.Errorf("50 at once: %v", n)
		}
	}
	// Links that were not used go stale: the clock of the next daemon is ahead.
	secret := d.link("")
	dir := d.StateDir
	d.Stop()
	late := start(t, daemonOptions{StateDir: dir, Env: []string{"PTYD_TEST_CLOCK_OFFSET=6m"}})
	late.call(request{Method: "POST", Path: "/v1/login", TCP: true, Body: spec{"link": secret}}).want(t, 401, "unauthenticated")
	if strings.Contains(late.Log()+d.Log(), secret) {
		t.Error("a log holds the link's secret")
	}
}

// Passwords: set by the command line, checked, and guessed only slowly.
func TestPassword(t *testing.T) {
	t.Parallel()
	d := start(t)
	const password = "correct horse battery staple"
	d.mustCLI("user", "add", "dave", "--role", "operator")
	if r := d.CLIWith(cliOptions{Stdin: password + "\n"}, "user", "passwd", "dave"); r.Code != 0 {
		t.Fatalf("passwd: %v", r)
	}
	b := d.login(t, spec{"name": "dave", "password": password})
	var me struct {
		User struct{ Name, Role string }
		Via  string
	}
	as := request{Path: "/v1/me", TCP: true, Cookie: b.Cookie, Key: b.Key, Header: map[string]string{"Origin": d.URL}}
	d.call(as).into(t, &me)
	if me.User.Name != "dave" || me.User.Role != "operator" || me.Via != "cookie" {
		t.Errorf("dave is %+v", me)
	}
	limited := false
	for i := 0; i < 100 && !limited; i++ {
		a := d.call(request{Method: "POST", Path: "/v1/login", TCP: true, Body: spec{"name": "dave", "password": "guess"}})
		switch a.Status {
		case 401:
		case 429:
			limited = true
		default:
			t.Fatalf("a wrong password: %v", a)
		}
	}
	if !limited {
		t.Error("100 wrong passwords in a row were all tried")
	}
	// Owners see their own sessions only; the admin sees all.
	mine := d.run("sleep", "1000")
	as.Method, as.Path, as.Body = "POST", "/v1/sessions", spec{"argv": []string{"sleep", "1000"}}
	var his session
	d.call(as).into(t, &his)
	as.Method, as.Body, as.Path = "GET", nil, "/v1/sessions/"+mine.ID
	d.call(as).want(t, 404, "not_found")
	var page struct{ Items []session }
	as.Path = "/v1/sessions"
	d.call(as).into(t, &page)
	if len(page.Items) != 1 || page.Items[0].ID != his.ID || page.Items[0].OwnerName != "dave" {
		t.Errorf("dave sees %v", page.Items)
	}
	if len(d.sessions()) != 2 {
		t.Errorf("the admin sees %d sessions", len(d.sessions()))
	}
	d.note()
	as.Path = "/v1/users"
	d.call(as).want(t, 403, "forbidden")
	d.mustCLI("user", "disable", "dave")
	as.Path = "/v1/me"
	eventually(t, 10*time.Second, "dave's login has ended", func() bool { return d.call(as).Status == 401 })
}

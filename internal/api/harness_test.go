package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/screen"
	"github.com/ptyd/ptyd/internal/store"
)

// env is a Server on a real store, real sessions and real sockets.
type env struct {
	t     *testing.T
	s     *Server
	auth  *auth.Service
	store *store.Store
	mgr   *ptymgr.Manager
	ws    *fakeWS
	owner auth.Principal
	url   string // of the TCP listener
	addr  string
	unix  string // path of the socket
}

// fakeWS notes what it was asked to serve and upgrades nothing.
type fakeWS struct {
	mu     sync.Mutex // guards all below
	served int
	p      *auth.Principal
	cookie string
}

func (f *fakeWS) Serve(w http.ResponseWriter, _ *http.Request, p *auth.Principal, cookie string) {
	f.mu.Lock()
	f.served, f.p, f.cookie = f.served+1, p, cookie
	f.mu.Unlock()
	w.WriteHeader(http.StatusTeapot)
}

// fakeDaemon is the daemon around the API.
type fakeDaemon struct {
	mu    sync.Mutex // guards ready
	ready error
}

func (*fakeDaemon) Limits() Limits {
	return Limits{SessionsPerOwner: 5, SessionsTotal: 10, GraceMS: 200}
}
func (*fakeDaemon) Disk() Disk { return Disk{FreeBytes: 2, MinFreeBytes: 1, OK: true} }
func (*fakeDaemon) Cgroups() Cgroups {
	return Cgroups{Reason: "a test has none", Missing: map[string]string{"memory": "none"}}
}
func (*fakeDaemon) Checkpoints() Checkpoints { return Checkpoints{OK: true} }
func (*fakeDaemon) Notes() []string          { return nil }
func (*fakeDaemon) Processes(context.Context) Processes {
	return Processes{Keeper: &Keeper{PID: 1}, Worker: Worker{PID: os.Getpid(), Generation: 1}}
}
func (*fakeDaemon) Upgrade(_ context.Context, path string, oneWay bool) (Upgrade, error) {
	switch path {
	case "/busy":
		return Upgrade{}, problem.New(problem.Conflict, "busy")
	case "/none":
		return Upgrade{}, problem.New(problem.Unsupported, "none")
	case "":
		path = "/default"
	}
	return Upgrade{To: Binary{Version: "2", Path: path}, Generation: 1}, nil
}
func (*fakeDaemon) Restart(context.Context) (Upgrade, error) { return Upgrade{Generation: 1}, nil }
func (d *fakeDaemon) Ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ready
}

// newEnv starts a server; change may adjust its options.
func newEnv(t *testing.T, change ...func(*Options)) *env {
	t.Helper()
	dir, err := os.MkdirTemp("", "ptyd-api-") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	log := zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))
	e := &env{t: t, ws: &fakeWS{}, unix: filepath.Join(dir, "sock")}
	if e.store, err = store.Open(t.Context(), store.Options{DSN: filepath.Join(dir, "db"), Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, e.store.Close()) })
	hub := events.NewHub()
	e.auth, err = auth.New(auth.Options{Store: e.store, OwnerUID: os.Getuid(), Hub: hub, Passwords: auth.PasswordCost{Time: 1, MemoryKiB: 8, Threads: 1}})
	check(t, err)
	check(t, e.auth.EnsureOwner(t.Context()))
	e.owner, err = e.auth.Peer(t.Context(), os.Getuid())
	check(t, err)
	vault, err := ptymgr.NewDirect()
	check(t, err)
	t.Cleanup(vault.Close)
	e.mgr, err = ptymgr.New(ptymgr.Config{MaxPerOwner: 50, MaxTotal: 100, OutputLimit: 1 << 20, Grace: 200 * time.Millisecond}, e.store, vault, hub, log)
	check(t, err)
	t.Cleanup(func() { check(t, e.mgr.Shutdown(context.Background())) })

	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	unix, err := net.Listen("unix", e.unix)
	check(t, err)
	e.addr = tcp.Addr().String()
	build := config.Build{Version: "1.2.3", Commit: "abc", Go: "go"}
	o := Options{
		Manager: e.mgr, Auth: e.auth, Audit: e.store, WS: e.ws, Screens: screen.New(e.mgr, log), Daemon: &fakeDaemon{}, Log: log, Build: build,
		Metrics: NewMetrics(build, func() Gauges { return Gauges{Sessions: map[string]int{"running": 0}} }),
		Addr:    e.addr, Socket: e.unix, OwnerUID: os.Getuid(), StateDir: dir,
	}
	for _, f := range change {
		f(&o)
	}
	e.s, err = New(o)
	check(t, err)
	e.url = "http://" + e.addr + o.BasePath
	for _, l := range []net.Listener{tcp, unix} {
		srv := e.s.HTTPServer()
		if l == unix {
			srv.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return WithPeer(ctx, os.Getuid()) }
		}
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		t.Cleanup(func() {
			check(t, srv.Close())
			if err := <-done; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
	}
	return e
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// req is a request; without anything said it comes by TCP without a credential.
type req struct {
	method, path string
	body         any // a string is sent as it is
	socket       bool
	token        string
	host         string
	header       map[string]string
}

type resp struct {
	status int
	header http.Header
	body   []byte
}

func (r resp) code() string {
	var p Problem
	if !strings.HasPrefix(r.header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(r.body, &p) != nil {
		return ""
	}
	return string(p.Code)
}

func (r resp) into(t *testing.T, v any) {
	t.Helper()
	if r.status >= 300 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	check(t, json.Unmarshal(r.body, v))
}

func (e *env) do(r req) resp {
	e.t.Helper()
	var body io.Reader
	switch b := r.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		check(e.t, err)
		body = bytes.NewReader(data)
	}
	base := e.url
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	if r.socket {
		base = "http://ptyd"
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", e.unix)
		}
	}
	if r.method == "" {
		r.method = "GET"
	}
	hr, err := http.NewRequestWithContext(e.t.Context(), r.method, base+r.path, body)
	check(e.t, err)
	if body != nil {
		hr.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		hr.Header.Set("Authorization", "Bearer "+r.token)
	}
	for k, v := range r.header {
		hr.Header.Set(k, v)
	}
	if r.host != "" {
		hr.Host = r.host
	}
	res, err := tr.RoundTrip(hr) // redirects are answers too
	if err != nil {
		e.t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	check(e.t, err)
	return resp{res.StatusCode, res.Header, data}
}

// want fails unless the answer has the status, and the code where one is given.
func (e *env) want(r req, status int, code problem.Code) resp {
	e.t.Helper()
	got := e.do(r)
	if got.status != status || got.code() != string(code) {
		e.t.Errorf("%s %s: %d %s, want %d %s", r.method, r.path, got.status, got.body, status, code)
	}
	return got
}

// user adds a user and returns a token of theirs with the same role.
func (e *env) user(name string, role auth.Role) (token string) {
	e.t.Helper()
	_, err := e.auth.AddUser(e.t.Context(), e.owner, auth.NewUser{Name: name, Role: role})
	check(e.t, err)
	_, secret, err := e.auth.CreateToken(e.t.Context(), e.owner, auth.NewToken{Name: name, User: name, Role: role})
	check(e.t, err)
	return secret
}

// create starts a session as the socket's peer, or with a token.
func (e *env) create(token string, in object) Session {
	e.t.Helper()
	var s Session
	e.do(req{method: "POST", path: "/v1/sessions", body: in, socket: token == "", token: token}).into(e.t, &s)
	return s
}

// login returns the headers of a logged-in page of this server's own origin.
func (e *env) login() map[string]string {
	e.t.Helper()
	secret, _, err := e.auth.CreateLink(e.t.Context(), e.owner, "")
	check(e.t, err)
	got := e.do(req{method: "POST", path: "/v1/login", body: object{"link": secret}})
	var in LoggedIn
	got.into(e.t, &in)
	cookie := (&http.Response{Header: got.header}).Cookies()[0]
	return map[string]string{"Cookie": cookie.Name + "=" + cookie.Value, keyHeader: in.Key}
}

// with returns a copy of headers with more.
func with(headers map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for k, v := range headers {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// auditActions lists the actions in the audit log.
func (e *env) auditActions() []string {
	e.t.Helper()
	rows, err := e.store.ListAudit(e.t.Context(), 0, 500)
	check(e.t, err)
	var out []string
	for _, r := range rows {
		out = append(out, r.Action)
	}
	return out
}

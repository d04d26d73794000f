package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/screen"
	"github.com/ptyd/ptyd/internal/store"
)

// WebSocket serves upgrades. Host, origin and, where it is in the request, the
// credential were checked before. With neither p nor cookie a ticket must come
// in HELLO; with a cookie, its key.
type WebSocket interface {
	Serve(w http.ResponseWriter, r *http.Request, p *auth.Principal, cookie string)
}

// Audit is the part of the store that keeps and shows the audit log.
type Audit interface {
	AppendAudit(ctx context.Context, e store.AuditEntry) error
	ListAudit(ctx context.Context, after int64, limit int) ([]store.AuditEntry, error)
}

// Daemon tells about the process around the API. Its methods are called per
// request and wait only where they say so.
type Daemon interface {
	Limits() Limits
	Disk() Disk
	Checkpoints() Checkpoints
	Notes() []string // what an operator should know
	Ready() error    // nil while requests are served
	Cgroups() Cgroups
	// Processes tells who runs the daemon. It asks the keeper, for seconds at most.
	Processes(ctx context.Context) Processes
	// Upgrade goes on with the binary at path, "" for the one that the keeper
	// was started by. It returns when all that can be checked is checked, and
	// the worker is about to go. oneWay takes a migration after which the
	// present release could not come back.
	Upgrade(ctx context.Context, path string, oneWay bool) (Upgrade, error)
	// Restart goes on with a new worker of the same binary.
	Restart(ctx context.Context) (Upgrade, error)
}

// Options configures a Server.
type Options struct {
	Manager *ptymgr.Manager
	Auth    *auth.Service
	Audit   Audit
	WS      WebSocket
	Daemon  Daemon
	Screens *screen.Cache
	Metrics *Metrics // nil: /metrics is not served
	Log     *zap.Logger
	Build   config.Build

	Addr         string // of the TCP listener, with the port it got; "" for none
	TLS          bool   // the TCP listener speaks TLS
	Socket       string // path of the Unix socket
	BasePath     string // "" or "/name"
	PublicURL    string
	AllowedHosts []string
	// TrustedProxies are networks whose X-Forwarded-For is believed.
	TrustedProxies []string
	OwnerUID       int // who owns the state directory: the socket serves only them and root
	StateDir       string
	Page           fs.FS // the built page; nil: a plain one says how to build it

	strangerTime time.Duration // 0: strangerTime; tests wait less
}

// Server is the HTTP handler of the daemon, for both listeners.
type Server struct {
	Options
	auth       *auth.Service
	mgr        *ptymgr.Manager
	log        *zap.Logger
	hosts      *hosts
	proxies    proxies
	base       string
	cookieName string
	routes     []route
	mux        *http.ServeMux
	page       *staticPage
	refusals   *refusals
	started    time.Time
	document   func() ([]byte, error)
}

// New returns a Server.
func New(o Options) (*Server, error) {
	h, err := newHosts(o.Addr, o.TLS, o.AllowedHosts, o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("make api: %w", err)
	}
	trusted, err := newProxies(o.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("make api: %w", err)
	}
	s := &Server{
		Options: o, auth: o.Auth, mgr: o.Manager, log: o.Log, hosts: h, proxies: trusted, base: o.BasePath,
		cookieName: cookieName(o.Addr, o.BasePath),
		routes:     routes(),
		mux:        http.NewServeMux(),
		page:       newStaticPage(o.Page),
		refusals:   newRefusals(),
		started:    time.Now(),
	}
	if s.strangerTime == 0 {
		s.strangerTime = strangerTime
	}
	s.document = sync.OnceValues(func() ([]byte, error) { return json.Marshal(document(s.routes, o.Build.Version, o.BasePath)) })
	allowed := map[string][]string{}
	for i := range s.routes {
		rt := &s.routes[i]
		s.mux.HandleFunc(rt.method+" "+rt.pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, rt) })
		allowed[rt.pattern] = append(allowed[rt.pattern], rt.method)
		if rt.method == http.MethodGet {
			allowed[rt.pattern] = append(allowed[rt.pattern], http.MethodHead)
		}
	}
	for pattern, methods := range allowed {
		allow := strings.Join(methods, ", ")
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			s.writeProblem(w, r, problem.New(problem.MethodRefused, "%s does not take %s", pattern, clip(r.Method)).WithHint("use %s", allow))
		})
	}
	s.mux.HandleFunc("/", s.servePage)
	return s, nil
}

// HTTPServer returns a server for one listener, with the limits on what a
// client may send and how slowly.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10, // a token and a few cookies fit a hundred times
		ErrorLog:          zap.NewStdLog(s.log.Named("http").WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
		// No WriteTimeout: waiting is part of the API. serve sets a deadline by
		// request, and a WebSocket has its own.
	}
}

// requestTime is how long a request's body may take to come and its response
// to go, beyond what it waits on purpose.
const requestTime = 60 * time.Second

// strangerTime is how long the body of somebody who has not said who they are
// may take to come: an honest one is a name and a password.
const strangerTime = 10 * time.Second

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w}
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.log.Error("handler panicked", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
			if rec.status == 0 {
				s.writeProblem(rec, r, problem.New(problem.Internal, "something went wrong in ptyd; its log says what"))
			}
		}
		s.Metrics.request(rec.pattern, rec.status)
	}()
	setDeadlines(rec, requestTime)
	_ = http.NewResponseController(rec).SetReadDeadline(time.Now().Add(s.strangerTime))
	securityHeaders(rec.Header(), s.hosts.trustworthy(r))

	uid, viaSocket := peer(r.Context())
	switch {
	case viaSocket && uid != 0 && uid != s.OwnerUID:
		s.writeProblem(rec, r, problem.New(problem.Forbidden, "the socket serves the owner of the state directory and root only").
			WithHint("use the TCP address with a token"))
		return
	case !viaSocket && !s.hosts.allows(r):
		s.refused(r, auth.Principal{}, "host", clip(r.Host))
		s.writeProblem(rec, r, problem.New(problem.HostRefused, "%q is not a name of this daemon", clip(r.Host)).
			WithHint("add it to allowed_hosts"))
		return
	}
	if s.base != "" {
		rest, under := strings.CutPrefix(r.URL.Path, s.base)
		switch {
		case under && rest == "":
			http.Redirect(rec, r, s.base+"/", http.StatusPermanentRedirect)
			return
		case under && rest[0] == '/':
			r = withoutBase(r, s.base)
		case !viaSocket: // the socket is for clients that need not know the base path
			s.writeProblem(rec, r, problem.New(problem.NotFound, "everything is under %s/", s.base))
			return
		}
	}
	rec.pattern = "page"
	if unclean(r) {
		// The mux would redirect to the clean path, without the base.
		s.writeProblem(rec, r, problem.New(problem.NotFound, "there is no %s", clip(r.URL.Path)).WithHint("the path has an empty, . or .. segment"))
		return
	}
	s.mux.ServeHTTP(rec, r)
}

// unclean reports whether the path has segments that say nothing. Encoded ones
// are names.
func unclean(r *http.Request) bool {
	p := r.URL.EscapedPath()
	clean := path.Clean("/" + p)
	if clean != "/" && strings.HasSuffix(p, "/") {
		clean += "/"
	}
	return p != clean
}

// withoutBase is r as if base were not there.
func withoutBase(r *http.Request, base string) *http.Request {
	r2 := new(http.Request)
	*r2 = *r
	u := new(url.URL)
	*u = *r.URL
	u.Path = strings.TrimPrefix(u.Path, base)
	u.RawPath = strings.TrimPrefix(u.RawPath, base)
	r2.URL = u
	return r2
}

// serve runs one route's checks and then its handler.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt *route) {
	if rec, ok := w.(*recorder); ok {
		rec.pattern = rt.method + " " + rt.pattern
	}
	w.Header().Set("Cache-Control", "no-store")
	c := &call{w: w, r: r, route: rt, status: rt.status}
	if err := s.admit(c); err != nil {
		s.auditRefusal(c, err)
		s.writeProblem(w, r, err)
		return
	}
	if rt.open == authenticated {
		setDeadlines(w, requestTime)
	}
	if err := rt.handle(s, c); err != nil {
		s.writeProblem(w, r, err)
	}
}

// admit checks who calls, from where, whether they may, and the parameters.
func (s *Server) admit(c *call) (err error) {
	switch c.route.open {
	case public:
		return c.checkQuery()
	case login:
		err = s.checkOrigin(c.r, false)
	case upgrade:
		return c.checkQuery() // its handler does the rest
	case authenticated:
		if c.p, err = s.credential(c.r); err == nil && !c.p.Can(c.route.action) {
			err = problem.New(problem.Forbidden, "the role %q may not do %s", c.p.Role, c.route.action)
		}
	}
	if err != nil {
		return err
	}
	return c.checkQuery()
}

// setDeadlines bounds how long the request may take from now on. Writers that
// have no deadlines (a recorder in a test) need none.
func setDeadlines(w http.ResponseWriter, d time.Duration) {
	rc := http.NewResponseController(w)
	at := time.Now().Add(d)
	_ = rc.SetReadDeadline(at)
	_ = rc.SetWriteDeadline(at)
}

// recorder notes the status for metrics. It passes everything else on.
type recorder struct {
	http.ResponseWriter
	pattern string
	status  int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Hijack implements http.Hijacker, which WebSocket upgrades look for.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
)

// serve answers requests for a client at a TCP address.
func serve(t *testing.T, o Options, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o.URL = srv.URL + o.URL
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, status int, kind, body string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestURLsThatAreNone(t *testing.T) {
	for _, u := range []string{"host:7373", "ftp://host", "http://", "http://user:pw@host", "http://host/#login=x", "http://host/?a=b", "http://a b", "/run/ptyd"} {
		if _, err := New(Options{URL: u}); !problem.Is(err, problem.InvalidArgument) {
			t.Errorf("%q: %v", u, err)
		}
	}
	if _, err := New(Options{}); !problem.Is(err, problem.InvalidArgument) {
		t.Errorf("no daemon at all: %v", err)
	}
}

func TestExposed(t *testing.T) {
	for u, want := range map[string]bool{
		"http://127.0.0.1:7373": false, "http://[::1]:7373": false, "http://localhost": false, "https://host": false,
		"http://host:7373": true, "http://10.0.0.1": true, "http://localhost.example": true, "": false,
	} {
		c, err := New(Options{URL: u, StateDir: "/x"})
		if err != nil || c.Exposed() != want {
			t.Errorf("%q: %v, %v", u, c.Exposed(), err)
		}
	}
}

func TestRequestsGoWhereTheyShould(t *testing.T) {
	var got *http.Request
	c := serve(t, Options{URL: "/base/", Token: "ptyd_x", Build: "1.2"}, func(w http.ResponseWriter, r *http.Request) {
		got = r
		answer(w, 200, "application/json", `{"id":"s_1","name":"a","exit_code":null,"future":{"kept":1}}`)
	})
	s, err := c.Session(t.Context(), "a/b c?#é")
	if err != nil {
		t.Fatal(err)
	}
	if got.RequestURI != "/base/v1/sessions/a%2Fb%20c%3F%23%C3%A9" {
		t.Errorf("asked for %s", got.RequestURI)
	}
	if h := got.Header; h.Get("Authorization") != "Bearer ptyd_x" || h.Get("User-Agent") != "ptyd/1.2" {
		t.Errorf("headers %v", h)
	}
	if b, err := json.Marshal(s); err != nil || !strings.Contains(string(b), `"future":{"kept":1}`) {
		t.Errorf("a newer daemon's members are lost: %s, %v", b, err)
	}
	for _, ref := range []string{"", ".", ".."} {
		if _, err := c.Session(t.Context(), ref); !problem.Is(err, problem.NotFound) {
			t.Errorf("session %q: %v", ref, err)
		}
	}
}

func TestProblemsComeThrough(t *testing.T) {
	for _, c := range []struct {
		name, kind, body string
		status           int
		code             problem.Code
		field, hint      string
	}{
		{"a problem", "application/problem+json", `{"type":"urn:ptyd:problem:name_taken","title":"t","status":409,"code":"name_taken","detail":"d","field":"name","hint":"h"}`, 409, problem.NameTaken, "name", "h"},
		{"a proxy's page", "text/html", "<html>", 502, problem.Unavailable, "", "check --url"},
		{"another server's JSON", "application/json", `{"error":"no"}`, 404, problem.NotFound, "", "check --url"},
		{"a page instead of an answer", "text/html", "<html>", 200, problem.Internal, "", "check --url"},
		{"half an answer", "application/json", `{"id":`, 200, problem.Unavailable, "", ""},
		{"no answer of this kind", "application/json", `[]`, 200, problem.Internal, "", "version"},
		{"a redirect", "text/html", "", 302, problem.Internal, "", "check --url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			cl := serve(t, Options{Token: "secret"}, func(w http.ResponseWriter, r *http.Request) {
				asked++
				if c.status == 302 {
					w.Header().Set("Location", "/elsewhere")
				}
				answer(w, c.status, c.kind, c.body)
			})
			_, err := cl.Session(t.Context(), "a")
			p, ok := errors.AsType[*problem.Error](err)
			if !ok || p.Code != c.code || p.Field != c.field || !strings.Contains(p.Hint, c.hint) || p.Detail == "" {
				t.Errorf("%#v", err)
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func TestListsAreReadToTheirEnd(t *testing.T) {
	c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("limit") != "500" || q.Get("state") != "running" {
			t.Errorf("query %v", q)
		}
		switch q.Get("cursor") {
		case "":
			answer(w, 200, "application/json", `{"items":[{"id":"1"},{"id":"2"}],"next_cursor":"2"}`)
		case "2":
			answer(w, 200, "application/json", `{"items":[{"id":"3"}],"next_cursor":""}`)
		default:
			t.Errorf("cursor %q", q.Get("cursor"))
		}
	})
	list, err := c.Sessions(t.Context(), Filter{States: []string{"running"}})
	if err != nil || len(list) != 3 || list[2].ID != "3" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestOutputIsChecked(t *testing.T) {
	header := map[string]string{"Ptyd-Offset": "5", "Ptyd-Next-Offset": "8", "Ptyd-Oldest-Offset": "5", "Ptyd-Head-Offset": "8", "Ptyd-Eof": "true"}
	body := "abc"
	c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "limit=10&offset=-3&wait=50000ms" {
			t.Errorf("query %s", r.URL.RawQuery)
		}
		for k, v := range header {
			w.Header().Set(k, v)
		}
		answer(w, 200, "application/octet-stream", body)
	})
	q := OutputQuery{Offset: -3, Limit: 10, Wait: time.Hour}
	if o, err := c.Output(t.Context(), "a", q); err != nil || string(o.Data) != "abc" || o.Offset != 5 || o.Next != 8 || !o.EOF {
		t.Errorf("%+v, %v", o, err)
	}
	body = "ab"
	if _, err := c.Output(t.Context(), "a", q); !problem.Is(err, problem.Internal) {
		t.Errorf("a byte less than announced: %v", err)
	}
	delete(header, "Ptyd-Offset")
	if _, err := c.Output(t.Context(), "a", q); !problem.Is(err, problem.Internal) {
		t.Errorf("no offset: %v", err)
	}
}

func TestUnreachableDaemonsAreExplained(t *testing.T) {
	ask := func(o Options) *problem.Error {
		t.Helper()
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Me(t.Context())
		p, ok := errors.AsType[*problem.Error](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		return p
	}
	dir := t.TempDir()
	if p := ask(Options{StateDir: dir}); p.Code != problem.Unavailable || !strings.Contains(p.Hint, "ptyd serve --state-dir "+dir) {
		t.Errorf("no socket: %#v", p)
	}
	// A socket that nobody listens on any more.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, SocketName)})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if p := ask(Options{StateDir: dir}); p.Code != problem.Unavailable || !strings.Contains(p.Hint, "ptyd serve") {
		t.Errorf("stale socket: %#v", p)
	}
	long := filepath.Join(dir, strings.Repeat("x", 120))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if p := ask(Options{StateDir: long}); p.Field != "state-dir" {
		t.Errorf("long path: %#v", p)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	_ = closed.Close()
	if p := ask(Options{URL: "http://" + addr}); p.Code != problem.Unavailable || !strings.Contains(p.Detail, addr) || !strings.Contains(p.Detail, "refused") {
		t.Errorf("no listener: %#v", p)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if p := ask(Options{URL: strings.Replace(plain.URL, "http:", "https:", 1)}); !strings.Contains(p.Hint, "http://") {
		t.Errorf("https to http: %#v", p)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	if p := ask(Options{URL: secure.URL}); !strings.Contains(p.Hint, "SSL_CERT_FILE") {
		t.Errorf("unknown certificate: %#v", p)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	c, err := New(Options{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Me(ctx); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestExitStatuses(t *testing.T) {
	sig := func(s string) *string { return &s }
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		code   *int
		signal *string
		want   int
		known  bool
	}{
		{code(0), nil, 0, true}, {code(7), nil, 7, true}, {nil, sig("SIGKILL"), 137, true}, {nil, sig("TERM"), 143, true},
		{nil, sig("34"), 162, true}, {nil, nil, 0, false}, {nil, sig("SIGWHAT"), 0, false}, {code(1), sig(""), 1, true},
	} {
		got, known := Session{ExitCode: c.code, Signal: c.signal}.ExitStatus()
		if got != c.want || known != c.known {
			t.Errorf("%v %v: %d %v", c.code, c.signal, got, known)
		}
	}
}

func TestCreateSaysWhetherItWasThere(t *testing.T) {
	c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if string(b) != `{"argv":["true"],"name":"n"}` || r.Header.Get("Idempotency-Key") != "k" {
			t.Errorf("body %s, headers %v", b, r.Header)
		}
		w.Header().Set("Idempotency-Replayed", "true")
		answer(w, 200, "application/json", `{"id":"s_1"}`)
	})
	s, existing, err := c.Create(t.Context(), NewSession{Argv: []string{"true"}, Name: "n"}, "k")
	if err != nil || !existing || s.ID != "s_1" {
		t.Errorf("%v %v %v", s, existing, err)
	}
}

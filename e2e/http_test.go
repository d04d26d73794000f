package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// answer is one HTTP response, read whole.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func (a answer) String() string {
	return fmt.Sprintf("status %d: %s", a.Status, tailOf(string(a.Body), 1000))
}

// code is the problem's code, "" when the answer is none.
func (a answer) code() string {
	var p struct{ Code string }
	if json.Unmarshal(a.Body, &p) != nil {
		return ""
	}
	return p.Code
}

// request describes a call. Without Token, Cookie and TCP it goes over the Unix
// socket, where the peer's uid decides.
type request struct {
	Method, Path string
	Body         any // encoded as JSON; a string is sent as it is
	TCP          bool
	Host         string // another Host than the address
	Token        string
	Cookie       *http.Cookie
	Key          string
	Header       map[string]string
}

// call makes a request and reads the answer.
func (d *Daemon) call(r request) answer {
	d.t.Helper()
	a, err := d.tryCall(r)
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", r.Method, r.Path, err, tailOf(d.Log(), 4<<10))
	}
	return a
}

func (d *Daemon) tryCall(r request) (answer, error) {
	var body []byte
	switch b := r.Body.(type) {
	case nil:
	case string:
		body = []byte(b)
	default:
		var err error
		if body, err = json.Marshal(b); err != nil {
			return answer{}, err
		}
	}
	base, client := "http://ptyd", d.unixHTTP()
	if r.TCP {
		base = d.URL
		client = &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	client.Timeout = 90 * time.Second
	if r.Method == "" {
		r.Method = "GET"
	}
	req, err := http.NewRequest(r.Method, base+r.Path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.Host != "" {
		req.Host = r.Host
	}
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	if r.Cookie != nil {
		req.AddCookie(r.Cookie)
	}
	if r.Key != "" {
		req.Header.Set("Ptyd-Key", r.Key)
	}
	for k, v := range r.Header {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(resp.Body); err != nil {
		return answer{}, err
	}
	return answer{resp.StatusCode, resp.Header, buf.Bytes()}, nil
}

// want fails the test unless the answer has the status, and the code where one is given.
func (a answer) want(t testing.TB, status int, code string) answer {
	t.Helper()
	if a.Status != status || a.code() != code {
		t.Fatalf("got %v, want status %d %s", a, status, code)
	}
	return a
}

// into decodes a good answer.
func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if a.Status >= 300 {
		t.Fatalf("got %v", a)
	}
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("decode %s: %v", a.Body, err)
	}
}

// decode is into for a goroutine that cannot fail the test.
func (a answer) decode(v any) error {
	if a.Status >= 300 {
		return fmt.Errorf("got %v", a)
	}
	return json.Unmarshal(a.Body, v)
}

func (d *Daemon) get(path string, v any) {
	d.t.Helper()
	d.call(request{Path: path}).into(d.t, v)
}

// session is what the API tells of one.
type session struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	State        string            `json:"state"`
	Owner        string            `json:"owner"`
	OwnerName    string            `json:"owner_name"`
	Argv         []string          `json:"argv"`
	Cwd          string            `json:"cwd"`
	Labels       map[string]string `json:"labels"`
	Cols         int               `json:"cols"`
	Rows         int               `json:"rows"`
	PID          int               `json:"pid"`
	ExitCode     *int              `json:"exit_code"`
	Signal       *string           `json:"signal"`
	CreatedAt    time.Time         `json:"created_at"`
	StartedAt    *time.Time        `json:"started_at"`
	EndedAt      *time.Time        `json:"ended_at"`
	Epoch        string            `json:"epoch"`
	Offset       uint64            `json:"offset"`
	OldestOffset uint64            `json:"oldest_offset"`
	Viewers      int               `json:"viewers"`
	Error        string            `json:"error"`
}

// exit describes how the session ended.
func (s session) exit() string {
	switch {
	case s.State != "exited":
		return s.State
	case s.Signal != nil:
		return "signal " + *s.Signal
	case s.ExitCode != nil:
		return fmt.Sprintf("status %d", *s.ExitCode)
	}
	return "exited, unknown"
}

// spec is the body of a create.
type spec map[string]any

// create starts a session over the Unix socket.
func (d *Daemon) create(s spec) session {
	d.t.Helper()
	var out session
	d.call(request{Method: "POST", Path: "/v1/sessions", Body: s}).into(d.t, &out)
	d.note()
	return out
}

// run starts a session with a command.
func (d *Daemon) run(argv ...string) session {
	d.t.Helper()
	return d.create(spec{"argv": argv})
}

// child starts one of childMain's programs.
func (d *Daemon) child(args ...any) session {
	d.t.Helper()
	argv := []string{selfPath(d.t), childWord}
	for _, a := range args {
		argv = append(argv, fmt.Sprint(a))
	}
	return d.run(argv...)
}

// session reads a session by id or name.
func (d *Daemon) session(ref string) session {
	d.t.Helper()
	var s session
	d.get("/v1/sessions/"+url.PathEscape(ref), &s)
	return s
}

// sessions lists all.
func (d *Daemon) sessions() []session {
	d.t.Helper()
	var page struct {
		Items      []session `json:"items"`
		NextCursor string    `json:"next_cursor"`
	}
	var all []session
	path := "/v1/sessions?limit=500"
	for {
		page.Items, page.NextCursor = nil, ""
		d.get(path, &page)
		all = append(all, page.Items...)
		if page.NextCursor == "" {
			return all
		}
		path = "/v1/sessions?limit=500&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// waitState waits until a session is in a state.
func (d *Daemon) waitState(ref, state string) session {
	d.t.Helper()
	var s session
	eventually(d.t, time.Minute, "session "+ref+" is "+state, func() bool {
		s = d.session(ref)
		return s.State == state
	})
	return s
}

// waitText waits until the kept output matches.
func (d *Daemon) waitText(ref, re string) {
	d.t.Helper()
	var r struct {
		Matched *string
		Next    uint64
	}
	a := d.call(request{Method: "POST", Path: "/v1/sessions/" + ref + "/wait", Body: spec{"text": re, "timeout_ms": 50000}})
	a.into(d.t, &r)
	if r.Matched == nil || *r.Matched != "text" {
		d.t.Fatalf("waiting for %q in %s: %v\noutput: %q", re, ref, a, tailOf(string(d.output(ref, 0)), 2000))
	}
}

// output reads what is kept of a session from an offset on, up to now.
func (d *Daemon) output(ref string, from uint64) []byte {
	d.t.Helper()
	var all []byte
	for {
		a := d.call(request{Path: fmt.Sprintf("/v1/sessions/%s/output?offset=%d", ref, from)})
		if a.Status != 200 {
			d.t.Fatalf("output of %s: %v", ref, a)
		}
		var next uint64
		if _, err := fmt.Sscan(a.Header.Get("Ptyd-Next-Offset"), &next); err != nil {
			d.t.Fatalf("output of %s: header Ptyd-Next-Offset %q: %v", ref, a.Header.Get("Ptyd-Next-Offset"), err)
		}
		all = append(all, a.Body...)
		if len(a.Body) == 0 {
			return all
		}
		from = next
	}
}

// input types into a session.
func (d *Daemon) input(ref, text string) {
	d.t.Helper()
	a := d.call(request{Method: "POST", Path: "/v1/sessions/" + ref + "/input", Body: spec{"text": text}})
	if a.Status != 204 {
		d.t.Fatalf("input to %s: %v", ref, a)
	}
}

// closeSession ends a session and returns it.
func (d *Daemon) closeSession(ref string, graceMS int) session {
	d.t.Helper()
	d.note()
	var s session
	d.call(request{Method: "POST", Path: "/v1/sessions/" + ref + "/close", Body: spec{"grace_ms": graceMS}}).into(d.t, &s)
	return s
}

// token makes a token and returns its secret.
func (d *Daemon) token(body spec) (id, secret string) {
	d.t.Helper()
	var r struct {
		Token  struct{ ID string }
		Secret string
	}
	d.call(request{Method: "POST", Path: "/v1/tokens", Body: body}).into(d.t, &r)
	if !strings.HasPrefix(r.Secret, "ptyd_") {
		d.t.Fatalf("the token's secret is %q", r.Secret)
	}
	return r.Token.ID, r.Secret
}

// jsonNumber prints an offset.
func jsonNumber(n uint64) string { return fmt.Sprint(n) }

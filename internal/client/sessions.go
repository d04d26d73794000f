package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

// Session is a session as the daemon shows it.
type Session struct {
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
	RerunOf      string            `json:"rerun_of,omitempty"`
	Error        string            `json:"error,omitempty"`

	raw json.RawMessage // as it came: a newer daemon's members are not lost
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Session) UnmarshalJSON(b []byte) error {
	type plain Session
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	s.raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON gives a session as it came.
func (s Session) MarshalJSON() ([]byte, error) {
	if s.raw != nil {
		return s.raw, nil
	}
	type plain Session
	return json.Marshal(plain(s))
}

// Ended reports whether the session's process is gone.
func (s Session) Ended() bool { return s.State == "exited" || s.State == "lost" }

// NewSession is a request for a session; zero values leave the choice to the daemon.
type NewSession struct {
	Argv   []string          `json:"argv,omitempty"`
	Shell  bool              `json:"shell,omitempty"`
	Cwd    string            `json:"cwd,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Cols   int               `json:"cols,omitempty"`
	Rows   int               `json:"rows,omitempty"`
	Name   string            `json:"name,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Memory *int64            `json:"memory_limit,omitempty"` // bytes; 0 is no limit
	Pids   *int              `json:"pids_limit,omitempty"`   // processes and threads; 0 is no limit
	// NoCheckpoint keeps the output off the disk.
	NoCheckpoint bool `json:"no_checkpoint,omitempty"`
}

// Filter selects sessions; zero values select all.
type Filter struct {
	States []string
	Name   string
	Labels map[string]string
}

// sessionPath is the path of a session or of something below it. An empty
// name and those that a path swallows cannot be anybody's.
func sessionPath(ref string, below ...string) ([]string, error) {
	if ref == "" || ref == "." || ref == ".." {
		return nil, problem.New(problem.NotFound, "there is no session %q", ref)
	}
	return append([]string{"sessions", ref}, below...), nil
}

// onSession calls the API for one session.
func (c *Client) onSession(ctx context.Context, method, ref, below string, r request, out any) error {
	var err error
	if below == "" {
		r.path, err = sessionPath(ref)
	} else {
		r.path, err = sessionPath(ref, below)
	}
	if err != nil {
		return err
	}
	r.method = method
	_, err = c.call(ctx, r, out)
	return err
}

// Create starts a session. With a key, repeating the call gives the same
// session, and existing is set.
func (c *Client) Create(ctx context.Context, n NewSession, key string) (s Session, existing bool, err error) {
	h := http.Header{}
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	res, err := c.call(ctx, request{method: http.MethodPost, path: []string{"sessions"}, header: h, body: n}, &s)
	return s, err == nil && res.Get("Idempotency-Replayed") == "true", err
}

// RunAgain starts an ended session once more. With a key, repeating the call
// gives the same session, and existing is set.
func (c *Client) RunAgain(ctx context.Context, ref, key string) (s Session, existing bool, err error) {
	path, err := sessionPath(ref, "run-again")
	if err != nil {
		return s, false, err
	}
	h := http.Header{}
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	res, err := c.call(ctx, request{method: http.MethodPost, path: path, header: h}, &s)
	return s, err == nil && res.Get("Idempotency-Replayed") == "true", err
}

// Sessions lists sessions, the oldest first.
func (c *Client) Sessions(ctx context.Context, f Filter) ([]Session, error) {
	q := url.Values{}
	for _, s := range f.States {
		q.Add("state", s)
	}
	if f.Name != "" {
		q.Set("name", f.Name)
	}
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	return list[Session](ctx, c, []string{"sessions"}, q)
}

// Session gives one session by its id or name.
func (c *Client) Session(ctx context.Context, ref string) (s Session, err error) {
	return s, c.onSession(ctx, http.MethodGet, ref, "", request{}, &s)
}

// Rename gives a session another name.
func (c *Client) Rename(ctx context.Context, ref, name string) (s Session, err error) {
	return s, c.onSession(ctx, http.MethodPatch, ref, "", request{body: map[string]string{"name": name}}, &s)
}

// Remove forgets an ended session and its output; force ends a living one first.
func (c *Client) Remove(ctx context.Context, ref string, force bool) error {
	r := request{}
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	return c.onSession(ctx, http.MethodDelete, ref, "", r, nil)
}

// Resize sets the size of a session's terminal.
func (c *Client) Resize(ctx context.Context, ref string, cols, rows int) (s Session, err error) {
	body := map[string]int{"cols": cols, "rows": rows}
	return s, c.onSession(ctx, http.MethodPost, ref, "resize", request{body: body}, &s)
}

// Signal sends a signal to the foreground process group of a session.
func (c *Client) Signal(ctx context.Context, ref, signal string) error {
	return c.onSession(ctx, http.MethodPost, ref, "signal", request{body: map[string]string{"signal": signal}}, nil)
}

// CloseSession ends a session's whole process tree and waits for the end. A
// nil grace leaves the time between asking and killing to the daemon.
func (c *Client) CloseSession(ctx context.Context, ref string, grace *time.Duration) (s Session, err error) {
	r := request{body: struct{}{}}
	if grace != nil {
		r.body = map[string]int64{"grace_ms": grace.Milliseconds()}
		r.wait = *grace
	}
	return s, c.onSession(ctx, http.MethodPost, ref, "close", r, &s)
}

// Input is what to type into a session: exactly one member.
type Input struct {
	Text   string   `json:"text,omitempty"`
	Base64 []byte   `json:"base64,omitempty"`
	Keys   []string `json:"keys,omitempty"`
}

// Input types into a session; it returns once the terminal has it all.
func (c *Client) Input(ctx context.Context, ref string, in Input) error {
	return c.onSession(ctx, http.MethodPost, ref, "input", request{body: in, wait: longPoll}, nil)
}

// OutputQuery tells which bytes of a session's output to read.
type OutputQuery struct {
	Offset int64 // negative: that many bytes before the end
	Limit  int
	Wait   time.Duration // for more than nothing; bounded by the daemon's longest
}

// Output is a piece of a session's output.
type Output struct {
	Data   []byte
	Offset uint64 // of Data; later than asked where the beginning is no longer kept
	Next   uint64 // where to go on
	Oldest uint64 // the first byte still kept
	Head   uint64 // how much was written in all
	Epoch  string
	EOF    bool // nothing will follow Next
}

// Output reads from a session's output.
func (c *Client) Output(ctx context.Context, ref string, q OutputQuery) (Output, error) {
	path, err := sessionPath(ref, "output")
	if err != nil {
		return Output{}, err
	}
	v := url.Values{"offset": {strconv.FormatInt(q.Offset, 10)}}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	wait := min(q.Wait, longPoll)
	if wait > 0 {
		v.Set("wait", strconv.FormatInt(wait.Milliseconds(), 10)+"ms")
	}
	res, cancel, err := c.do(ctx, request{method: http.MethodGet, path: path, query: v, wait: wait})
	if err != nil {
		return Output{}, err
	}
	defer cancel()
	defer res.Body.Close()
	o := Output{Epoch: res.Header.Get("Ptyd-Epoch"), EOF: res.Header.Get("Ptyd-Eof") == "true"}
	for name, p := range map[string]*uint64{
		"Ptyd-Offset": &o.Offset, "Ptyd-Next-Offset": &o.Next,
		"Ptyd-Oldest-Offset": &o.Oldest, "Ptyd-Head-Offset": &o.Head,
	} {
		if *p, err = strconv.ParseUint(res.Header.Get(name), 10, 64); err != nil {
			return Output{}, problem.New(problem.Internal, "the daemon's answer has no %s", name).WithHint("check --url")
		}
	}
	if o.Data, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return Output{}, c.unreachable(ctx, err)
	}
	if o.Offset+uint64(len(o.Data)) != o.Next {
		return Output{}, problem.New(problem.Internal, "the daemon's answer holds %d bytes where %d were announced",
			len(o.Data), o.Next-o.Offset)
	}
	return o, nil
}

// Screen is a session's screen as text.
type Screen struct {
	Rows []string `json:"rows"`
	ANSI string   `json:"ansi"` // where it was asked for: the rows with their colours
	// Approximate says that it may differ from what was shown.
	Approximate bool `json:"approximate"`

	raw json.RawMessage // as it came
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Screen) UnmarshalJSON(b []byte) error {
	type plain Screen
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	s.raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON gives a screen as it came.
func (s Screen) MarshalJSON() ([]byte, error) {
	if s.raw != nil {
		return s.raw, nil
	}
	type plain Screen
	return json.Marshal(plain(s))
}

// Screen reads a session's screen; format is text, ansi or cells.
func (c *Client) Screen(ctx context.Context, ref, format string) (s Screen, err error) {
	return s, c.onSession(ctx, http.MethodGet, ref, "screen", request{query: url.Values{"format": {format}}}, &s)
}

// Conditions are what to wait for; the first that holds ends the wait.
type Conditions struct {
	Exit bool
	Text string // a regular expression over the kept output
	From uint64 // where the search for Text begins
	Idle time.Duration
}

// Match is where the text of a condition was found.
type Match struct {
	Start uint64 `json:"start"`
	End   uint64 `json:"end"`
	Text  string `json:"text"`
}

// WaitResult tells how a wait ended.
type WaitResult struct {
	Matched    *string `json:"matched"`    // "exit", "text", "idle"; nil when the time was over
	Impossible bool    `json:"impossible"` // no condition can hold any more
	Next       uint64  `json:"next"`
	Session    Session `json:"session"`
	Match      *Match  `json:"match,omitempty"`
}

// Wait asks once, for at most timeout and the daemon's longest.
func (c *Client) Wait(ctx context.Context, ref string, cond Conditions, timeout time.Duration) (r WaitResult, err error) {
	timeout = min(timeout, longPoll)
	body := struct {
		Exit      bool   `json:"exit,omitempty"`
		Text      string `json:"text,omitempty"`
		From      uint64 `json:"from,omitempty"`
		IdleMS    int64  `json:"idle_ms,omitempty"`
		TimeoutMS int64  `json:"timeout_ms"`
	}{cond.Exit, cond.Text, cond.From, cond.Idle.Milliseconds(), timeout.Milliseconds()}
	err = c.onSession(ctx, http.MethodPost, ref, "wait", request{body: body, wait: timeout}, &r)
	return r, err
}

// String names a session for people: its name, or its id.
func (s Session) String() string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}

// ExitStatus is what a shell would report for the session's end: the exit code,
// or 128 and the signal's number; ok is false when it is unknown.
func (s Session) ExitStatus() (status int, ok bool) {
	return exitStatus(s.ExitCode, s.Signal)
}

// ExitStatus is the same for the end that a Stream tells.
func ExitStatus(e wire.Exit) (status int, ok bool) { return exitStatus(e.Code, e.Signal) }

func exitStatus(code *int, signal *string) (int, bool) {
	switch {
	case signal != nil && *signal != "":
		if n := signalNumber(*signal); n > 0 {
			return 128 + n, true
		}
		return 0, false
	case code != nil:
		return *code, true
	}
	return 0, false
}

// signalNumber is the number of a signal by its name or number.
func signalNumber(name string) int {
	if n, err := strconv.Atoi(name); err == nil {
		return n
	}
	for n := 1; n < len(signalNames); n++ {
		if signalNames[n] == name || "SIG"+signalNames[n] == name {
			return n
		}
	}
	return 0
}

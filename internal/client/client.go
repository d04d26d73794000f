package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
)

const (
	// SocketName is the daemon's Unix socket inside its state directory.
	SocketName = "ptyd.sock"

	// connectTimeout bounds how long reaching the daemon may take: a host that
	// drops packets must not look like a command that hangs.
	connectTimeout = 10 * time.Second
	// answerTimeout bounds requests that the daemon answers at once.
	answerTimeout = 60 * time.Second
	// longPoll is the longest the daemon keeps a waiting request.
	longPoll = 50 * time.Second
	// maxAnswer bounds what is read of one JSON answer; a page of 500 sessions
	// with long command lines stays far below.
	maxAnswer = 64 << 20
)

// Options tell which daemon to speak to, and as whom.
type Options struct {
	StateDir string // the daemon whose socket lies in here, unless URL is set
	URL      string // http(s)://host[:port][/base]
	Token    string // decides who calls, on the socket too; "" is the socket's peer
	Build    string // this program's version, for the daemon's logs
}

// Client calls one daemon. It is safe for concurrent use.
type Client struct {
	opt    Options
	socket string   // path of the Unix socket, "" over the network
	base   *url.URL // what the paths of the API are appended to
	http   *http.Client
}

// New returns a client. It does not connect.
func New(o Options) (*Client, error) {
	c := &Client{opt: o}
	dialer := &net.Dialer{Timeout: connectTimeout}
	transport := &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: longPoll + answerTimeout,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       30 * time.Second,
	}
	if o.URL != "" {
		base, err := parseURL(o.URL)
		if err != nil {
			return nil, err
		}
		c.base = base
	} else {
		if o.StateDir == "" {
			return nil, problem.Field("state-dir", "no state directory is given").
				WithHint("name the daemon by --state-dir, or by --url with a token")
		}
		c.socket = filepath.Join(o.StateDir, SocketName)
		c.base = &url.URL{Scheme: "http", Host: "localhost"}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", c.socket)
		}
	}
	c.http = &http.Client{
		Transport: transport,
		// The API never redirects. A redirect comes from something else in
		// between, and must not get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Local reports whether the daemon is reached by its Unix socket, so that
// paths mean the same to both sides.
func (c *Client) Local() bool { return c.socket != "" }

// Exposed reports whether what is said to the daemon can be read on a network.
func (c *Client) Exposed() bool {
	if c.Local() || c.base.Scheme == "https" {
		return false
	}
	host := c.base.Hostname()
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, problem.Field("url", "%q is no URL", s)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, problem.Field("url", "%q does not begin with http:// or https://", s)
	case u.Host == "":
		return nil, problem.Field("url", "%q names no host", s)
	case u.User != nil:
		return nil, problem.Field("url", "the URL holds a user name or password").
			WithHint("give a token by PTYD_TOKEN or --token-file")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, problem.Field("url", "the URL goes on after the path").
			WithHint("give the daemon's address alone, such as https://host:7373; a login link is for the browser")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}, nil
}

// request is one call of the API.
type request struct {
	method string
	path   []string // segments below /v1, escaped one by one
	query  url.Values
	header http.Header
	body   any           // encoded as JSON unless nil
	wait   time.Duration // how long the daemon may take on purpose
}

// url is where r goes.
func (c *Client) url(r request) string {
	u := *c.base
	raw := u.EscapedPath() + "/v1"
	for _, s := range r.path {
		raw += "/" + url.PathEscape(s)
	}
	// A path is set in both forms, so that an escaped slash in a name stays one.
	u.RawPath = raw
	u.Path, _ = url.PathUnescape(raw)
	u.RawQuery = r.query.Encode()
	return u.String()
}

// do calls the API and returns the answer when its status is a success. The
// caller closes the body; cancel must be called after that.
func (c *Client) do(ctx context.Context, r request) (*http.Response, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.wait+answerTimeout,
		problem.New(problem.Unavailable, "the daemon did not answer within %s", r.wait+answerTimeout))
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			cancel()
			return nil, nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r), body)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", "ptyd/"+c.opt.Build)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.opt.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opt.Token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		err = c.unreachable(ctx, err)
		cancel()
		return nil, nil, err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		err := readProblem(res)
		_ = res.Body.Close()
		cancel()
		return nil, nil, err
	}
	return res, cancel, nil
}

// call calls the API and decodes the answer into out, unless out is nil. The
// header is the answer's.
func (c *Client) call(ctx context.Context, r request, out any) (http.Header, error) {
	res, cancel, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer res.Body.Close()
	if out == nil || res.StatusCode == http.StatusNoContent {
		// Read to the end, so that the connection can be used again.
		_, err := io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
		return res.Header, err
	}
	if t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); t != "application/json" {
		return nil, problem.New(problem.Internal, "the answer is not a daemon's: it is %q instead of JSON", t).
			WithHint("check --url")
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, problem.New(problem.Unavailable, "the connection was lost in the middle of an answer").Because(err)
		}
		return nil, problem.New(problem.Internal, "the daemon's answer is not understood: %v", err).
			WithHint("compare `ptyd version` and `ptyd status`: the two may be of different releases")
	}
	return res.Header, nil
}

// list reads all pages of a list.
func list[T any](ctx context.Context, c *Client, path []string, query url.Values) ([]T, error) {
	items := []T{}
	q := url.Values{"limit": {"500"}}
	for k, v := range query {
		q[k] = v
	}
	for {
		var page struct {
			Items      []T    `json:"items"`
			NextCursor string `json:"next_cursor"`
		}
		if _, err := c.call(ctx, request{method: http.MethodGet, path: path, query: q}, &page); err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.NextCursor == "" || len(page.Items) == 0 {
			return items, nil
		}
		q.Set("cursor", page.NextCursor)
	}
}

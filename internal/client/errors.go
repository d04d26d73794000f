package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

// problemPrefix begins the type of every problem that a daemon answers.
const problemPrefix = "urn:ptyd:problem:"

// unreachable turns an error of the transport into one for people. ctx is the
// request's own: when it ended, its cause is the answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the method and the URL, which say nothing on a socket
	}
	if c.socket != "" {
		return c.noSocket(err)
	}
	p := problem.New(problem.Unavailable, "no daemon answers at %s: %v", c.base, rootCause(err)).Because(err)
	var certErr *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certErr):
		return p.WithHint("the certificate is not trusted here; SSL_CERT_FILE names a file of certificates to trust")
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return p.WithHint("the daemon there speaks plain http: try --url http://%s", c.base.Host)
	}
	return p.WithHint("check --url, and that the daemon listens there")
}

// noSocket explains why the state directory's socket does not answer.
func (c *Client) noSocket(err error) error {
	dir := filepath.Dir(c.socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return problem.New(problem.Unavailable, "no daemon is running for %s", dir).
			WithHint("start one: ptyd serve --state-dir %s", dir).Because(err)
	case errors.Is(err, fs.ErrPermission):
		return problem.New(problem.Forbidden, "you may not use the socket %s", c.socket).
			WithHint("it serves the owner of the state directory and root; others use --url with a token").Because(err)
	case errors.Is(err, syscall.EINVAL) && len(c.socket) > 107:
		return problem.Field("state-dir", "the path of the socket in %s is longer than the 107 bytes that a socket may have", dir).Because(err)
	}
	return problem.New(problem.Unavailable, "the daemon for %s does not answer: %v", dir, rootCause(err)).Because(err)
}

// rootCause is the part of a network error that tells people something.
func rootCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		var sys *os.SyscallError
		if errors.As(op.Err, &sys) {
			return sys.Err
		}
		return op.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection was closed")
	}
	return err
}

// readProblem decodes an answer that is not a success.
func readProblem(res *http.Response) error {
	var doc struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
		Field  string `json:"field"`
		Hint   string `json:"hint"`
	}
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err := json.Unmarshal(b, &doc); err != nil || !strings.HasPrefix(doc.Type, problemPrefix) {
		p := problem.New(codeOfStatus(res.StatusCode), "the server answered %d %s, and not as a daemon of ptyd",
			res.StatusCode, http.StatusText(res.StatusCode))
		return p.WithHint("check --url: it is the address of the daemon with its base path")
	}
	p := &problem.Error{Code: problem.Code(doc.Code), Detail: doc.Detail, Field: doc.Field, Hint: doc.Hint}
	if p.Code == "" {
		p.Code = problem.Code(strings.TrimPrefix(doc.Type, problemPrefix))
	}
	if p.Detail == "" {
		p.Detail = doc.Title
	}
	return p
}

// codeOfStatus is the best guess for an answer that carries no code.
func codeOfStatus(status int) problem.Code {
	switch status {
	case http.StatusUnauthorized:
		return problem.Unauthenticated
	case http.StatusForbidden:
		return problem.Forbidden
	case http.StatusNotFound:
		return problem.NotFound
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return problem.Unavailable
	}
	return problem.Internal
}

// closeError turns the end of a channel or a connection into an error.
func closeError(b wire.Bye) *problem.Error {
	code := problem.Unavailable
	switch b.Code {
	case wire.CloseUnauthenticated:
		code = problem.Unauthenticated
	case wire.CloseForbidden:
		code = problem.Forbidden
	case wire.CloseNoSession:
		code = problem.NotFound
	case wire.CloseRemoved:
		code = problem.Gone
	case wire.CloseVersion:
		code = problem.Unsupported
	case wire.CloseBadFrame, wire.CloseBadAck, wire.CloseBadInput:
		code = problem.Internal
	}
	detail := b.Reason
	if detail == "" {
		detail = fmt.Sprintf("the daemon ended the connection (%d)", b.Code)
	}
	return problem.New(code, "%s", detail)
}

// Lost reports whether err means that the daemon could not be reached or
// stopped answering, so that trying again makes sense.
func Lost(err error) bool { return problem.Is(err, problem.Unavailable) }

package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/problem"
)

// kinds maps every code to its HTTP status and the title that people read.
var kinds = map[problem.Code]struct {
	status int
	title  string
}{
	problem.InvalidArgument:  {http.StatusBadRequest, "Invalid argument"},
	problem.Unauthenticated:  {http.StatusUnauthorized, "Not logged in"},
	problem.Forbidden:        {http.StatusForbidden, "Not allowed"},
	problem.OriginRefused:    {http.StatusForbidden, "Request from another origin"},
	problem.HostRefused:      {http.StatusMisdirectedRequest, "Host name not allowed"},
	problem.NotFound:         {http.StatusNotFound, "Not found"},
	problem.MethodRefused:    {http.StatusMethodNotAllowed, "Method not allowed"},
	problem.Conflict:         {http.StatusConflict, "Conflict"},
	problem.NameTaken:        {http.StatusConflict, "Name taken"},
	problem.SessionEnded:     {http.StatusConflict, "Session has ended"},
	problem.SessionRunning:   {http.StatusConflict, "Session is running"},
	problem.Gone:             {http.StatusGone, "Gone"},
	problem.TooLarge:         {http.StatusRequestEntityTooLarge, "Too large"},
	problem.IdempotencyReuse: {http.StatusUnprocessableEntity, "Idempotency key used for another request"},
	problem.ExecFailed:       {http.StatusUnprocessableEntity, "Command could not be started"},
	problem.RateLimited:      {http.StatusTooManyRequests, "Too many attempts"},
	problem.LimitReached:     {http.StatusTooManyRequests, "Limit reached"},
	problem.Internal:         {http.StatusInternalServerError, "Internal error"},
	problem.Unsupported:      {http.StatusUnprocessableEntity, "Not supported here"},
	problem.Unavailable:      {http.StatusServiceUnavailable, "Not available now"},
	problem.DiskFull:         {http.StatusInsufficientStorage, "Disk full"},
}

// Problem is the body of every error response (RFC 9457).
type Problem struct {
	Type   string       `json:"type" doc:"urn:ptyd:problem: and the code."`
	Title  string       `json:"title" doc:"The kind of error in a few words."`
	Status int          `json:"status" doc:"The HTTP status."`
	Code   problem.Code `json:"code" doc:"Stable name of the kind of error."`
	Detail string       `json:"detail" doc:"What is wrong, in a sentence."`
	Field  string       `json:"field,omitempty" doc:"The member of the input that is wrong."`
	Hint   string       `json:"hint,omitempty" doc:"What to do about it."`
}

// asProblem is the one mapping of errors to what a client sees. What is not a
// problem.Error is an internal error whose text stays in the log.
func asProblem(err error) Problem {
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		switch {
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			e = problem.New(problem.Unavailable, "the request was given up before it was done")
		default:
			e = problem.New(problem.Internal, "something went wrong in ptyd; its log says what")
		}
	}
	kind, ok := kinds[e.Code]
	if !ok {
		kind = kinds[problem.Internal]
	}
	return Problem{
		Type:   "urn:ptyd:problem:" + string(e.Code),
		Title:  kind.title,
		Status: kind.status,
		Code:   e.Code,
		Detail: e.Detail,
		Field:  e.Field,
		Hint:   e.Hint,
	}
}

// writeProblem answers r with err.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	// A full disk is told by the housekeeper, once.
	if p.Status >= http.StatusInternalServerError && p.Code != problem.DiskFull && r.Context().Err() == nil {
		s.log.Warn("request failed", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.Error(err))
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="ptyd"`)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(p) // the client may be gone; nobody else to tell
	}
}

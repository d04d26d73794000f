package problem

import (
	"errors"
	"fmt"
)

// Code is a stable, machine-readable name of a kind of failure. Codes never
// change their meaning; the HTTP status and the exit status follow from them.
type Code string

// The codes. api maps each to one HTTP status, client maps it back.
const (
	InvalidArgument  Code = "invalid_argument"       // 400: Field says which
	Unauthenticated  Code = "unauthenticated"        // 401
	Forbidden        Code = "forbidden"              // 403
	OriginRefused    Code = "origin_refused"         // 403: Origin, Sec-Fetch-Site
	HostRefused      Code = "host_refused"           // 421: Host not on the allow-list
	NotFound         Code = "not_found"              // 404
	MethodRefused    Code = "method_not_allowed"     // 405
	Conflict         Code = "conflict"               // 409
	NameTaken        Code = "name_taken"             // 409
	SessionEnded     Code = "session_ended"          // 409
	SessionRunning   Code = "session_running"        // 409
	Gone             Code = "gone"                   // 410: an idempotency key whose session was removed
	TooLarge         Code = "too_large"              // 413
	IdempotencyReuse Code = "idempotency_key_reused" // 422: same key, other request
	ExecFailed       Code = "exec_failed"            // 422: the command could not be started
	RateLimited      Code = "rate_limited"           // 429
	LimitReached     Code = "limit_reached"          // 429: sessions per owner or in all
	Internal         Code = "internal"               // 500
	Unsupported      Code = "unsupported"            // 422: this machine or release cannot do it
	Unavailable      Code = "unavailable"            // 503: shutting down, database gone
	DiskFull         Code = "disk_full"              // 507
)

// Error is the one error type that reaches users: over HTTP as problem+json,
// over the WebSocket as a close reason, on the command line as text.
type Error struct {
	Code   Code
	Field  string // the input member that is wrong, "" when none
	Detail string // one sentence for people
	Hint   string // what to do about it, "" when nothing
	Err    error  // the cause, for logs; never shown to a remote user
}

// New returns an Error without a field.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Field returns an InvalidArgument error about one input member.
func Field(field, format string, args ...any) *Error {
	return &Error{Code: InvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of e that tells what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// Because returns a copy of e with its cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

func (e *Error) Error() string {
	s := e.Detail
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first Error in err's chain, or Internal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Is reports whether err carries code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }

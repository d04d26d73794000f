package api

import (
	"slices"

	"github.com/ptyd/ptyd/internal/lazy"
	"github.com/ptyd/ptyd/internal/problem"
)

// The session core checks what a session may be. Here stands what only a
// request over HTTP can get wrong.
const (
	maxPattern = 4 << 10 // bytes of a regular expression: its program grows with it
	maxKeys    = 1024    // keys in one request
)

var (
	idRE      = lazy.Regexp(`^[a-z]_[0-9a-hjkmnp-tv-z]{26}$`)
	envNameRE = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// envList is an object of variables as K=V, sorted, so that a repeated request
// is the same request.
func envList(env map[string]string) ([]string, error) {
	out := make([]string, 0, len(env))
	for k, v := range env {
		if !envNameRE().MatchString(k) {
			return nil, problem.Field("env", "%q is not a variable's name", clip(k))
		}
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out, nil
}

// clip shortens what came from outside before it is shown or kept.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

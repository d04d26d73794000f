package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/problem"
)

// report tells an error on standard error, and turns it into the exit status.
func report(cmd *cobra.Command, g *globals, err error) error {
	if err == nil {
		return nil
	}
	status := statusError
	if e, ok := errors.AsType[*exitError](err); ok {
		if status = e.Status; e.Err == nil {
			return e
		}
		err = e.Err
	}
	p, ok := errors.AsType[*problem.Error](err)
	if !ok {
		code := problem.Internal
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			code = problem.Unavailable
		}
		p = problem.New(code, "%v", err)
	}
	text := "ptyd: " + clean(p.Detail)
	if p.Field != "" {
		text += " (" + clean(p.Field) + ")"
	}
	text += "\n"
	if p.Hint != "" {
		text += "  " + clean(p.Hint) + "\n"
	}
	if g.JSON {
		text += string(jsonLine(map[string]any{"error": struct {
			Code   problem.Code `json:"code"`
			Detail string       `json:"detail"`
			Field  string       `json:"field,omitempty"`
			Hint   string       `json:"hint,omitempty"`
		}{p.Code, p.Detail, p.Field, p.Hint}}))
	}
	_, _ = fmt.Fprint(cmd.ErrOrStderr(), text)
	return &exitError{Status: status}
}

// note tells something that is no error on standard error.
func note(cmd *cobra.Command, format string, args ...any) {
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "ptyd: %s\n", clean(fmt.Sprintf(format, args...)))
}

// clean makes text of others safe for a terminal: a name or a command line
// must not move the cursor or set a title.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\uFFFD'
		}
		return r
	}, s)
}

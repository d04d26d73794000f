package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/problem"
)

// TestEveryCodeHasAStatus reads the codes from their package's source, so that
// a new one is not forgotten here.
func TestEveryCodeHasAStatus(t *testing.T) {
	f, err := os.Open("../problem/problem.go")
	check(t, err)
	defer func() { _ = f.Close() }()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		name, rest, ok := strings.Cut(line, " Code = \"")
		if !ok {
			if name, rest, ok = strings.Cut(line, "Code = \""); !ok {
				continue
			}
		}
		n++
		code, comment, _ := strings.Cut(rest, "\"")
		k, ok := kinds[problem.Code(code)]
		if !ok {
			t.Errorf("%s (%s) has no status", strings.TrimSpace(name), code)
		} else if !strings.Contains(comment, fmt.Sprint(k.status)) {
			t.Errorf("%s is %d here, and %q there", code, k.status, strings.TrimSpace(comment))
		}
	}
	if n != len(kinds) || n < 15 {
		t.Errorf("%d codes there, %d here", n, len(kinds))
	}
}

// TestProblemsTellNoInternals: the cause of an error stays in the log.
func TestProblemsTellNoInternals(t *testing.T) {
	for _, err := range []error{
		errors.New("secret path /var/lib"),
		problem.New(problem.Internal, "broken").Because(errors.New("secret path /var/lib")),
		fmt.Errorf("open: %w", problem.New(problem.NotFound, "there is no such thing").Because(errors.New("secret path"))),
		context.Canceled,
		problem.New("never_heard_of", "odd"),
	} {
		data, jerr := json.Marshal(asProblem(err))
		check(t, jerr)
		if strings.Contains(string(data), "secret path") {
			t.Errorf("%s", data)
		}
		if p := asProblem(err); p.Status < 400 || p.Title == "" {
			t.Errorf("%+v", p)
		}
	}
}

package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// TestOwners: to anybody but an admin another user's session is not there.
func TestOwners(t *testing.T) {
	e := newEnv(t)
	alice, bob := e.user("alice", auth.Operator), e.user("bob", auth.Operator)
	mine := e.create(alice, object{"argv": []string{"cat"}, "name": "shared-name"})
	for _, tt := range []struct {
		method, path string
		body         any
	}{
		{"GET", "", nil},
		{"PATCH", "", object{"name": "stolen"}},
		{"DELETE", "?force=true", nil},
		{"POST", "/resize", object{"cols": 1, "rows": 1}},
		{"POST", "/signal", object{"signal": "KILL"}},
		{"POST", "/close", object{}},
		{"POST", "/input", object{"text": "x"}},
		{"POST", "/wait", object{"exit": true, "timeout_ms": 0}},
		{"GET", "/output", nil},
		{"GET", "/screen", nil},
	} {
		for _, ref := range []string{mine.ID, mine.Name} {
			r := req{method: tt.method, path: "/v1/sessions/" + ref + tt.path, body: tt.body, token: bob}
			theirs := e.want(r, 404, problem.NotFound)
			r.path = "/v1/sessions/" + strings.Repeat("x", len(ref)) + tt.path
			none := e.do(r)
			if strings.ReplaceAll(string(theirs.body), ref, "") != strings.ReplaceAll(string(none.body), strings.Repeat("x", len(ref)), "") {
				t.Errorf("%s %s tells that a session is there: %s", tt.method, tt.path, theirs.body)
			}
		}
	}
	names := func(r req) (out []string) {
		var l list[Session]
		e.do(r).into(t, &l)
		for _, s := range l.Items {
			out = append(out, s.OwnerName+"/"+s.Name)
		}
		return out
	}
	if got := names(req{path: "/v1/sessions", token: bob}); len(got) != 0 {
		t.Errorf("bob sees %v", got)
	}
	e.want(req{path: "/v1/sessions?owner=alice", token: bob}, 403, problem.Forbidden)
	his := e.create(bob, object{"argv": []string{"cat"}, "name": "shared-name"})
	if got := names(req{path: "/v1/sessions?owner=bob", token: bob}); !slices.Equal(got, []string{"bob/shared-name"}) {
		t.Errorf("bob sees of his own %v", got)
	}
	if got := names(req{path: "/v1/sessions?owner=alice", socket: true}); !slices.Equal(got, []string{"alice/shared-name"}) {
		t.Errorf("the admin sees of alice's %v", got)
	}
	if got := names(req{path: "/v1/sessions", socket: true}); len(got) != 2 {
		t.Errorf("the admin sees %v", got)
	}
	// A name is one's own session before another's, for an admin too.
	var s Session
	e.do(req{path: "/v1/sessions/shared-name", token: bob}).into(t, &s)
	if s.ID != his.ID {
		t.Error("bob's name is not bob's session")
	}
	e.do(req{path: "/v1/sessions/shared-name", socket: true}).into(t, &s)
	if s.ID != mine.ID && s.ID != his.ID {
		t.Error("the admin does not find others' sessions by name")
	}
	own := e.create("", object{"argv": []string{"cat"}, "name": "shared-name"})
	e.do(req{path: "/v1/sessions/shared-name", socket: true}).into(t, &s)
	if s.ID != own.ID {
		t.Error("the admin's name is not the admin's session")
	}
	e.do(req{path: "/v1/sessions/" + his.ID, socket: true}).into(t, &s)
	if s.OwnerName != "bob" {
		t.Errorf("owned by %q", s.OwnerName)
	}
	if got := e.do(req{path: "/v1/sessions/" + mine.ID, token: alice}); got.status != 200 {
		t.Errorf("alice's session after all this: %d", got.status)
	}
}

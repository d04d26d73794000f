package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// TestLoginLimit: guesses are limited, and written down.
func TestLoginLimit(t *testing.T) {
	e := newEnv(t)
	check(t, e.auth.SetPassword(t.Context(), e.owner, "", "correct horse battery"))
	limited := 0
	for range 30 {
		got := e.do(req{method: "POST", path: "/v1/login", body: object{"name": e.owner.UserName, "password": "wrong"}})
		if got.status == 429 {
			if limited++; got.header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		} else if got.status != 401 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if limited == 0 {
		t.Error("30 guesses in a row")
	}
	if !slices.Contains(e.auditActions(), "request.refused") {
		t.Error("no audit row")
	}
}

// TestAudit: what is written down, and that it names who did it.
func TestAudit(t *testing.T) {
	e := newEnv(t)
	page := e.login()
	bob := e.user("bob", auth.Operator)
	s := e.create(bob, object{"argv": []string{"sh", "-c", "cat", "secret-argument"}, "name": "n"})
	e.want(req{method: "POST", path: "/v1/sessions/" + s.ID + "/close", body: object{}, token: bob}, 200, "")
	e.want(req{method: "POST", path: "/v1/sessions/" + s.ID + "/close", body: object{}, token: bob}, 200, "") // ended: no second row
	e.want(req{method: "DELETE", path: "/v1/sessions/" + s.ID, token: bob}, 204, "")
	e.want(req{method: "POST", path: "/v1/tokens", body: object{"name": "t"}, socket: true}, 201, "")
	e.want(req{method: "DELETE", path: "/v1/tokens/t", socket: true}, 204, "")
	e.want(req{method: "POST", path: "/v1/users", body: object{"name": "eve"}, socket: true}, 201, "")
	e.want(req{method: "PATCH", path: "/v1/users/eve", body: object{"disabled": true}, socket: true}, 200, "")
	e.want(req{path: "/v1/users", token: bob}, 403, problem.Forbidden)
	e.want(req{path: "/v1/me", host: "evil.example"}, 421, problem.HostRefused)
	e.want(req{path: "/v1/me", token: "ptyd_bad"}, 401, problem.Unauthenticated)
	e.want(req{path: "/v1/me"}, 401, problem.Unauthenticated) // says nothing: no row
	e.want(req{method: "POST", path: "/v1/logout", header: with(page, "Origin", e.url)}, 204, "")
	want := []string{
		"login", "session.create", "session.close", "session.delete", "token.create", "token.revoke", "user.add", "user.disable",
		"request.refused", "request.refused", "request.refused", "logout",
	}
	var got list[AuditRow]
	e.do(req{path: "/v1/audit?limit=500", socket: true}).into(t, &got)
	var actions []string
	for _, row := range got.Items {
		actions = append(actions, row.Action)
	}
	if !slices.Equal(actions, want) {
		t.Errorf("rows %v,\nwant %v", actions, want)
	}
	if text := string(mustJSON(t, got)); strings.Contains(text, "secret-argument") || strings.Contains(text, bob) {
		t.Error("the audit log holds arguments or a token")
	}
	if row := got.Items[1]; row.User != "bob" || row.Via != "token" || row.Target != s.ID || row.Detail["remote"] != "127.0.0.1" {
		t.Errorf("a row is %+v", row)
	}
	// Pages follow each other without a gap.
	var paged []string
	cursor := ""
	for {
		var p list[AuditRow]
		e.do(req{path: "/v1/audit?limit=5" + cursor, socket: true}).into(t, &p)
		for _, row := range p.Items {
			paged = append(paged, row.Action)
		}
		if p.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + p.NextCursor
	}
	if !slices.Equal(paged, want) {
		t.Errorf("by pages %v", paged)
	}
}

// TestRefusalsAreBounded: a flood of refused requests is no flood of rows.
func TestRefusalsAreBounded(t *testing.T) {
	e := newEnv(t)
	for range refusalBurst + 30 {
		e.do(req{path: "/v1/me", host: "evil.example"})
	}
	if n := len(e.auditActions()); n > refusalBurst+5 || n < refusalBurst {
		t.Errorf("%d rows", n)
	}
}

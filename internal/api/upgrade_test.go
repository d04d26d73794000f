package api

import (
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// A file to execute is named by the socket's own peer or not at all, whatever
// rights a credential has and by whichever way it comes.
func TestWhoNamesABinary(t *testing.T) {
	e := newEnv(t)
	token := e.user("boss", auth.Admin)
	named := req{method: "POST", path: "/v1/upgrade", body: object{"path": "/opt/ptyd"}}
	unnamed := req{method: "POST", path: "/v1/upgrade", body: object{}}
	for name, with := range map[string]func(req) req{
		"token over TCP":    func(r req) req { r.token = token; return r },
		"token over socket": func(r req) req { r.token, r.socket = token, true; return r },
		"browser":           func(r req) req { r.header = with(e.login(), "Origin", e.url); return r },
	} {
		t.Run(name, func(t *testing.T) {
			e.t = t
			e.want(with(named), 403, problem.Forbidden)
			var u Upgrade
			e.want(with(unnamed), 202, "").into(t, &u)
			if u.To.Path != "/default" {
				t.Errorf("it goes to %+v", u.To)
			}
		})
	}
	e.t = t
	// A proxy in front of the socket lends its rights to nobody.
	relayed := named
	relayed.socket, relayed.header = true, map[string]string{"X-Forwarded-For": "192.0.2.1"}
	e.want(relayed, 401, problem.Unauthenticated)

	named.socket = true
	var u Upgrade
	e.want(named, 202, "").into(t, &u)
	if u.To.Path != "/opt/ptyd" {
		t.Errorf("it goes to %+v", u.To)
	}
	rows, err := e.store.ListAudit(t.Context(), 0, 500)
	check(t, err)
	var done, refused int
	for _, r := range rows {
		switch {
		case r.Action == "daemon.upgrade" && r.Target == "/opt/ptyd" && r.Via == auth.ViaSocket && strings.Contains(string(r.Detail), `"to":"2"`):
			done++
		case r.Action == "request.refused" && r.Target == "POST /v1/upgrade" && r.Via != "":
			refused++
		}
	}
	if done != 1 || refused != 3 {
		t.Errorf("%d upgrades and %d refusals in the audit log: %+v", done, refused, rows)
	}
}

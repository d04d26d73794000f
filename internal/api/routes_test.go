package api

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

var update = flag.Bool("update", false, "write docs/api.md")

// TestDocumentation holds docs/api.md to the table of routes.
func TestDocumentation(t *testing.T) {
	const name = "../../docs/api.md"
	if *update {
		check(t, os.WriteFile(name, []byte(Markdown()), 0o644))
	}
	got, err := os.ReadFile(name)
	check(t, err)
	if string(got) != Markdown() {
		t.Error("docs/api.md differs from the table of routes: go test ./internal/api -run TestDocumentation -update")
	}
}

// sample makes one good request for a route: its path, body and headers.
type sample struct {
	path   string
	body   any
	header map[string]string
	token  string // instead of the socket's peer
}

// samples has one entry for every route of the table, made when it is used.
func samples(e *env) map[string]func() sample {
	shell := object{"argv": []string{"cat"}}
	session := func() string { return e.create("", shell).ID }
	ended := func() string {
		s := e.create("", object{"argv": []string{"sh", "-c", "echo out; exit 7"}})
		e.do(req{method: "POST", path: "/v1/sessions/" + s.ID + "/wait", body: object{"exit": true}, socket: true})
		return s.ID
	}
	fixed := func(s sample) func() sample { return func() sample { return s } }
	group := func(name string) string {
		if _, err := e.auth.AddGroup(e.t.Context(), e.owner, name); err != nil {
			e.t.Fatal(err)
		}
		return name
	}
	return map[string]func() sample{
		"POST /v1/login": func() sample {
			secret, _, err := e.auth.CreateLink(e.t.Context(), e.owner, "")
			check(e.t, err)
			return sample{path: "/v1/login", body: object{"link": secret}, token: "-"}
		},
		"POST /v1/logout": func() sample {
			return sample{path: "/v1/logout", header: with(e.login(), "Origin", e.url), token: "-"}
		},
		"POST /v1/login-links": fixed(sample{path: "/v1/login-links", body: object{}}),
		"POST /v1/tickets":     fixed(sample{path: "/v1/tickets"}),
		"GET /v1/me":           fixed(sample{path: "/v1/me"}),
		"PUT /v1/me/password":  fixed(sample{path: "/v1/me/password", body: object{"password": "correct horse battery"}}),
		"GET /v1/sessions": func() sample {
			session()
			ended()
			return sample{path: "/v1/sessions?state=running&state=exited&limit=2"}
		},
		"POST /v1/sessions":     fixed(sample{path: "/v1/sessions", body: object{"argv": []string{"true"}, "env": object{"A": "b"}, "labels": object{"k": "v"}, "cols": 100, "rows": 30, "name": "made", "cwd": "/"}}),
		"GET /v1/sessions/{id}": func() sample { return sample{path: "/v1/sessions/" + ended()} },
		"PATCH /v1/sessions/{id}": func() sample {
			return sample{path: "/v1/sessions/" + session(), body: object{"name": "renamed", "labels": object{"a": "b"}}}
		},
		"DELETE /v1/sessions/{id}": func() sample { return sample{path: "/v1/sessions/" + session() + "?force=true"} },
		"POST /v1/sessions/{id}/resize": func() sample {
			return sample{path: "/v1/sessions/" + session() + "/resize", body: object{"cols": 90, "rows": 20}}
		},
		"POST /v1/sessions/{id}/signal": func() sample {
			return sample{path: "/v1/sessions/" + session() + "/signal", body: object{"signal": "WINCH"}}
		},
		"POST /v1/sessions/{id}/close": func() sample {
			return sample{path: "/v1/sessions/" + session() + "/close", body: object{"grace_ms": 0}}
		},
		"POST /v1/sessions/{id}/run-again": func() sample { return sample{path: "/v1/sessions/" + ended() + "/run-again"} },
		"POST /v1/sessions/{id}/input": func() sample {
			return sample{path: "/v1/sessions/" + session() + "/input", body: object{"keys": []string{"a", "Enter"}}}
		},
		"POST /v1/sessions/{id}/wait": func() sample {
			return sample{path: "/v1/sessions/" + ended() + "/wait", body: object{"text": "o(ut)", "from": 0, "timeout_ms": 50000}}
		},
		"GET /v1/sessions/{id}/output": func() sample { return sample{path: "/v1/sessions/" + ended() + "/output?offset=-3&limit=2&wait=1s"} },
		"GET /v1/sessions/{id}/screen": func() sample { return sample{path: "/v1/sessions/" + ended() + "/screen?format=cells"} },
		"GET /v1/users":                fixed(sample{path: "/v1/users"}),
		"POST /v1/users":               fixed(sample{path: "/v1/users", body: object{"name": "newuser", "role": "viewer", "uid": 54321, "password": "correct horse battery"}}),
		"PATCH /v1/users/{name}": func() sample {
			e.user("patched", auth.Viewer)
			return sample{path: "/v1/users/patched", body: object{"disabled": true, "role": "operator", "password": ""}}
		},
		"GET /v1/groups":                          func() sample { group("listed"); return sample{path: "/v1/groups"} },
		"POST /v1/groups":                         fixed(sample{path: "/v1/groups", body: object{"name": "newgroup"}}),
		"DELETE /v1/groups/{name}":                func() sample { return sample{path: "/v1/groups/" + group("gone")} },
		"PUT /v1/groups/{name}/members/{user}":    func() sample { return sample{path: "/v1/groups/" + group("joined") + "/members/" + e.owner.UserName} },
		"DELETE /v1/groups/{name}/members/{user}": func() sample { return sample{path: "/v1/groups/" + group("left") + "/members/" + e.owner.UserName} },
		"GET /v1/tokens":                          func() sample { e.user("tokened", auth.Viewer); return sample{path: "/v1/tokens"} },
		"POST /v1/tokens":                         fixed(sample{path: "/v1/tokens", body: object{"name": "new", "role": "viewer", "ttl_s": 60}}),
		"DELETE /v1/tokens/{id}":                  func() sample { e.user("revoked", auth.Viewer); return sample{path: "/v1/tokens/revoked"} },
		"GET /v1/status":                          fixed(sample{path: "/v1/status"}),
		"POST /v1/upgrade":                        fixed(sample{path: "/v1/upgrade", body: object{"path": "/opt/ptyd", "one_way": true}}),
		"POST /v1/restart":                        fixed(sample{path: "/v1/restart"}),
		"GET /v1/audit":                           func() sample { session(); return sample{path: "/v1/audit?after=0&limit=1"} },
		"GET /v1/openapi.json":                    fixed(sample{path: "/v1/openapi.json", token: "-"}),
		"GET /metrics":                            fixed(sample{path: "/metrics"}),
		"GET /healthz":                            fixed(sample{path: "/healthz", token: "-"}),
		"GET /readyz":                             fixed(sample{path: "/readyz", token: "-"}),
	}
}

// TestEveryRouteAnswersAsDocumented makes a good request for every route and
// holds status, content type, headers and body to the document. Bodies may not
// hold members that the document does not have.
func TestEveryRouteAnswersAsDocumented(t *testing.T) {
	e := newEnv(t)
	schemas := compileSchemas(t, true)
	all := samples(e)
	for i := range e.s.routes {
		rt := &e.s.routes[i]
		key := rt.method + " " + rt.pattern
		if rt.open == upgrade {
			continue // TestUpgrade
		}
		t.Run(key, func(t *testing.T) {
			e.t = t
			make, ok := all[key]
			if !ok {
				t.Fatal("has no sample: add one")
			}
			s := make()
			if rt.in != nil && s.body != nil {
				validate(t, schemas, "#/components/schemas/"+typeTitle(rt.in), mustJSON(t, s.body))
			}
			r := req{method: rt.method, path: s.path, body: s.body, header: s.header, socket: s.token == ""}
			got := e.do(r)
			if got.status != rt.status {
				t.Fatalf("status %d, want %d: %s", got.status, rt.status, got.body)
			}
			wantType := rt.content
			if rt.out != nil {
				wantType = "application/json"
			}
			if ct, _, _ := strings.Cut(got.header.Get("Content-Type"), ";"); ct != wantType {
				t.Errorf("content type %q, want %q", ct, wantType)
			}
			for _, h := range rt.headers {
				if got.header.Get(h.name) == "" && h.name != "Idempotency-Replayed" {
					t.Errorf("header %s is missing", h.name)
				}
			}
			if cc := got.header.Get("Cache-Control"); cc != "no-store" {
				t.Errorf("Cache-Control %q: answers of the API are nobody's to keep", cc)
			}
			switch {
			case rt.out != nil:
				validate(t, schemas, "#/components/schemas/"+typeTitle(rt.out), got.body)
			case rt.status == http.StatusNoContent && len(got.body) > 0:
				t.Errorf("a body without content: %s", got.body)
			}
		})
	}
	e.t = t
	for key := range all {
		if !slices.ContainsFunc(e.s.routes, func(rt route) bool { return key == rt.method+" "+rt.pattern }) {
			t.Errorf("the sample %s belongs to no route", key)
		}
	}
}

// TestRolesMeetRoutes sends every route a request with every role, and one with
// none, and holds the answers to the one table of rights.
func TestRolesMeetRoutes(t *testing.T) {
	e := newEnv(t)
	tokens := map[auth.Role]string{}
	for _, role := range auth.Roles() {
		tokens[role] = e.user("the"+string(role), role)
	}
	rows := auth.Table()
	for i := range e.s.routes {
		rt := &e.s.routes[i]
		path := strings.NewReplacer("{id}", "none", "{name}", "none", "{user}", "none").Replace(rt.pattern)
		r := req{method: rt.method, path: path}
		if rt.open == upgrade {
			r.header = map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Protocol": "ptyd.v1"}
		}
		if (rt.action == "") != (rt.open == public || rt.open == login) {
			t.Errorf("%s %s: action %q does not fit who it is open to", rt.method, rt.pattern, rt.action)
		}
		if rt.action == "" {
			if got := e.do(r); got.status == 401 || got.status == 403 {
				t.Errorf("%s %s is open to all and answered %d", rt.method, rt.pattern, got.status)
			}
			continue
		}
		row := slices.IndexFunc(rows, func(row auth.Row) bool { return row.Action == rt.action })
		if row < 0 {
			t.Errorf("%s %s: no row of the table for %s", rt.method, rt.pattern, rt.action)
			continue
		}
		if rt.open == authenticated {
			e.want(r, 401, problem.Unauthenticated)
		}
		for _, role := range auth.Roles() {
			r.token = tokens[role]
			got := e.do(r)
			if slices.Contains(rows[row].Roles, role) {
				if got.status == 401 || got.status == 403 {
					t.Errorf("%s %s as %s: %d %s, want to get through", rt.method, rt.pattern, role, got.status, got.body)
				}
			} else if got.status != 403 || got.code() != string(problem.Forbidden) {
				t.Errorf("%s %s as %s: %d %s, want 403 forbidden", rt.method, rt.pattern, role, got.status, got.body)
			}
		}
		r.token = "ptyd_" + strings.Repeat("A", 43)
		e.want(r, 401, problem.Unauthenticated)
	}
}

// TestErrorsAreDocumented provokes errors and holds them to the document: each
// code must be among those of its route.
func TestErrorsAreDocumented(t *testing.T) {
	e := newEnv(t)
	schemas := compileSchemas(t, true)
	s := e.create("", object{"argv": []string{"cat"}, "name": "here"})
	gone := e.create("", object{"argv": []string{"true"}})
	e.want(req{method: "POST", path: "/v1/sessions/" + gone.ID + "/close", socket: true}, 200, "")
	one := "/v1/sessions/" + s.ID
	key := map[string]string{"Idempotency-Key": "k"}
	e.do(req{method: "POST", path: "/v1/sessions", body: object{"argv": []string{"true"}}, header: key, socket: true})
	goneKey := map[string]string{"Idempotency-Key": "gone"}
	var removed Session
	e.do(req{method: "POST", path: "/v1/sessions", body: object{"argv": []string{"true"}}, header: goneKey, socket: true}).into(t, &removed)
	e.do(req{method: "DELETE", path: "/v1/sessions/" + removed.ID + "?force=1", socket: true})

	for _, tt := range []struct {
		method, path string
		body         any
		header       map[string]string
		status       int
		code         problem.Code
		field        string
	}{
		{"POST", "/v1/upgrade", object{"path": "/busy"}, nil, 409, problem.Conflict, ""},
		{"POST", "/v1/upgrade", object{"path": "/none"}, nil, 422, problem.Unsupported, ""},
		{"POST", "/v1/sessions", object{}, nil, 400, problem.InvalidArgument, "argv"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "shell": true}, nil, 400, problem.InvalidArgument, "shell"},
		{"POST", "/v1/sessions", object{"argv": []string{""}}, nil, 400, problem.InvalidArgument, "argv"},
		{"POST", "/v1/sessions", object{"argv": slices.Repeat([]string{"a"}, 1025)}, nil, 400, problem.InvalidArgument, "argv"},
		{"POST", "/v1/sessions", object{"argv": []string{strings.Repeat("a", 129<<10)}}, nil, 400, problem.InvalidArgument, "argv"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "name": "-x"}, nil, 400, problem.InvalidArgument, "name"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "name": ".."}, nil, 400, problem.InvalidArgument, "name"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "name": s.ID}, nil, 400, problem.InvalidArgument, "name"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "name": strings.Repeat("n", 129)}, nil, 400, problem.InvalidArgument, "name"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "env": object{"A=B": "c"}}, nil, 400, problem.InvalidArgument, "env"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "cwd": "relative"}, nil, 400, problem.InvalidArgument, "cwd"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "cwd": "/nowhere/at/all"}, nil, 400, problem.InvalidArgument, "cwd"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "labels": object{"-": "x"}}, nil, 400, problem.InvalidArgument, "labels"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "output_limit": 1 << 40}, nil, 400, problem.InvalidArgument, "output_limit"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "output_limit": -1}, nil, 400, problem.InvalidArgument, "output_limit"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "cols": 65535}, nil, 400, problem.InvalidArgument, "cols"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "cols": 0}, nil, 400, problem.InvalidArgument, "cols"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "rows": 0}, nil, 400, problem.InvalidArgument, "rows"},
		{"POST", "/v1/sessions", object{"argv": []string{"a"}, "colls": 1}, nil, 400, problem.InvalidArgument, "colls"},
		{"POST", "/v1/sessions", object{"argv": []string{"true"}}, map[string]string{"Idempotency-Key": "has space"}, 400, problem.InvalidArgument, "Idempotency-Key"},
		{"POST", "/v1/sessions", object{"argv": []string{"false"}}, key, 422, problem.IdempotencyReuse, ""},
		{"POST", "/v1/sessions", object{"argv": []string{"true"}}, goneKey, 410, problem.Gone, ""},
		{"POST", "/v1/sessions", object{"argv": []string{"cat"}, "name": "here"}, nil, 409, problem.NameTaken, "name"},
		{"POST", "/v1/sessions", object{"argv": []string{"/nowhere/at/all"}}, nil, 422, problem.ExecFailed, "argv"},
		{"POST", "/v1/sessions", strings.Repeat(" ", 1<<20) + "{}", nil, 413, problem.TooLarge, ""},
		{"POST", "/v1/sessions", "{}", map[string]string{"Content-Type": "text/plain"}, 400, problem.InvalidArgument, "Content-Type"},
		{"GET", "/v1/sessions?limit=0", nil, nil, 400, problem.InvalidArgument, "limit"},
		{"GET", "/v1/sessions?limit=501", nil, nil, 400, problem.InvalidArgument, "limit"},
		{"GET", "/v1/sessions?statee=running", nil, nil, 400, problem.InvalidArgument, "statee"},
		{"GET", "/v1/sessions?state=asleep", nil, nil, 400, problem.InvalidArgument, "state"},
		{"GET", "/v1/sessions?label=novalue", nil, nil, 400, problem.InvalidArgument, "label"},
		{"GET", "/v1/sessions?owner=nobody", nil, nil, 400, problem.InvalidArgument, "owner"},
		{"GET", "/v1/sessions?name=a&name=b", nil, nil, 400, problem.InvalidArgument, "name"},
		{"GET", "/v1/sessions?%zz", nil, nil, 400, problem.InvalidArgument, ""},
		{"GET", "/v1/sessions/none", nil, nil, 404, problem.NotFound, ""},
		{"PATCH", one, object{"name": ""}, nil, 400, problem.InvalidArgument, "name"},
		{"DELETE", one, nil, nil, 409, problem.SessionRunning, ""},
		{"DELETE", one + "?force=maybe", nil, nil, 400, problem.InvalidArgument, "force"},
		{"POST", one + "/resize", object{"cols": 80}, nil, 400, problem.InvalidArgument, "rows"},
		{"POST", one + "/resize", object{"cols": 0, "rows": 1}, nil, 400, problem.InvalidArgument, "cols"},
		{"POST", one + "/resize", object{"cols": 70000, "rows": 1}, nil, 400, problem.InvalidArgument, "cols"},
		{"POST", one + "/signal", object{"signal": "NONE"}, nil, 400, problem.InvalidArgument, "signal"},
		{"POST", one + "/input", object{}, nil, 400, problem.InvalidArgument, "text"},
		{"POST", one + "/input", object{"text": "a", "keys": []string{"a"}}, nil, 400, problem.InvalidArgument, "text"},
		{"POST", one + "/input", object{"base64": "%"}, nil, 400, problem.InvalidArgument, "base64"},
		{"POST", one + "/input", object{"keys": []string{"NoSuchKey"}}, nil, 400, problem.InvalidArgument, "keys"},
		{"POST", one + "/wait", object{}, nil, 400, problem.InvalidArgument, ""},
		{"POST", one + "/wait", object{"text": "("}, nil, 400, problem.InvalidArgument, "text"},
		{"POST", one + "/wait", object{"exit": true, "timeout_ms": 50001}, nil, 400, problem.InvalidArgument, "timeout_ms"},
		{"POST", one + "/wait", object{"idle_ms": 0}, nil, 400, problem.InvalidArgument, "idle_ms"},
		{"GET", one + "/screen?format=png", nil, nil, 400, problem.InvalidArgument, "format"},
		{"GET", one + "/output?offset=x", nil, nil, 400, problem.InvalidArgument, "offset"},
		{"GET", one + "/output?offset=99", nil, nil, 400, problem.InvalidArgument, "offset"},
		{"GET", one + "/output?wait=51s", nil, nil, 400, problem.InvalidArgument, "wait"},
		{"GET", one + "/output?wait=99999999999999", nil, nil, 400, problem.InvalidArgument, "wait"},
		{"GET", one + "/output?wait=-1s", nil, nil, 400, problem.InvalidArgument, "wait"},
		{"POST", "/v1/sessions/" + gone.ID + "/input", object{"text": "a"}, nil, 409, problem.SessionEnded, ""},
		{"POST", "/v1/users", object{"name": "the owner"}, nil, 400, problem.InvalidArgument, "name"},
		{"POST", "/v1/users", object{}, nil, 400, problem.InvalidArgument, "name"},
		{"POST", "/v1/users", object{"name": e.owner.UserName}, nil, 409, problem.NameTaken, "name"},
		{"PATCH", "/v1/users/" + e.owner.UserName, object{"disabled": true}, nil, 409, problem.Conflict, ""},
		{"PATCH", "/v1/users/" + e.owner.UserName, object{"role": "king"}, nil, 400, problem.InvalidArgument, "role"},
		{"PATCH", "/v1/users/none", object{}, nil, 404, problem.NotFound, ""},
		{"POST", "/v1/tokens", object{"ttl_s": 1 << 62}, nil, 400, problem.InvalidArgument, "ttl_s"},
		{"POST", "/v1/tokens", object{"ttl_s": -1}, nil, 400, problem.InvalidArgument, "ttl_s"},
		{"POST", "/v1/tokens", object{"user": "none"}, nil, 404, problem.NotFound, ""},
		{"DELETE", "/v1/tokens/none", nil, nil, 404, problem.NotFound, ""},
		{"GET", "/v1/sessions?cursor=zz", nil, nil, 400, problem.InvalidArgument, "cursor"},
		{"GET", "/v1/tokens?cursor=x", nil, nil, 400, problem.InvalidArgument, "cursor"},
		{"GET", "/v1/audit?cursor=1&after=1", nil, nil, 400, problem.InvalidArgument, "cursor"},
		{"PUT", "/v1/me/password", object{"password": "short"}, nil, 400, problem.InvalidArgument, "password"},
		{"POST", "/v1/logout", nil, nil, 400, problem.InvalidArgument, ""},
		{"GET", "/v1/nothing", nil, nil, 404, problem.NotFound, ""},
		{"PUT", "/v1/sessions", nil, nil, 405, problem.MethodRefused, ""},
		{"POST", "/", nil, nil, 405, problem.MethodRefused, ""},
	} {
		got := e.do(req{method: tt.method, path: tt.path, body: tt.body, header: tt.header, socket: true})
		what := fmt.Sprintf("%s %s %.80v", tt.method, tt.path, tt.body)
		if got.status != tt.status || got.code() != string(tt.code) {
			t.Errorf("%s: %d %s, want %d %s", what, got.status, got.body, tt.status, tt.code)
			continue
		}
		validate(t, schemas, "#/components/schemas/Problem", got.body)
		var p Problem
		check(t, json.Unmarshal(got.body, &p))
		if p.Field != tt.field || p.Status != tt.status || p.Type != "urn:ptyd:problem:"+string(tt.code) || p.Detail == "" {
			t.Errorf("%s: %+v, want field %q", what, p, tt.field)
		}
		if tt.code == problem.MethodRefused && got.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", what)
		}
		path, _, _ := strings.Cut(tt.path, "?")
		hr, _ := http.NewRequest(tt.method, path, nil)
		_, pattern := e.s.mux.Handler(hr)
		for i := range e.s.routes {
			if rt := &e.s.routes[i]; pattern == rt.method+" "+rt.pattern && !slices.Contains(rt.problems(), tt.code) {
				t.Errorf("%s: the document of %s does not have %s", what, pattern, tt.code)
			}
		}
	}
}

// compileSchemas compiles the components of the OpenAPI document. With strict,
// objects may not hold members that the document does not name.
func compileSchemas(t *testing.T, strict bool) *jsonschema.Compiler {
	t.Helper()
	var doc object
	data := mustJSON(t, document(routes(), "1", ""))
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	check(t, err)
	doc = parsed.(object)
	for _, c := range doc["components"].(object)["schemas"].(object) {
		if sch := c.(object); strict && sch["properties"] != nil {
			sch["additionalProperties"] = false
		}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	check(t, c.AddResource("ptyd.json", doc))
	return c
}

func validate(t *testing.T, c *jsonschema.Compiler, pointer string, data []byte) {
	t.Helper()
	sch, err := c.Compile("ptyd.json" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	check(t, err)
	if err := sch.Validate(v); err != nil {
		t.Errorf("%s is not as documented: %v", data, err)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	check(t, err)
	return data
}

// TestDocumentIsWhole checks what the walk over the routes cannot see.
func TestDocumentIsWhole(t *testing.T) {
	e := newEnv(t)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Summary     string
			Parameters  []struct {
				Name, In string
				Required bool
			}
			Responses map[string]struct{ Description string }
			Security  []map[string][]string
		}
		Components struct{ Schemas map[string]any }
	}
	got := e.want(req{path: "/v1/openapi.json"}, 200, "")
	check(t, json.Unmarshal(got.body, &doc))
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("openapi %q", doc.OpenAPI)
	}
	ids := map[string]bool{}
	n := 0
	for path, item := range doc.Paths {
		for method, op := range item {
			n++
			if ids[op.OperationID] || op.OperationID == "" || op.Summary == "" {
				t.Errorf("%s %s: operationId %q, summary %q", method, path, op.OperationID, op.Summary)
			}
			ids[op.OperationID] = true
			for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
				if name, ok := strings.CutPrefix(name, "{"); ok {
					name = strings.TrimSuffix(name, "}")
					if !slices.ContainsFunc(op.Parameters, func(p struct {
						Name, In string
						Required bool
					}) bool {
						return p.Name == name && p.In == "path" && p.Required
					}) {
						t.Errorf("%s %s: the parameter %s is not described", method, path, name)
					}
				}
			}
			for status := range op.Responses {
				if s, err := strconv.Atoi(status); err != nil || http.StatusText(s) == "" {
					t.Errorf("%s %s: status %q", method, path, status)
				}
			}
		}
	}
	if n != len(e.s.routes) {
		t.Errorf("%d operations for %d routes", n, len(e.s.routes))
	}
	c := compileSchemas(t, false)
	for name := range doc.Components.Schemas {
		if _, err := c.Compile("ptyd.json#/components/schemas/" + name); err != nil {
			t.Error(err)
		}
	}
}

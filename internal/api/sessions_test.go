package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// TestCreateOnce: one key, one session, however often and at once it is asked for.
func TestCreateOnce(t *testing.T) {
	e := newEnv(t)
	body := object{"argv": []string{"cat"}, "env": object{"A": "1", "B": "2", "C": "3"}, "labels": object{"x": "1", "y": "2"}}
	r := req{method: "POST", path: "/v1/sessions", body: body, socket: true, header: map[string]string{"Idempotency-Key": "once"}}
	var (
		wg  sync.WaitGroup
		all [20]resp
	)
	for i := range all {
		wg.Go(func() { all[i] = e.do(r) })
	}
	wg.Wait()
	made := 0
	var first Session
	for _, got := range all {
		var s Session
		got.into(t, &s)
		if first.ID == "" {
			first = s
		}
		if s.ID != first.ID {
			t.Fatal("one key made two sessions")
		}
		switch replayed := got.header.Get("Idempotency-Replayed"); {
		case got.status == http.StatusCreated && replayed == "":
			made++
		case got.status != http.StatusOK || replayed != "true":
			t.Errorf("status %d, Idempotency-Replayed %q", got.status, replayed)
		}
	}
	if made != 1 {
		t.Errorf("%d answers say that they made it", made)
	}
	if n := len(slices.DeleteFunc(e.auditActions(), func(a string) bool { return a != "session.create" })); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

func (e *env) output(ref, query string) (resp, map[string]int64) {
	e.t.Helper()
	got := e.do(req{path: "/v1/sessions/" + ref + "/output" + query, socket: true})
	if got.status != 200 {
		e.t.Fatalf("output: %d %s", got.status, got.body)
	}
	at := map[string]int64{}
	for _, name := range []string{"Offset", "Next-Offset", "Oldest-Offset", "Head-Offset"} {
		n, err := strconv.ParseInt(got.header.Get("Ptyd-"+name), 10, 64)
		check(e.t, err)
		at[name] = n
	}
	return got, at
}

func TestOutput(t *testing.T) {
	e := newEnv(t)
	s := e.create("", object{"argv": []string{"sh", "-c", "stty -echo; printf 0123456789; read x; printf abc; exit 3"}})
	e.want(req{method: "POST", path: "/v1/sessions/" + s.ID + "/wait", body: object{"text": "9"}, socket: true}, 200, "")
	for _, tt := range []struct {
		query, body  string
		offset, next int64
	}{
		{"", "0123456789", 0, 10},
		{"?offset=4", "456789", 4, 10},
		{"?offset=4&limit=3", "456", 4, 7},
		{"?offset=10", "", 10, 10},
		{"?offset=-3", "789", 7, 10},
		{"?offset=-300", "0123456789", 0, 10},
		{"?offset=10&wait=1ms", "", 10, 10},
	} {
		got, at := e.output(s.ID, tt.query)
		if string(got.body) != tt.body || at["Offset"] != tt.offset || at["Next-Offset"] != tt.next || at["Head-Offset"] != 10 || at["Oldest-Offset"] != 0 ||
			got.header.Get("Ptyd-Eof") != "false" || got.header.Get("Ptyd-Epoch") != s.Epoch {
			t.Errorf("%s: %q, %v, %v", tt.query, got.body, at, got.header)
		}
	}
	// A request that waits is answered by what comes.
	waited := make(chan resp, 1)
	go func() { waited <- e.do(req{path: "/v1/sessions/" + s.ID + "/output?offset=10&wait=50s", socket: true}) }()
	e.want(req{method: "POST", path: "/v1/sessions/" + s.ID + "/input", body: object{"keys": []string{"Enter"}}, socket: true}, 204, "")
	if got := <-waited; !strings.HasPrefix("abc", string(got.body)) || len(got.body) == 0 {
		t.Errorf("waited for %q", got.body)
	}
	e.want(req{method: "POST", path: "/v1/sessions/" + s.ID + "/wait", body: object{"exit": true}, socket: true}, 200, "")
	if got, at := e.output(s.ID, "?offset=12&wait=50s"); string(got.body) != "c" || got.header.Get("Ptyd-Eof") != "true" || at["Next-Offset"] != 13 {
		t.Errorf("the end: %q %v", got.body, got.header)
	}
	if got := e.do(req{method: "HEAD", path: "/v1/sessions/" + s.ID + "/output", socket: true}); got.status != 200 || len(got.body) != 0 || got.header.Get("Ptyd-Next-Offset") != "13" {
		t.Errorf("HEAD: %d %v", got.status, got.header)
	}
}

// TestDroppedOutput: what is no longer kept is skipped, and the answer says so.
func TestDroppedOutput(t *testing.T) {
	e := newEnv(t)
	s := e.create("", object{"argv": []string{"sh", "-c", "stty -opost; head -c 1000000 /dev/zero"}, "output_limit": 64 << 10})
	e.want(req{method: "POST", path: "/v1/sessions/" + s.ID + "/wait", body: object{"exit": true}, socket: true}, 200, "")
	got, at := e.output(s.ID, "?offset=5")
	if at["Offset"] != at["Oldest-Offset"] || at["Oldest-Offset"] <= 5 || at["Next-Offset"] != 1000000 || int64(len(got.body)) != at["Next-Offset"]-at["Offset"] {
		t.Errorf("%d bytes, %v", len(got.body), at)
	}
	if _, at := e.output(s.ID, "?offset=-999999"); at["Offset"] != at["Oldest-Offset"] {
		t.Errorf("from before what is kept: %v", at)
	}
}

func TestWait(t *testing.T) {
	e := newEnv(t)
	s := e.create("", object{"argv": []string{"sh", "-c", "printf 'one two'; read x; exit 7"}})
	wait := func(in object) WaitResult {
		t.Helper()
		var out WaitResult
		e.do(req{method: "POST", path: "/v1/sessions/" + s.ID + "/wait", body: in, socket: true}).into(t, &out)
		return out
	}
	matched := func(r WaitResult) string {
		if r.Matched == nil {
			return ""
		}
		return *r.Matched
	}
	if r := wait(object{"text": "t(w)o"}); matched(r) != "text" || r.Match.Start != 4 || r.Match.End != 7 || r.Match.Text != "two" {
		t.Errorf("%+v %+v", r, r.Match)
	}
	if r := wait(object{"text": "three", "timeout_ms": 0}); matched(r) != "" || r.Impossible || r.Session.State != ptymgr.Running {
		t.Errorf("%+v", r)
	}
	if r := wait(object{"idle_ms": 1}); matched(r) != "idle" {
		t.Errorf("%+v", r)
	}
	e.want(req{method: "POST", path: "/v1/sessions/" + s.ID + "/input", body: object{"base64": "Cg=="}, socket: true}, 204, "")
	if r := wait(object{"exit": true}); matched(r) != "exit" || *r.Session.ExitCode != 7 || r.Session.EndedAt == nil {
		t.Errorf("%+v", r)
	}
	if r := wait(object{"text": "three"}); matched(r) != "" || !r.Impossible {
		t.Errorf("%+v", r)
	}
}

// TestPatchBothOrNone: a name that is taken leaves the labels as they were.
func TestPatchBothOrNone(t *testing.T) {
	e := newEnv(t)
	e.create("", object{"argv": []string{"cat"}, "name": "taken"})
	s := e.create("", object{"argv": []string{"cat"}, "name": "mine", "labels": object{"old": "1"}})
	path := "/v1/sessions/" + s.ID
	for _, bad := range []object{
		{"name": "taken", "labels": object{"new": "2"}},
		{"name": "-bad", "labels": object{"new": "2"}},
		{"name": "good", "labels": object{"": "2"}},
	} {
		if got := e.do(req{method: "PATCH", path: path, body: bad, socket: true}); got.status < 400 {
			t.Errorf("%v: %d", bad, got.status)
		}
		var now Session
		e.do(req{path: path, socket: true}).into(t, &now)
		if now.Name != "mine" || fmt.Sprint(now.Labels) != "map[old:1]" {
			t.Errorf("after %v: %q, %v", bad, now.Name, now.Labels)
		}
	}
	var now Session
	e.do(req{method: "PATCH", path: path, body: object{"name": "yours", "labels": object{}}, socket: true}).into(t, &now)
	if now.Name != "yours" || len(now.Labels) != 0 {
		t.Errorf("%q, %v", now.Name, now.Labels)
	}
}

func TestListFilters(t *testing.T) {
	e := newEnv(t)
	for i := range 5 {
		labels := object{"n": strconv.Itoa(i)}
		if i%2 == 0 {
			labels["even"] = "yes"
		}
		e.create("", object{"argv": []string{"cat"}, "name": fmt.Sprint("s", i), "labels": labels})
	}
	e.want(req{method: "POST", path: "/v1/sessions/s1/close", body: object{"grace_ms": 0}, socket: true}, 200, "")
	names := func(query string) string {
		t.Helper()
		var out []string
		for cursor := ""; ; {
			var l list[Session]
			e.do(req{path: "/v1/sessions?limit=2&" + query + cursor, socket: true}).into(t, &l)
			for _, s := range l.Items {
				out = append(out, s.Name)
			}
			if l.NextCursor == "" {
				return strings.Join(out, " ")
			}
			cursor = "&cursor=" + l.NextCursor
		}
	}
	for query, want := range map[string]string{
		"":                           "s0 s1 s2 s3 s4",
		"state=running":              "s0 s2 s3 s4",
		"state=exited":               "s1",
		"state=running&state=exited": "s0 s1 s2 s3 s4",
		"state=lost":                 "",
		"label=even=yes":             "s0 s2 s4",
		"label=even=yes&label=n=2":   "s2",
		"label=n=1&label=n=2":        "",
		"name=s3":                    "s3",
		"owner=" + e.owner.UserName:  "s0 s1 s2 s3 s4",
		"owner=" + e.owner.UserID:    "s0 s1 s2 s3 s4",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestLimits: too many sessions are refused, for one owner and in all.
func TestLimits(t *testing.T) {
	e := newEnv(t)
	bob := e.user("bob", "operator")
	e.mgr.Reconfigure(ptymgr.Config{MaxPerOwner: 2, MaxTotal: 3, Grace: 100 * time.Millisecond})
	body := object{"argv": []string{"cat"}}
	for range 2 {
		e.create("", body)
	}
	for _, tt := range []struct {
		r     req
		field string
	}{
		{req{socket: true}, "owner"},
		{req{token: bob}, ""},
		{req{token: bob}, "sessions"},
	} {
		tt.r.method, tt.r.path, tt.r.body = "POST", "/v1/sessions", body
		if tt.field == "" {
			e.want(tt.r, 201, "")
			continue
		}
		got := e.want(tt.r, 429, problem.LimitReached)
		if !strings.Contains(string(got.body), `"field":"`+tt.field+`"`) || !strings.Contains(string(got.body), "hint") {
			t.Errorf("%s", got.body)
		}
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// shown is what the API tells of a screen.
type shown struct {
	Rows   []string
	Cursor struct {
		Row, Col int
		Visible  bool
	}
	Alt         bool
	Title, Cwd  string
	Cols        int
	Revision    uint64
	Approximate bool
	ANSI        string
	Cells       [][]struct{ Text, Fg string }
}

func (s shown) text() string { return strings.Join(s.Rows, "\n") }

func (d *Daemon) screen(ref, query string) (s shown) {
	d.t.Helper()
	d.get("/v1/sessions/"+ref+"/screen"+query, &s)
	return s
}

// What a program drew is read as a person sees it, by the command and the API, by
// those who may read the session and by nobody else.
func TestScreenOfProgram(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.mustCLI("run", "-d", "--name", "s", "--", "bash", "-c", `printf "\e[?1049h\e[2J\e[5;10Hhello\e[31mred"; sleep 60`)
	d.mustCLI("wait", "s", "--text", "red", "--timeout", "10s")
	var s shown
	if err := json.Unmarshal([]byte(d.mustCLI("screen", "s", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 24 || s.Rows[4] != "         hellored" || !s.Alt || s.Approximate || s.Cols != 80 ||
		s.Cursor.Row != 4 || s.Cursor.Col != 17 || !s.Cursor.Visible {
		t.Errorf("screen --json: %+v", s)
	}
	if out := d.mustCLI("screen", "s"); out != "\n\n\n\n         hellored\n" {
		t.Errorf("screen: %q", out)
	}
	if out := d.mustCLI("screen", "s", "--ansi"); !strings.Contains(out, "hello\x1b[0;31mred") {
		t.Errorf("screen --ansi: %q", out)
	}
	if c := d.screen("s", "?format=cells").Cells[4]; len(c) == 0 || c[len(c)-1].Text != "red" || c[len(c)-1].Fg != "1" {
		t.Errorf("cells: %+v", c)
	}
	if r := d.CLI("screen", "nobody"); r.Code != 125 || !strings.Contains(r.Stderr, "nobody") {
		t.Errorf("screen of nobody: %v", r)
	}
	if again := d.screen("s", ""); again.Revision != s.Revision {
		t.Errorf("revision %d, then %d, of a screen that rests", s.Revision, again.Revision)
	}
	// A resize between, before more output.
	d.mustCLI("resize", "s", "100x30")
	if r := d.screen("s", ""); len(r.Rows) != 30 || r.Cols != 100 || r.Rows[4] != "         hellored" || r.Revision <= s.Revision {
		t.Errorf("after a resize: %+v", r)
	}

	_, reader := d.token(spec{"name": "reader", "role": "viewer"})
	d.call(request{Path: "/v1/sessions/s/screen", TCP: true, Token: reader}).want(t, 200, "")
	d.call(request{Path: "/v1/sessions/s/screen", TCP: true}).want(t, 401, "unauthenticated")
	d.call(request{Method: "POST", Path: "/v1/users", Body: spec{"name": "bob", "role": "operator"}}).want(t, 201, "")
	_, bob := d.token(spec{"name": "bobs", "user": "bob"})
	d.call(request{Path: "/v1/sessions/s/screen", TCP: true, Token: bob}).want(t, 404, "not_found")

	// Many at once.
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			a, err := d.tryCall(request{Path: "/v1/sessions/s/screen?format=" + []string{"text", "ansi", "cells"}[i%3]})
			if err != nil || a.Status != 200 || !strings.Contains(string(a.Body), "hellored") {
				t.Errorf("%v %v", a, err)
			}
		})
	}
	wg.Wait()
}

func TestScreenOfVimAndHtop(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"vim", "htop"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("left out: %v", err)
		}
	}
	d := start(t)
	s := d.create(spec{"argv": []string{"vim", "-u", "NONE", "-N"}, "name": "vim", "cols": 80, "rows": 24})
	d.waitText(s.ID, `\x1b\[\?1049h`)
	d.input("vim", "ione\rtwo \xe6\xbc\xa2\x1b")
	eventually(t, 20*time.Second, "vim shows what was typed", func() bool {
		v := d.screen("vim", "")
		return v.Alt && v.Rows[0] == "one" && v.Rows[1] == "two \u6f22" && v.Rows[2] == "~" && v.Cursor.Row == 1 && v.Cursor.Col == 4
	})
	d.create(spec{"argv": []string{"htop"}, "name": "htop", "cols": 120, "rows": 40})
	eventually(t, 20*time.Second, "htop shows its table", func() bool {
		h := d.screen("htop", "").text()
		return strings.Contains(h, "Load average") && strings.Contains(h, "PID")
	})
	d.input("vim", ":q!\r")
	d.waitState("vim", "exited")
	if v := d.screen("vim", ""); v.Alt || strings.Contains(v.text(), "two") {
		t.Errorf("after vim: %+v", v)
	}
}

// Far more output than is kept, a session that ended, one that a new worker took
// over, and one that a reboot ended.
func TestScreenOfWhatIsKept(t *testing.T) {
	t.Parallel()
	args := []string{"--checkpoint-interval", "100ms", "--output-limit", "1MiB"}
	d := start(t, daemonOptions{Args: args})
	flood := d.create(spec{"argv": []string{"bash", "-c", `seq -f %018.0f 1 1000000; exec sleep 1000`}, "name": "flood"}) // 20 MB
	small := d.create(spec{"argv": []string{"bash", "-c", `printf '\e]7;file://h/tmp\e\\\e]2;mine\e\\small'; exec sleep 1000`}, "name": "small"})
	d.run("bash", "-c", "echo done")
	ended := d.create(spec{"argv": []string{"bash", "-c", "echo over"}, "name": "ended"})
	d.waitState(ended.ID, "exited")
	d.waitText(small.ID, "small")
	eventually(t, time.Minute, "20 MB are printed", func() bool { return d.session(flood.ID).Offset == 20_000_000 })
	check := func(d *Daemon, taken bool) {
		t.Helper()
		if s := d.screen("flood", ""); !s.Approximate || s.Rows[22] != fmt.Sprintf("%018d", 1_000_000) || s.Cursor.Row != 23 || s.Cursor.Col != 0 {
			t.Errorf("flood: %+v", s)
		}
		if s := d.screen("small", ""); s.Approximate != taken || s.Rows[0] != "small" || s.Title != "mine" || s.Cwd != "file://h/tmp" {
			t.Errorf("small: %+v", s)
		}
		if s := d.screen("ended", ""); s.Rows[0] != "over" || s.Cursor.Row != 1 {
			t.Errorf("ended: %+v", s)
		}
	}
	check(d, false)
	d.KillWorker()
	check(d, true)
	eventually(t, 20*time.Second, "the checkpoints are written", func() bool {
		return d.saved(flood) == 20_000_000 && d.saved(small) == d.session(small.ID).Offset && d.saved(ended) == 6
	})
	d.note()
	d.reboot()
	again := start(t, daemonOptions{StateDir: d.StateDir, Args: args})
	if s := again.session("small"); s.State != "lost" {
		t.Fatalf("%+v", s)
	}
	check(again, true)
}

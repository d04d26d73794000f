package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// metric reads one value of /metrics, 0 when it is not there.
func (d *Daemon) metric(name string) float64 {
	d.t.Helper()
	a := d.call(request{Path: "/metrics"})
	for line := range strings.Lines(string(a.Body)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				d.t.Fatalf("metric %q: %v", line, err)
			}
			return v
		}
	}
	d.t.Fatalf("no metric %s", name)
	return 0
}

func (d *Daemon) goroutines() int { return int(d.metric("go_goroutines")) }

// Cycles of create, attach and close leave nothing: no descriptor, no master
// of a terminal, no goroutine, no child, no zombie.
func TestCreateCloseCycles(t *testing.T) {
	d := start(t)
	cycle := func(i int) {
		name := fmt.Sprintf("c%d", i)
		s := d.create(spec{"argv": []string{"bash", "-c", "echo up; sleep 1000 & wait"}, "name": name})
		switch i % 4 {
		case 0: // closed at once
		case 1:
			d.waitText(s.ID, "up")
		case 2: // with a viewer that stays until the end
			v := newViewer(d, s.ID, newClientID(newRand(t)))
			done := make(chan error, 1)
			go func() { done <- v.run() }()
			eventually(t, time.Minute, "the viewer sees output", func() bool { return v.position() > 0 })
			d.closeSession(s.ID, 1000)
			if err := <-done; err != nil {
				t.Fatalf("cycle %d: %v", i, err)
			}
		case 3: // with input on the way
			d.input(s.ID, "x\n")
		}
		if s := d.closeSession(s.ID, 1000); s.State != "exited" {
			t.Fatalf("cycle %d: close left it %s", i, s.State)
		}
		if a := d.call(request{Method: "DELETE", Path: "/v1/sessions/" + s.ID}); a.Status != 204 {
			t.Fatalf("cycle %d: remove: %v", i, a)
		}
	}
	for i := range 8 { // pools, caches and connections of the database fill once
		cycle(i)
	}
	keep := d.run("sleep", "1000") // a neighbour, so that "all zero" is not the only case
	type counts struct{ fds, kept, masters, keptMasters, goroutines, children int }
	worker := d.Worker()
	count := func() counts {
		var c counts
		c.fds, c.masters = descriptors(worker)
		c.kept, c.keptMasters = descriptors(d.Keeper())
		c.goroutines = d.goroutines()
		c.children = len(descendants(d.Keeper()))
		return c
	}
	var base counts
	eventually(t, 10*time.Second, "the counts are calm", func() bool {
		last := base
		base = count()
		return base == last
	})
	if base.masters != 1 || base.keptMasters != 1 || base.children != 2 {
		t.Fatalf("one session runs, and there are %+v", base)
	}
	for i := range full(60, 1000) {
		cycle(i)
	}
	var now counts
	if !holds(10*time.Second, func() bool {
		now = count()
		return now.fds <= base.fds && now.masters == base.masters && now.kept <= base.kept && now.keptMasters == base.keptMasters && now.goroutines <= base.goroutines && now.children == base.children
	}) {
		t.Errorf("before: %+v, after: %+v; children: %v; open: %q", base, now, descendants(d.Keeper()), openFiles(worker))
	}
	if list := d.sessions(); len(list) != 1 || list[0].ID != keep.ID {
		t.Errorf("the list holds %d sessions", len(list))
	}
}

// A child holds its own terminal and nothing else of the daemon, and its
// environment has nothing of the daemon's.
func TestChildIsClean(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-of-the-daemon"
	// Whoever starts the daemon may leave descriptors open; they end there too.
	stray, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stray.Close() }()
	d := start(t, daemonOptions{Files: []*os.File{stray}, Env: []string{"PTYD_TEST_SECRET=" + secret, "AWS_SECRET_ACCESS_KEY=" + secret, "SSH_AUTH_SOCK=/run/" + secret}})
	for range 5 { // whose terminals must not appear in the next child
		d.run("sleep", "1000")
	}
	d.mustDial(dialing{}) // nor a connection

	s := d.create(spec{"argv": []string{"bash", "-c", `ls -l /proc/$$/fd; echo "env:"; tr '\0' '\n' </proc/$$/environ; echo "end"`},
		"env": map[string]string{"ASKED": "for this"}})
	s = d.waitState(s.ID, "exited")
	out := string(d.output(s.ID, 0))
	fds, env, ok := strings.Cut(out, "env:\r\n")
	if !ok {
		t.Fatalf("the child printed %q", out)
	}
	for _, m := range regexp.MustCompile(`(\d+) -> (\S+)`).FindAllStringSubmatch(fds, -1) {
		if n, _ := strconv.Atoi(m[1]); n == 255 || (n <= 2 && strings.HasPrefix(m[2], "/dev/pts/")) {
			continue // 255 is bash's own copy of its terminal or script
		}
		t.Errorf("the child has descriptor %s -> %s", m[1], m[2])
	}
	if strings.Contains(env, secret) {
		t.Errorf("the child's environment holds the daemon's secret:\n%s", env)
	}
	vars := map[string]string{}
	for line := range strings.SplitSeq(env, "\r\n") {
		if k, v, ok := strings.Cut(line, "="); ok {
			vars[k] = v
		}
	}
	for k, want := range map[string]string{"ASKED": "for this", "TERM": "xterm-256color", "COLORTERM": "truecolor", "PTYD_SESSION": s.ID} {
		if vars[k] != want {
			t.Errorf("the child's %s is %q, want %q", k, vars[k], want)
		}
	}
	if !strings.Contains(strings.ToUpper(vars["LANG"]), "UTF-8") {
		t.Errorf("the child's LANG is %q", vars["LANG"])
	}
	for _, need := range []string{"PATH", "HOME", "SHELL", "USER"} {
		if vars[need] == "" {
			t.Errorf("the child has no %s", need)
		}
	}
	for k := range vars {
		if strings.HasPrefix(k, "PTYD_") && k != "PTYD_SESSION" {
			t.Errorf("the child has %s=%s", k, vars[k])
		}
	}
}

// 100 creates at once with one idempotency key make one session.
func TestIdempotentCreate(t *testing.T) {
	t.Parallel()
	d := start(t)
	mark := stateDir(t) + "/runs"
	body := spec{"argv": []string{"bash", "-c", fmt.Sprintf("echo ran >>%s; sleep 1000", mark)}, "name": "once"}
	make1 := func() answer {
		return d.call(request{Method: "POST", Path: "/v1/sessions", Body: body, Header: map[string]string{"Idempotency-Key": "k-1"}})
	}
	ids := make([]string, 100)
	created := make([]bool, len(ids))
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range ids {
		wg.Go(func() {
			<-begin
			a := make1()
			var s session
			switch {
			case a.Status == 201:
				created[i] = true
			case a.Status == 200 && a.Header.Get("Idempotency-Replayed") == "true":
			default:
				t.Errorf("create %d: %v", i, a)
				return
			}
			a.into(t, &s)
			ids[i] = s.ID
		})
	}
	close(begin)
	wg.Wait()
	if t.Failed() {
		return
	}
	n := 0
	for i, id := range ids {
		if id != ids[0] {
			t.Fatalf("create %d gave %s, create 0 gave %s", i, id, ids[0])
		}
		if created[i] {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d calls say 201", n)
	}
	if list := d.sessions(); len(list) != 1 {
		t.Errorf("there are %d sessions", len(list))
	}
	d.note()
	if got := withSession(map[string]bool{ids[0]: true}); len(got) == 0 {
		t.Error("no process names the session in its environment")
	}
	eventually(t, time.Minute, "the command ran", func() bool { return fileHas(mark, "ran\n") })
	if b := readFile(t, mark); !bytes.Equal(b, []byte("ran\n")) {
		t.Errorf("the command ran %d times", bytes.Count(b, []byte("\n")))
	}
	other := d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"sleep", "1"}}, Header: map[string]string{"Idempotency-Key": "k-1"}})
	other.want(t, 422, "idempotency_key_reused")
	// A key is its owner's: somebody else's same key is another.
	d.call(request{Method: "POST", Path: "/v1/users", Body: spec{"name": "bob", "role": "operator"}}).into(t, &struct{}{})
	_, bob := d.token(spec{"name": "b", "user": "bob", "role": "operator"})
	var his session
	d.call(request{Method: "POST", Path: "/v1/sessions", TCP: true, Token: bob, Body: spec{"argv": []string{"sleep", "1000"}}, Header: map[string]string{"Idempotency-Key": "k-1"}}).into(t, &his)
	if his.ID == ids[0] {
		t.Error("another user's key gave the first one's session")
	}
	d.closeSession(ids[0], 500)
	if a := d.call(request{Method: "DELETE", Path: "/v1/sessions/" + url.PathEscape(ids[0])}); a.Status != 204 {
		t.Fatal(a)
	}
	make1().want(t, 410, "gone")
	d.note()
}

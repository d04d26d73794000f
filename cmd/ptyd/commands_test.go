package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRunWaitTailLs(t *testing.T) {
	d := startDaemon(t)
	id := d.session("a", "bash", "-c", "seq 1 200000; exit 7")
	if !strings.HasPrefix(id, "s_") || strings.ContainsAny(id, " \n") {
		t.Errorf("run -d printed %q", id)
	}
	d.ptyd("wait", "a", "--exit", "--timeout", "60s").ok(t)
	if out := d.ptyd("tail", "a", "--raw", "--from", "0").ok(t).out; !strings.HasSuffix(out, "200000\r\n") || len(out) != 1488895 {
		t.Errorf("%d bytes of output", len(out))
	}
	l := d.list()
	if len(l) != 1 || l[0].ID != id || l[0].State != "exited" || l[0].ExitCode == nil || *l[0].ExitCode != 7 || l[0].Signal != nil {
		t.Errorf("ls: %+v", l)
	}
	table := d.ptyd("ls").ok(t).out
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 2 || strings.Join(strings.Fields(lines[0]), " ") != "NAME ID STATE PID AGE SIZE CMD" ||
		!strings.HasPrefix(lines[1], "a     "+id+"  exited 7") || !strings.HasSuffix(lines[1], "80x24  bash -c 'seq 1 200000; exit 7'") {
		t.Errorf("ls:\n%s", table)
	}
	if out := d.ptyd("ls", "-q").ok(t).out; out != id+"\n" {
		t.Errorf("ls -q: %q", out)
	}
}

// TestStateDirGoesAnywhere: before and after the command, and by the environment.
func TestStateDirGoesAnywhere(t *testing.T) {
	d := startDaemon(t)
	for _, args := range [][]string{{"--state-dir", d.state, "ls"}, {"ls", "--state-dir", d.state}, {"ls", "--json", "--state-dir=" + d.state}} {
		run(t, call{args: args}).ok(t)
	}
	run(t, call{args: []string{"ls"}, env: []string{"PTYD_STATE_DIR=" + d.state}}).ok(t)
	run(t, call{args: []string{"run", "--state-dir", d.state, "true", "--state-dir", "x"}}).ok(t)
	// A flag wins over the environment, whatever it names.
	run(t, call{args: []string{"ls", "--state-dir", d.state}, env: []string{"PTYD_URL=http://127.0.0.1:1"}}).ok(t)
	run(t, call{args: []string{"ls", "--state-dir", d.state, "--url", d.addr}}).fails(t, 125, "two daemons")
}

func TestRunReturnsTheExitStatus(t *testing.T) {
	d := startDaemon(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "exit 124": 124, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		if r := d.ptyd("run", "--", "sh", "-c", "printf x; "+script); r.status != want || r.out != "x" || r.err != "" {
			t.Errorf("%s: %+v", script, r)
		}
	}
	id := d.session("later", "sh", "-c", "echo done; exit 9")
	d.ptyd("wait", "later").ok(t)
	if r := d.ptyd("attach", id); r.status != 9 || r.out != "done\r\n" {
		t.Errorf("attach to an ended session: %+v", r)
	}
	r := d.ptyd("run", "--json", "--", "sh", "-c", "echo out; exit 5")
	if r.status != 5 || r.out != "out\r\n" || !strings.Contains(r.err, `"exit":{"code":5,"signal":null,"state":"exited"}`) {
		t.Errorf("run --json: %+v", r)
	}
	d.ptyd("run", "--", "/no/such/program").fails(t, 125, "ptyd: ")
}

func TestRunGivesTheSessionWhatWasAsked(t *testing.T) {
	d := startDaemon(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	show := `printf '%s|%s|%s|%s' "$PWD" "$A" "$B" "$HIDDEN"; stty size`
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, dir + "|||24 80"},
		{[]string{"--cwd", "sub", "--env", "A=1", "-e", "B=x=y z", "--cols", "100", "--rows", "30"}, dir + "/sub|1|x=y z|30 100"},
		{[]string{"--cwd", "/"}, "/|||24 80"},
	} {
		r := d.call(call{args: append(append([]string{"run"}, c.args...), "--", "sh", "-c", show), dir: dir, env: []string{"HIDDEN=secret"}}).ok(t)
		if got := strings.TrimSpace(r.out); got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
	d.ptyd("run", "--cols", "0", "--", "true").fails(t, 125, "must be at least 1 (cols)")
	d.ptyd("run", "--rows", "-1", "--", "true").fails(t, 125, "must be at least 1 (rows)")
	d.ptyd("run", "-d", "--name", "n", "--label", "a=b", "-l", "c=", "--", "sleep", "100").ok(t)
	if i := d.info("n"); i.Labels["a"] != "b" || len(i.Labels) != 2 {
		t.Errorf("labels %v", i.Labels)
	}
	if l := d.list("--label", "a=b"); len(l) != 1 {
		t.Errorf("%d sessions have the label", len(l))
	}
	d.ptyd("run", "-d", "--name", "n", "--", "true").fails(t, 125, "ptyd: ", "(name)")
	d.ptyd("run", "-d", "--env", "novalue", "--", "true").fails(t, 125, "KEY=VALUE", "(env)")

	one := d.ptyd("run", "-d", "--idempotency-key", "k", "--", "sleep", "100").ok(t).out
	two := d.ptyd("run", "-d", "--idempotency-key", "k", "--", "sleep", "100").ok(t).out
	if one != two {
		t.Errorf("two sessions of one key: %q, %q", one, two)
	}
	d.ptyd("run", "-d", "--idempotency-key", "k", "--", "sleep", "200").fails(t, 125)

	s := decode[info](t, d.ptyd("run", "-d", "--json", "--", "sleep", "100").ok(t).out)
	if s.State != "running" || s.PID == 0 {
		t.Errorf("run -d --json: %+v", s)
	}
	if r := d.call(call{args: []string{"run"}, stdin: "echo $((6*7)); exit 4\n"}); r.status != 4 || !strings.Contains(r.out, "42") {
		t.Errorf("the user's shell: %+v", r)
	}
}

func TestStandardInputIsTyped(t *testing.T) {
	d := startDaemon(t)
	for _, c := range []struct{ script, in, want string }{
		{"stty -echo; echo ready >&2; cat", "a\nb\n", "a\r\nb\r\n"},
		{"stty -echo; cat", "no line end", "no line end"},
		{"stty -echo; cat", "", ""},
		{"stty -echo; read x; read y; echo \"$y$x\"", "1\n2\n", "21\r\n"},
	} {
		r := d.call(call{args: []string{"run", "--", "sh", "-c", "stty -echo; " + c.script}, stdin: c.in})
		// What arrives before stty is echoed, as a terminal does.
		if r.status != 0 || !strings.HasSuffix(strings.TrimSuffix(r.out, "\b\b"), c.want) {
			t.Errorf("%q typed into %q: %+v", c.in, c.script, r)
		}
	}
}

// TestSignalsArePassedOn: an interrupt meant for the command reaches it; a
// second one only ends ptyd.
func TestSignalsArePassedOn(t *testing.T) {
	d := startDaemon(t)
	for _, c := range []struct {
		script string
		twice  bool
		want   int
	}{
		{`trap 'echo got; exit 6' INT; echo ready; while :; do read x; done`, false, 6},
		{`trap 'echo got' INT; echo ready; while :; do read x; done`, true, 130},
	} {
		cmd := exec.Command(binary, "--state-dir", d.state, "run", "--name", "sig", "--", "bash", "-c", c.script)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Process.Signal(unix.SIGINT)
		if r := d.ptyd("wait", "sig", "--text", "got", "--timeout", "30s"); r.status != 0 {
			t.Fatalf("%+v", r)
		}
		if c.twice {
			_ = cmd.Process.Signal(unix.SIGINT)
		}
		if got := statusOf(t, cmd.Wait()); got != c.want {
			t.Errorf("%q: exit status %d, want %d", c.script, got, c.want)
		}
		if state := d.info("sig").State; c.twice != (state == "running") {
			t.Errorf("%q: the session is %s", c.script, state)
		}
		d.ptyd("rm", "--force", "sig").ok(t)
	}
}

func TestWait(t *testing.T) {
	d := startDaemon(t)
	d.session("lives", "sh", "-c", "printf 'port: '; echo 8080; exec cat")
	d.session("ended", "sh", "-c", "echo bye; exit 3")
	d.ptyd("wait", "ended").ok(t) // --exit is what it waits for by itself
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"lives", "--text", `port: \d+`}, 0, `"matched":"text"`},
		{[]string{"lives", "--text", `port: \d+`, "--timeout", "0s"}, 0, `"text":"port: 8080"`},
		{[]string{"lives", "--text", "never", "--timeout", "50ms"}, 124, `"timed_out":true`},
		{[]string{"lives", "--exit", "--timeout", "50ms"}, 124, `"matched":null`},
		{[]string{"lives", "--idle", "20ms"}, 0, `"matched":"idle"`},
		{[]string{"lives", "--exit", "--text", "never", "--idle", "20ms"}, 0, `"matched":"idle"`},
		{[]string{"ended", "--exit"}, 0, `"matched":"exit"`},
		{[]string{"ended", "--text", "bye"}, 0, `"matched":"text"`},
		{[]string{"ended", "--text", "never"}, 125, `"impossible":true`},
		{[]string{"ended", "--text", "never", "--exit"}, 0, `"matched":"exit"`},
	} {
		r := d.ptyd(append([]string{"wait", "--json"}, c.args...)...)
		if r.status != c.status || !strings.Contains(r.out, c.want) {
			t.Errorf("%v: %+v", c.args, r)
		}
		if (c.status != 0) != (strings.Contains(r.err, "ptyd: ") && strings.Contains(r.err, `{"error":{"code":`)) {
			t.Errorf("%v: standard error %q", c.args, r.err)
		}
	}
	d.ptyd("wait", "lives", "--text", "(").fails(t, 125, "(text)")
	d.ptyd("wait", "lives", "--text", "").fails(t, 125, "(text)")
	d.ptyd("wait", "nobody").fails(t, 125, `"nobody"`)
	d.ptyd("wait", "lives", "--timeout", "60").fails(t, 125, "unit")
	// What comes while it waits.
	done := make(chan result)
	go func() { done <- d.ptyd("wait", "lives", "--text", "now") }()
	d.ptyd("send", "lives", "n").ok(t)
	d.ptyd("send", "lives", "ow", "--enter").ok(t)
	(<-done).ok(t)
}

func TestTail(t *testing.T) {
	d := startDaemon(t, "--output-limit", "262144")
	d.session("text", "sh", "-c", `printf '\033[1;31mred\033[0m\r\n\033]0;title\007one\ntwo\nthree'`)
	d.ptyd("wait", "text").ok(t)
	raw := "\x1b[1;31mred\x1b[0m\r\r\n\x1b]0;title\aone\r\ntwo\r\nthree"
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "red\none\ntwo\nthree"},
		{[]string{"--raw"}, raw},
		{[]string{"--raw", "--from", "0"}, raw},
		{[]string{"--raw", "--from", "-5"}, "three"},
		{[]string{"--raw", "--from", "-100000"}, raw},
		{[]string{"--raw", "--from", strconv.Itoa(len(raw) - 3)}, "ree"},
		{[]string{"--raw", "--from", strconv.Itoa(len(raw))}, ""},
		{[]string{"-n", "1"}, "three"},
		{[]string{"-n", "2"}, "two\nthree"},
		{[]string{"-n", "99"}, "red\none\ntwo\nthree"},
		{[]string{"-n", "0"}, ""},
		{[]string{"-n", "2", "--raw"}, "two\r\nthree"},
		{[]string{"-f"}, "red\none\ntwo\nthree"},
		{[]string{"-n", "1", "-f"}, "three"},
		{[]string{"--strict", "--from", "0", "--raw"}, raw},
	} {
		if r := d.ptyd(append([]string{"tail", "text"}, c.args...)...).ok(t); r.out != c.want {
			t.Errorf("%v: %q, want %q", c.args, r.out, c.want)
		}
	}
	d.ptyd("tail", "text", "--from", "1000000").fails(t, 125, "(offset)")
	d.ptyd("tail", "text", "--from", "0", "-n", "1").fails(t, 125, "lines")
	d.ptyd("tail", "nobody").fails(t, 125, `"nobody"`)

	item := decode[struct {
		Offset uint64 `json:"offset"`
		Next   uint64 `json:"next_offset"`
		Text   string `json:"text"`
		Base64 string `json:"base64"`
	}](t, d.ptyd("tail", "text", "--json", "--raw").ok(t).out)
	if b, err := base64.StdEncoding.DecodeString(item.Base64); err != nil || string(b) != raw || item.Next != uint64(len(raw)) {
		t.Errorf("--json --raw: %+v, %v", item, err)
	}
	if out := d.ptyd("tail", "text", "--json").ok(t).out; !strings.Contains(out, `"text":"red\none\ntwo\nthree"`) {
		t.Errorf("--json: %q", out)
	}

	// More than is kept.
	d.session("long", "sh", "-c", "seq 1 100000")
	d.ptyd("wait", "long").ok(t)
	r := d.ptyd("tail", "long", "--from", "0")
	if r.status != 0 || !strings.Contains(r.err, "no longer kept") || !strings.HasSuffix(r.out, "\n100000\n") || strings.HasPrefix(r.out, "1\n") {
		t.Errorf("--from 0: status %d, %q, %d bytes", r.status, r.err, len(r.out))
	}
	d.ptyd("tail", "long", "--from", "0", "--strict").fails(t, 125, "no longer kept")
	d.ptyd("tail", "long", "--from", "-10", "--strict").ok(t)
	d.ptyd("tail", "long", "--from", "-10000000", "--strict").ok(t)
	if r := d.ptyd("tail", "long").ok(t); !strings.HasSuffix(r.out, "\n100000\n") {
		t.Errorf("all that is kept: %d bytes", len(r.out))
	}
	var want strings.Builder
	for i := 100000 - 19999; i <= 100000; i++ {
		fmt.Fprintln(&want, i)
	}
	if r := d.ptyd("tail", "long", "-n", "20000").ok(t); r.out != want.String() {
		t.Errorf("-n 20000: %d bytes of %d", len(r.out), want.Len())
	}
}

// TestTailFollows: what is printed while tail runs, to the end of the session.
func TestTailFollows(t *testing.T) {
	d := startDaemon(t)
	d.session("s", "sh", "-c", "stty -echo; echo first; read x; echo \"$x\"; exit 3")
	d.ptyd("wait", "s", "--text", "first").ok(t)
	cmd := exec.Command(binary, "--state-dir", d.state, "tail", "-f", "-n", "1", "s")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := out.Read(buf)
	if err != nil || string(buf[:n]) != "first\n" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	d.ptyd("send", "s", "second", "--enter").ok(t)
	n, err = out.Read(buf)
	if err != nil || string(buf[:n]) != "second\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("tail ended with %v", err)
	}
}

func TestSend(t *testing.T) {
	d := startDaemon(t)
	d.session("s", "sh", "-c", "stty raw -echo; echo ready; exec cat -v")
	d.ptyd("wait", "s", "--text", "ready").ok(t)
	sends := []struct {
		call call
		want string
	}{
		{call{args: []string{"s", "plain é $x \\n"}}, `plain M-CM-) $x \n`},
		{call{args: []string{"s", "line", "--enter"}}, "line^M"},
		{call{args: []string{"s", "--keys", "Enter,C-c,Up"}}, "^M^C^[[A"},
		{call{args: []string{"s", "--keys", ",", "--keys", "x,y"}}, ",xy"},
		{call{args: []string{"s", "text", "--keys", "Tab"}}, "text^I"},
		{call{args: []string{"s", "--enter"}}, "^M"},
		{call{args: []string{"s", "-"}, stdin: "from\xff\nstdin"}, "fromM-^?\nstdin"},
		{call{args: []string{"s", "\xfe\xff"}}, "M-~M-^?"},
		{call{args: []string{"s", "--", "--enter"}}, "--enter"},
	}
	want := ""
	for _, c := range sends {
		c.call.args = append([]string{"send"}, c.call.args...)
		if r := d.call(c.call).ok(t); r.out != "" {
			t.Errorf("%v printed %q", c.call.args, r.out)
		}
		want += c.want
	}
	want = strings.ReplaceAll(want, "^I", "\t")
	d.ptyd("wait", "s", "--text", "--enter$", "--timeout", "30s").ok(t)
	got := d.ptyd("tail", "s", "--raw").ok(t).out
	if _, got, _ = strings.Cut(got, "ready\n"); got != want {
		t.Errorf("the session got %q, want %q", got, want)
	}
	if r := d.ptyd("send", "s", "x", "--json").ok(t); r.out != `{"session":"s","ok":true}`+"\n" {
		t.Errorf("--json: %q", r.out)
	}
	d.ptyd("send", "s").fails(t, 125, "nothing to send")
	d.ptyd("send", "s", "--keys", "NoSuchKey").fails(t, 125, "NoSuchKey")
	d.ptyd("kill", "s").ok(t)
	d.ptyd("send", "s", "x").fails(t, 125, "ptyd: ")
}

func TestResizeRenameKillRm(t *testing.T) {
	d := startDaemon(t)
	d.session("s", "sh", "-c", `trap 'echo "size $(stty size)"' WINCH; echo ready; while :; do sleep 0.05; done`)
	d.ptyd("wait", "s", "--text", "ready").ok(t)
	d.ptyd("resize", "s", "100x40").ok(t)
	d.ptyd("wait", "s", "--text", "size 40 100", "--timeout", "30s").ok(t)
	if i := decode[info](t, d.ptyd("resize", "s", "--cols", "120", "--json").ok(t).out); i.Cols != 120 || i.Rows != 40 {
		t.Errorf("%dx%d", i.Cols, i.Rows)
	}
	d.ptyd("resize", "s", "big").fails(t, 125, "COLSxROWS")
	d.ptyd("resize", "s").fails(t, 125, "no size")
	d.ptyd("resize", "s", "0x0").fails(t, 125, "ptyd: ")
	d.ptyd("resize", "s", "80x24", "--cols", "80").fails(t, 125, "once")

	d.ptyd("rename", "s", "t").ok(t)
	d.ptyd("resize", "s", "80x24").fails(t, 125, `"s"`)
	d.session("other", "sleep", "100")
	d.ptyd("rename", "other", "t").fails(t, 125, "(name)")

	d.ptyd("rm", "t").fails(t, 125, "ptyd: ")
	d.ptyd("kill", "--signal", "NOPE", "t").fails(t, 125, "(signal)")
	d.ptyd("kill", "--signal", "KILL", "t").ok(t)
	d.ptyd("wait", "t", "--exit", "--timeout", "30s").ok(t)
	if i := d.info("t"); i.Signal == nil || *i.Signal != "SIGKILL" || i.ExitCode != nil {
		t.Errorf("%+v", i)
	}
	d.ptyd("rm", "t").ok(t)
	d.ptyd("rm", "t").fails(t, 125, `"t"`)
	d.ptyd("rm", "--force", "other").ok(t)
	if l := d.list(); len(l) != 0 {
		t.Errorf("%d sessions are left", len(l))
	}

	for _, n := range []string{"a", "b", "c"} {
		d.session(n, "sleep", "100")
	}
	if i := decode[info](t, d.ptyd("kill", "a", "--json").ok(t).out); i.State != "exited" {
		t.Errorf("%+v", i)
	}
	d.ptyd("kill").fails(t, 125, "--all")
	d.ptyd("kill", "--all", "b").fails(t, 125, "--all")
	if l := decode[[]info](t, d.ptyd("kill", "--all", "--json").ok(t).out); len(l) != 2 || l[0].State != "exited" {
		t.Errorf("%+v", l)
	}
	if l := decode[[]info](t, d.ptyd("kill", "--all", "--json").ok(t).out); len(l) != 0 {
		t.Errorf("%+v", l)
	}
	r := d.ptyd("rm", "a", "nobody", "b", "--json")
	if r.status != 125 || !strings.Contains(r.err, "nobody") || strings.Count(r.out, `"ok":true`) != 2 {
		t.Errorf("one of three is not there: %+v", r)
	}
}

// rerun starts an ended session once more; a living one and nobody are refused.
func TestRerun(t *testing.T) {
	d := startDaemon(t)
	d.ptyd("run", "--name", "job", "--no-checkpoint", "--env", "SECRET=swordfish", "--", "sh", "-c", "echo $SECRET; exit 3")
	first := d.list()[0].ID
	id := strings.TrimSpace(d.ptyd("rerun", "job", "--idempotency-key", "k").ok(t).out)
	if !strings.HasPrefix(id, "s_") || id == first {
		t.Errorf("rerun printed %q; the first is %s", id, first)
	}
	d.ptyd("wait", id, "--exit").ok(t)
	if out := d.ptyd("tail", id, "--raw", "--from", "0").ok(t).out; out != "swordfish\r\n" {
		t.Errorf("it printed %q", out)
	}
	r := d.ptyd("rerun", "--json", first, "--idempotency-key", "k").ok(t)
	again := decode[map[string]any](t, r.out)
	if again["id"] != id || again["rerun_of"] != first || again["no_checkpoint"] != true || strings.Contains(r.out, "swordfish") {
		t.Errorf("the same key: %s", r.out)
	}
	d.session("lives", "sleep", "100")
	d.ptyd("rerun", "lives").fails(t, 125, "is running")
	d.ptyd("rerun", "nobody").fails(t, 125, "there is no session")
}

package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The commands that the project promises to a person who tries it.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	d := start(t)
	dir := []string{"--state-dir", d.StateDir}
	cli := func(args ...string) result {
		return d.CLIWith(cliOptions{NoDir: true}, append(dir, args...)...)
	}
	r := cli("run", "-d", "--name", "a", "--", "bash", "-c", "seq 1 200000; exit 7")
	id := strings.TrimSpace(r.Stdout)
	if r.Code != 0 || !regexp.MustCompile(`^s_[0-9A-Za-z]+$`).MatchString(id) {
		t.Fatalf("run -d: %v", r)
	}
	if r := cli("wait", "a", "--exit", "--timeout", "60s"); r.Code != 0 {
		t.Fatalf("wait: %v", r)
	}
	r = cli("tail", "a", "--raw", "--from", "0")
	if r.Code != 0 || !strings.HasSuffix(r.Stdout, "\r\n200000\r\n") {
		t.Fatalf("tail ends with %q, status %d, %s", tailOf(r.Stdout, 20), r.Code, r.Stderr)
	}
	// 200000 lines of at most 6 digits, each with a carriage return and a line
	// feed, are kept whole: 1,488,895 bytes.
	if want := 1288895 + 200000; len(r.Stdout) != want {
		t.Errorf("tail gave %d bytes, want %d", len(r.Stdout), want)
	}
	r = cli("ls", "--json")
	if strings.Count(r.Stdout, "\n") != 1 || !strings.HasSuffix(r.Stdout, "\n") {
		t.Errorf("ls --json is not one line: %q", r.Stdout)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil || len(list) != 1 {
		t.Fatalf("ls --json: %v, %v", err, r)
	}
	s := list[0]
	if s["id"] != id || s["name"] != "a" || s["state"] != "exited" || s["exit_code"] != 7.0 || s["signal"] != nil {
		t.Errorf("ls --json: %v", s)
	}
	for _, member := range []string{"id", "name", "state", "pid", "exit_code", "signal", "created_at"} {
		if _, ok := s[member]; !ok {
			t.Errorf("ls --json lacks %q: %v", member, s)
		}
	}
	if at, err := time.Parse(time.RFC3339, s["created_at"].(string)); err != nil || time.Since(at) > 5*time.Minute {
		t.Errorf("created_at %v: %v", s["created_at"], err)
	}
	// The flag after the command, and the variable, name the same directory.
	after := d.CLIWith(cliOptions{NoDir: true}, "ls", "--json", "--state-dir", d.StateDir)
	byEnv := d.CLI("ls", "--json")
	if after.Stdout != r.Stdout || byEnv.Stdout != r.Stdout {
		t.Errorf("ls by flag after: %v\nby variable: %v\nwant %s", after, byEnv, r.Stdout)
	}
}

func TestRunExitStatus(t *testing.T) {
	t.Parallel()
	d := start(t)
	for _, c := range []struct {
		script string
		want   int
	}{
		{"exit 0", 0}, {"exit 7", 7}, {"kill -TERM $$", 128 + 15}, {"kill -KILL $$", 128 + 9}, {"exit 124", 124},
	} {
		if r := d.CLI("run", "--", "bash", "-c", c.script); r.Code != c.want {
			t.Errorf("run %q: %v, want %d", c.script, r, c.want)
		}
	}
	if r := d.CLI("run", "--", "bash", "-c", "echo hello"); r.Code != 0 || !strings.Contains(r.Stdout, "hello") {
		t.Errorf("run echo: %v", r)
	}
	if r := d.CLI("run", "--", "/no/such/program"); r.Code != 125 || !strings.Contains(r.Stderr, "/no/such/program") {
		t.Errorf("a command that is not there: %v, want 125 and its name", r)
	}
	if r := d.CLI("run", "--no-such-flag"); r.Code != 125 {
		t.Errorf("a wrong flag: %v, want 125", r)
	}
	if r := d.CLI("attach", "nobody"); r.Code != 125 {
		t.Errorf("attach to nothing: %v, want 125", r)
	}
	gone := d.CLIWith(cliOptions{Env: []string{"PTYD_STATE_DIR=" + stateDir(t)}, NoDir: true}, "ls")
	if gone.Code != 125 || !strings.Contains(gone.Stderr, "serve") {
		t.Errorf("no daemon: %v, want 125 and the way to start one", gone)
	}
}

func TestWaitStatus(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.mustCLI("run", "-d", "--name", "w", "--", "bash", "-c", "echo one; read x; echo got-$x; read y; exit 3")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"--text", "on[e]", "--timeout", "30s"}, 0},
		{[]string{"--text", "one", "--timeout", "30s"}, 0}, // level: it still holds
		{[]string{"--exit", "--timeout", "200ms"}, 124},
		{[]string{"--text", "never", "--timeout", "200ms"}, 124},
		{[]string{"--idle", "100ms", "--timeout", "30s"}, 0},
		{[]string{"--text", "(", "--timeout", "1s"}, 125},
	} {
		if r := d.CLI(append([]string{"wait", "w"}, c.args...)...); r.Code != c.want {
			t.Errorf("wait %v: %v, want %d", c.args, r, c.want)
		}
	}
	d.mustCLI("send", "w", "abc\n")
	if r := d.CLI("wait", "w", "--text", "got-abc", "--timeout", "30s"); r.Code != 0 {
		t.Errorf("wait for the echo: %v", r)
	}
	d.mustCLI("send", "w", "--keys", "Enter")
	if r := d.CLI("wait", "w", "--exit", "--timeout", "30s"); r.Code != 0 {
		t.Errorf("wait for the end: %v", r)
	}
	if r := d.CLI("wait", "w", "--text", "never", "--timeout", "30s"); r.Code != 125 {
		t.Errorf("wait for what cannot come any more: %v, want 125", r)
	}
	if r := d.CLI("wait", "nobody", "--exit", "--timeout", "1s"); r.Code != 125 {
		t.Errorf("wait for nobody: %v, want 125", r)
	}
}

func TestTailBelowWhatIsKept(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.create(spec{"argv": []string{"bash", "-c", "seq 1 60000"}, "name": "t", "output_limit": 131072})
	s = d.waitState(s.ID, "exited")
	if s.OldestOffset == 0 || s.OldestOffset >= s.Offset {
		t.Fatalf("a session with 128 KiB of output kept: oldest %d, offset %d", s.OldestOffset, s.Offset)
	}
	loose := d.CLI("tail", "t", "--raw", "--from", "0")
	if loose.Code != 0 || !strings.HasSuffix(loose.Stdout, "60000\r\n") || loose.Stderr == "" {
		t.Errorf("tail: status %d, ends with %q, says %q", loose.Code, tailOf(loose.Stdout, 20), loose.Stderr)
	}
	if uint64(len(loose.Stdout)) != s.Offset-s.OldestOffset {
		t.Errorf("tail gave %d bytes, kept are %d", len(loose.Stdout), s.Offset-s.OldestOffset)
	}
	strict := d.CLI("tail", "t", "--raw", "--from", "0", "--strict")
	if strict.Code != 125 || strict.Stderr == "" {
		t.Errorf("tail --strict: status %d, says %q", strict.Code, strict.Stderr)
	}
	end := d.CLI("tail", "t", "--raw", "--strict", "--from", jsonNumber(s.OldestOffset))
	if end.Code != 0 || end.Stdout != loose.Stdout {
		t.Errorf("tail from the oldest: status %d, %d bytes, says %q", end.Code, len(end.Stdout), end.Stderr)
	}
}

func TestManageByCommands(t *testing.T) {
	t.Parallel()
	d := start(t)
	id := strings.TrimSpace(d.mustCLI("run", "-d", "--name", "m", "--cwd", "/usr", "--env", "GREETING=hi there", "--label", "team=red",
		"--cols", "101", "--rows", "33", "--", "bash", "-c", `pwd; echo "$GREETING"; stty size; trap 'echo caught' INT; while read x; do echo "<$x>"; done; exit 5`))
	d.waitText(id, `/usr\r\nhi there\r\n33 101`)
	d.mustCLI("resize", "m", "90x30")
	if s := d.session("m"); s.Cols != 90 || s.Rows != 30 {
		t.Errorf("after resize: %dx%d", s.Cols, s.Rows)
	}
	d.mustCLI("kill", "--signal", "INT", "m")
	d.waitText(id, "caught")
	d.mustCLI("send", "m", "two words\n")
	d.waitText(id, "<two words>")
	if r := d.CLI("rm", "m"); r.Code != 125 || !strings.Contains(r.Stderr, "run") {
		t.Errorf("rm of a running session: %v", r)
	}
	d.mustCLI("kill", "m")
	d.waitState(id, "exited")
	d.mustCLI("rm", "m")
	if a := d.call(request{Path: "/v1/sessions/" + id}); a.Status != 404 {
		t.Errorf("after rm: %v", a)
	}
	for range 3 {
		d.mustCLI("run", "-d", "--", "sleep", "1000")
	}
	d.note()
	d.mustCLI("kill", "--all")
	eventually(t, time.Minute, "kill --all ended all", func() bool {
		for _, s := range d.sessions() {
			if s.State != "exited" {
				return false
			}
		}
		return true
	})
	if v := d.mustCLI("version"); !strings.Contains(v, "e2e") {
		t.Errorf("version prints %q", v)
	}
	if c := d.mustCLI("completion", "bash"); !strings.Contains(c, "ptyd") {
		t.Errorf("completion prints %q", tailOf(c, 200))
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestErrorsAreForPeopleAndPrograms(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	r := run(t, call{args: []string{"--state-dir", none, "ls"}})
	if want := "ptyd: no daemon is running for " + none + "\n  start one: ptyd serve --state-dir " + none + "\n"; r.status != 125 || r.err != want || r.out != "" {
		t.Errorf("no daemon: %+v", r)
	}
	d := startDaemon(t)
	r = d.ptyd("attach", "nobody").fails(t, 125, "ptyd: ", `"nobody"`)
	if strings.Count(r.err, "\n") > 2 {
		t.Errorf("more than an error and a hint: %q", r.err)
	}
	for _, args := range [][]string{{"tail", "no\x1b]0;x\abody"}, {"wait", "s_00000000000000000000000000"}, {"resize", "nobody", "0x0"}, {"ls", "--nope"}, {"rename", "a"}, {"attach", ""}, {"attach", ".."}} {
		r := d.ptyd(append(args, "--json")...)
		lines := strings.Split(strings.TrimSpace(r.err), "\n")
		var doc struct {
			Error struct{ Code, Detail string }
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &doc); err != nil || doc.Error.Code == "" || doc.Error.Detail == "" || r.status != 125 || r.out != "" {
			t.Errorf("%q: %+v, %v", args, r, err)
		}
		if !strings.HasPrefix(r.err, "ptyd: ") || strings.ContainsAny(lines[0], "\x1b\a") {
			t.Errorf("%q: %q", args, r.err)
		}
	}
	run(t, call{args: []string{"nosuchcommand"}}).fails(t, 125, "nosuchcommand")
	run(t, call{args: []string{"--url", "http://127.0.0.1:1", "ls"}, env: []string{"PTYD_TOKEN=ptyd_x"}}).fails(t, 125, "127.0.0.1:1", "refused")
	run(t, call{args: []string{"--url", d.addr, "ls"}}).fails(t, 125, "ptyd: ", "ptyd token create")
}

// TestATokenDecides: over the network and on the socket; a bad one is an
// error, never the rights of whoever runs the command.
func TestATokenDecides(t *testing.T) {
	d := startDaemon(t)
	secret := d.ptyd("token", "create", "--name", "ci", "--for", "1h").ok(t).out
	if !strings.HasPrefix(secret, "ptyd_") || strings.Count(secret, "\n") != 1 {
		t.Errorf("token create printed %q", secret)
	}
	secret = strings.TrimSpace(secret)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PTYD_TOKEN=" + secret}
	run(t, call{args: []string{"--url", d.addr, "ls"}, env: env}).ok(t)
	run(t, call{args: []string{"--url", d.addr, "--token-file", file, "ls"}}).ok(t)
	run(t, call{args: []string{"--url", d.addr, "--token-file", "-", "ls"}, stdin: secret}).ok(t)
	run(t, call{args: []string{"ls"}, env: append(env, "PTYD_URL="+d.addr)}).ok(t)
	r := run(t, call{args: []string{"--url", d.addr, "run", "--", "sh", "-c", "pwd; exit 3"}, env: env, dir: "/tmp"})
	if r.status != 3 || strings.TrimSpace(r.out) == "/tmp" {
		t.Errorf("run over the network: %+v", r)
	}
	run(t, call{args: []string{"--url", d.addr, "--token-file", "-", "send", "x", "-"}, stdin: secret}).fails(t, 125, "standard input")

	viewer := strings.TrimSpace(d.ptyd("token", "create", "--role", "viewer", "--json").ok(t).out)
	var made struct {
		Secret string `json:"secret"`
		Token  struct{ ID, Role string }
	}
	if err := json.Unmarshal([]byte(viewer), &made); err != nil || made.Token.Role != "viewer" {
		t.Fatalf("%q: %v", viewer, err)
	}
	asViewer := []string{"PTYD_TOKEN=" + made.Secret}
	d.call(call{args: []string{"ls"}, env: asViewer}).ok(t)
	d.call(call{args: []string{"run", "-d", "--", "true"}, env: asViewer}).fails(t, 125, "ptyd: ")
	d.session("s", "sh", "-c", "echo READY; exec cat")
	x := inTerminal(t, asViewer, "--state-dir", d.state, "attach", "s")
	x.await("READY")
	x.press("ignored\r\x1c\x1c")
	x.await("detached")
	x.ended(0)
	if strings.Contains(d.ptyd("tail", "s").ok(t).out, "ignored") {
		t.Error("a viewer typed")
	}

	for _, bad := range []string{"", "ptyd_wrong", "two words", "line\nbreak"} {
		r := d.call(call{args: []string{"ls"}, env: []string{"PTYD_TOKEN=" + bad}})
		r.fails(t, 125, "ptyd: ")
		if bad != "" && strings.Contains(r.err, bad) {
			t.Errorf("the token is in %q", r.err)
		}
	}
	d.call(call{args: []string{"ls", "--token-file", "/no/such/file"}}).fails(t, 125, "(token-file)")

	if out := d.ptyd("token", "ls").ok(t).out; !strings.Contains(out, "ci ") || strings.Contains(out, secret) {
		t.Errorf("token ls:\n%s", out)
	}
	d.ptyd("token", "revoke", "ci", made.Token.ID).ok(t)
	run(t, call{args: []string{"--url", d.addr, "ls"}, env: env}).fails(t, 125, "ptyd: ")
	d.call(call{args: []string{"ls"}, env: env}).fails(t, 125, "ptyd: ")
	d.ptyd("token", "revoke", "nobody").fails(t, 125, "nobody")
	d.ptyd("token", "create", "--role", "king").fails(t, 125, "king")
}

func TestUsersAndGroups(t *testing.T) {
	d := startDaemon(t)
	d.ptyd("user", "add", "anna").ok(t)
	d.call(call{args: []string{"user", "add", "ben", "--role", "viewer", "--uid", "12345", "--password-file", "-"}, stdin: "a long enough password\n"}).ok(t)
	d.ptyd("user", "add", "anna").fails(t, 125, "anna")
	d.ptyd("user", "role", "anna", "approver").ok(t)
	d.ptyd("user", "disable", "ben").ok(t)
	out := strings.Join(strings.Fields(d.ptyd("user", "ls").ok(t).out), " ")
	for _, want := range []string{"NAME ID ROLE UID PASSWORD STATE", "approver - no enabled", "viewer 12345 yes disabled"} {
		if !strings.Contains(out, want) {
			t.Errorf("user ls lacks %q:\n%s", want, out)
		}
	}
	d.ptyd("user", "enable", "ben").ok(t)
	d.call(call{args: []string{"user", "passwd", "ben"}, stdin: "another long password\r\nmore"}).ok(t)
	d.ptyd("user", "passwd", "ben", "--remove").ok(t)
	d.call(call{args: []string{"user", "passwd"}, stdin: ""}).fails(t, 125, "no password")
	users := decode[[]map[string]any](t, d.ptyd("user", "ls", "--json").ok(t).out)
	if len(users) != 3 {
		t.Errorf("%d users", len(users))
	}
	if link := d.ptyd("login-link", "--user", "anna").ok(t).out; !strings.HasPrefix(link, d.addr+"/#login=") || strings.Count(link, "\n") != 1 {
		t.Errorf("login-link printed %q", link)
	}

	d.ptyd("group", "add", "ops").ok(t)
	d.ptyd("group", "member", "add", "ops", "anna").ok(t)
	d.ptyd("group", "member", "add", "ops", "ben").ok(t)
	d.ptyd("group", "member", "rm", "ops", "ben").ok(t)
	d.ptyd("group", "member", "add", "nogroup", "ben").fails(t, 125, "nogroup")
	if out := d.ptyd("group", "ls").ok(t).out; !strings.Contains(out, "ops") || !strings.Contains(out, "anna") || strings.Contains(out, "ben") {
		t.Errorf("group ls:\n%s", out)
	}
	d.ptyd("group", "rm", "ops").ok(t)
	if out := d.ptyd("group", "ls", "--json").ok(t).out; out != "[]\n" {
		t.Errorf("group ls --json: %q", out)
	}
}

func TestStatus(t *testing.T) {
	d := startDaemon(t)
	d.session("s", "sleep", "100")
	out := d.ptyd("status").ok(t).out
	for _, want := range []string{d.state, d.addr, "1 running", "admin, by socket", "rights of the daemon's user"} {
		if !strings.Contains(out, want) {
			t.Errorf("status lacks %q:\n%s", want, out)
		}
	}
	if st := decode[map[string]any](t, d.ptyd("status", "--json").ok(t).out); st["limits"] == nil {
		t.Errorf("status --json: %v", st)
	}
}

// TestJSONIsOneWrite: a reader of a pipe may get each write by itself, so that
// a document in two writes is two broken ones.
func TestJSONIsOneWrite(t *testing.T) {
	d := startDaemon(t)
	for range 8 {
		d.session("", "sleep", "100")
	}
	for _, args := range [][]string{{"ls"}, {"status"}, {"user", "ls"}, {"token", "create"}, {"login-link"}, {"version"}, {"run", "-d", "--name", "w", "--", "sh", "-c", "echo x"}, {"wait", "w"}, {"tail", "w"}, {"kill", "--all"}} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		out := os.NewFile(uintptr(fds[1]), "out")
		cmd := d.command(append([]string{"--json"}, args...)...)
		cmd.Stdout = out
		if err := cmd.Run(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		_ = out.Close()
		writes := 0
		buf := make([]byte, 1<<20)
		for {
			n, err := unix.Read(fds[0], buf)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			writes++
			decode[any](t, string(buf[:n]))
		}
		_ = unix.Close(fds[0])
		if writes != 1 {
			t.Errorf("%v: %d writes", args, writes)
		}
	}
}

func TestNamesAreCompleted(t *testing.T) {
	d := startDaemon(t)
	d.session("build", "sleep", "100")
	d.session("book", "true")
	d.ptyd("wait", "book").ok(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"attach", "b"}, "build\tsleep 100\nbook\ttrue\n"},
		{[]string{"attach", "bu"}, "build\tsleep 100\n"},
		{[]string{"attach", "build", ""}, ""},
		{[]string{"send", "b"}, "build\tsleep 100\n"},
		{[]string{"completion", "b"}, "bash\n"},
	} {
		r := d.ptyd(append([]string{"__complete"}, c.args...)...)
		got, _, _ := strings.Cut(r.out, ":")
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
	// Of fixed words the shell itself takes those that fit.
	for word, args := range map[string][]string{
		"KILL": {"kill", "--signal", "KI"}, "viewer": {"user", "role", "root", "v"}, "running": {"ls", "--state", ""},
	} {
		if r := d.ptyd(append([]string{"__complete"}, args...)...); !strings.Contains(r.out, word+"\n") {
			t.Errorf("%v: %q", args, r.out)
		}
	}
	if r := run(t, call{args: []string{"--state-dir", "/none", "__complete", "attach", ""}}); r.status != 0 {
		t.Errorf("without a daemon: %+v", r)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := run(t, call{args: []string{"completion", shell}}).ok(t).out; !strings.Contains(out, "__complete") {
			t.Errorf("completion %s: %.100q", shell, out)
		}
	}
	run(t, call{args: []string{"completion", "csh"}}).fails(t, 125, "csh")
}

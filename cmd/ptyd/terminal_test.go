package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal is a person's terminal in which a command runs.
type terminal struct {
	t           *testing.T
	master, tty *os.File
	before      unix.Termios
	cmd         *exec.Cmd

	mu    sync.Mutex // guards shown
	shown bytes.Buffer
	cond  *sync.Cond
	done  chan struct{}
}

// in runs a command of d in a terminal.
func (d *testDaemon) in(args ...string) *terminal {
	d.t.Helper()
	return inTerminal(d.t, nil, append([]string{"--state-dir", d.state}, args...)...)
}

func inTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	m, tt, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(m, &pty.Winsize{Cols: 90, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, master: m, tty: tt, done: make(chan struct{})}
	x.cond = sync.NewCond(&x.mu)
	x.before = x.settings()
	x.cmd = exec.Command(binary, args...)
	x.cmd.Env = append(os.Environ(), env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tt, tt, tt
	x.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(x.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := m.Read(buf)
			x.mu.Lock()
			x.shown.Write(buf[:n])
			x.cond.Broadcast()
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		_ = x.tty.Close()
		<-x.done
		_ = m.Close()
	})
	return x
}

func (x *terminal) settings() unix.Termios {
	x.t.Helper()
	v, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return *v
}

// await waits until the terminal has shown text.
func (x *terminal) await(text string) {
	x.t.Helper()
	over := time.AfterFunc(patience, x.cond.Broadcast)
	defer over.Stop()
	deadline := time.Now().Add(patience)
	x.mu.Lock()
	defer x.mu.Unlock()
	for !strings.Contains(x.shown.String(), text) {
		if time.Now().After(deadline) {
			x.t.Fatalf("the terminal never showed %q, but %q", text, x.shown.String())
		}
		x.cond.Wait()
	}
}

func (x *terminal) all() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.ReplaceAll(x.shown.String(), endMark, "")
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// ended waits for the end of the command, checks its exit status and that the
// terminal's settings are those of before.
func (x *terminal) ended(status int) {
	x.t.Helper()
	kill := time.AfterFunc(patience, func() { _ = x.cmd.Process.Kill() })
	got := statusOf(x.t, x.cmd.Wait())
	kill.Stop()
	if got != status {
		x.t.Errorf("exit status %d, want %d; shown %q", got, status, x.all())
	}
	if now := x.settings(); now != x.before {
		x.t.Errorf("the terminal's settings are %+v, were %+v", now, x.before)
	}
	// What the command wrote last is shown once this is.
	if _, err := x.tty.WriteString(endMark); err != nil {
		x.t.Fatal(err)
	}
	x.await(endMark)
}

// endMark is written to the terminal after a command has ended.
const endMark = "\x00END\x00"

const (
	// modesOn are what full-screen programs switch on; modesOff undoes them.
	modesOn = `\033[?1049h\033[22;0t\033[>1u\033[?1h\033=\033[?25l\033[2;5r\033[5 q\033[?1002h\033[?1006h\033[?2004h\033[?1004h\033[>4;2m\033(0\033[1;31m\033]2;mine\007`
)

// modesOff is what must be written when modesOn was: one each.
var modesOff = []string{"\x1b[<1u", "\x1b[?1049l", "\x1b[?1l", "\x1b>", "\x1b[?25h", "\x1b[r", "\x1b[0 q", "\x1b[?1002l",
	"\x1b[?1006l", "\x1b[?2004l", "\x1b[?1004l", "\x1b[>4m", "\x1b(B", "\x1b[m", "\x1b[23;0t\x1b[23;0t"}

func (x *terminal) undone() {
	x.t.Helper()
	_, after, _ := strings.Cut(x.all(), "READY")
	for _, m := range modesOff {
		if strings.Count(after, m) != 1 {
			x.t.Errorf("after the session %q was not written once: %q", m, after)
		}
	}
}

const loud = `stty -echo; printf '` + modesOn + `READY'; while read x; do echo "<$x>"; done`

func TestDetachAndAttachAgain(t *testing.T) {
	d := startDaemon(t)
	x := d.in("run", "--name", "s", "--", "sh", "-c", loud)
	x.await("READY")
	x.press("one\r")
	x.await("<one>")
	x.press("two\r\x1c\x1c") // typed just before: it belongs to the session
	x.await("detached from s")
	x.ended(0)
	x.undone()
	if i := d.info("s"); i.State != "running" || i.Cols != 90 || i.Rows != 30 {
		t.Errorf("%+v", i)
	}
	d.ptyd("wait", "s", "--text", "<two>", "--timeout", "30s").ok(t)

	x = d.in("attach", "s")
	x.await("<two>") // what was shown before is shown again
	x.press("three\r")
	x.await("<three>")
	x.press("\x04") // the end of its input ends the session
	x.ended(0)
	x.undone()
}

func TestTheSessionsEndAndSignalsRestoreTheTerminal(t *testing.T) {
	d := startDaemon(t)
	x := d.in("run", "--", "sh", "-c", `printf '`+modesOn+`READY'; exit 7`)
	x.ended(7)
	x.undone()
	for sig, status := range map[unix.Signal]int{unix.SIGTERM: 143, unix.SIGHUP: 129, unix.SIGINT: 130, unix.SIGQUIT: 131} {
		name := "s" + fmt.Sprint(int(sig))
		x := d.in("run", "--name", name, "--", "sh", "-c", loud)
		x.await("READY")
		_ = x.cmd.Process.Signal(sig)
		x.ended(status)
		x.await("goes on")
		x.undone()
		if s := d.info(name).State; s != "running" {
			t.Errorf("after %v the session is %s", sig, s)
		}
	}
}

func TestPlainOutputIsShownAsItIs(t *testing.T) {
	d := startDaemon(t)
	x := d.in("run", "--", "sh", "-c", "printf 'a\\nb\\n'")
	x.ended(0)
	if got := x.all(); got != "a\r\nb\r\n" {
		t.Errorf("shown %q", got)
	}
}

func TestDetachKeysCanBeChosen(t *testing.T) {
	d := startDaemon(t)
	d.session("s", "sh", "-c", "stty raw -echo; echo READY; exec cat -v")
	d.ptyd("wait", "s", "--text", "READY").ok(t)
	for _, c := range []struct {
		env  []string
		args []string
		keys string
	}{
		{nil, []string{"--detach-keys", "C-a,d"}, "\x01d"},
		{[]string{"PTYD_DETACH_KEYS=C-]"}, nil, "\x1d"},
		{[]string{"PTYD_DETACH_KEYS=C-]"}, []string{"--detach-keys", `C-\,C-\`}, "\x1c\x1c"},
	} {
		x := inTerminal(t, c.env, append([]string{"--state-dir", d.state, "attach", "s"}, c.args...)...)
		x.await("READY")
		x.press(c.keys)
		x.ended(0)
	}
	if out := d.ptyd("tail", "s").ok(t).out; out != "READY\n" {
		t.Errorf("the session got %q", out)
	}
	// A single one is for the session, after its pause.
	x := d.in("attach", "s")
	x.await("READY")
	x.press("a\x1c")
	x.await(`a^\`)
	x.press("\x1c\x1c")
	x.ended(0)
	d.ptyd("attach", "s", "--detach-keys", "F1").fails(t, 125, "(detach-keys)")
}

func TestTheSessionFollowsTheWindow(t *testing.T) {
	d := startDaemon(t)
	x := d.in("run", "--name", "s", "--", "sh", "-c", `trap 'echo "size $(stty size)."' WINCH; echo READY; while :; do sleep 0.05; done`)
	x.await("READY")
	if err := pty.Setsize(x.master, &pty.Winsize{Cols: 77, Rows: 22}); err != nil {
		t.Fatal(err)
	}
	x.await("size 22 77.")
	x.press("\x1c\x1c")
	x.ended(0)
}

func TestReadOnlyTypesNothing(t *testing.T) {
	d := startDaemon(t)
	d.session("s", "sh", "-c", "stty -echo; echo READY; while read x; do echo \"<$x>\"; done")
	x := d.in("attach", "--read-only", "s")
	x.await("READY")
	x.press("nothing\r")
	d.ptyd("send", "s", "typed", "--enter").ok(t)
	x.await("<typed>")
	x.press("\x1c\x1c")
	x.ended(0)
	if out := x.all(); strings.Contains(out, "nothing") {
		t.Errorf("shown %q", out)
	}
	if i := d.info("s"); i.Cols != 80 {
		t.Errorf("a watcher set the width to %d", i.Cols)
	}
}

// TestAttachComesBackByItself: the connection is lost while the user works.
func TestAttachComesBackByItself(t *testing.T) {
	d := startDaemon(t)
	f := d.flapping()
	x := inTerminal(t, nil, "--state-dir", f.state, "run", "--name", "s", "--", "sh", "-c", "stty -echo; echo READY; while read x; do echo \"<$x>\"; done")
	x.await("READY")
	f.cut(true)
	x.press("while away\r")
	d.ptyd("send", "s", "by another", "--enter").ok(t)
	d.ptyd("wait", "s", "--text", "<by another>", "--timeout", "30s").ok(t)
	f.cut(false)
	x.await("<while away>")
	x.press("after\r")
	x.await("<after>")
	want := "READY\r\n<by another>\r\n<while away>\r\n<after>\r\n"
	if got := x.all(); got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
	x.press("\x1c\x1c")
	x.ended(0)
}

// TestADaemonThatDoesNotComeBack: attach says so and gives the terminal back.
func TestADaemonThatDoesNotComeBack(t *testing.T) {
	d := startDaemon(t)
	x := d.in("run", "--reconnect", "200ms", "--", "sh", "-c", loud)
	x.await("READY")
	d.stop()
	x.ended(125)
	x.undone()
}

// TestTheDaemonRestarts: the session does not survive it; the new daemon knows
// its output and its end, and the command returns that.
func TestTheDaemonRestarts(t *testing.T) {
	d := startDaemon(t)
	x := d.in("run", "--name", "s", "--", "sh", "-c", loud)
	x.await("READY")
	d.stop()
	d.start()
	i := d.info("s")
	want := 125
	if i.Signal != nil {
		want = map[string]int{"SIGHUP": 129, "SIGTERM": 143, "SIGKILL": 137}[*i.Signal]
	} else if i.ExitCode != nil {
		want = *i.ExitCode
	}
	x.ended(want)
	x.undone()
}

func TestPasswordsAreAskedForUnseen(t *testing.T) {
	d := startDaemon(t)
	x := d.in("user", "passwd")
	x.await("Password: ")
	x.press("correct horse battery\r")
	x.await("Again: ")
	x.press("correct horse battery\r")
	x.ended(0)
	if strings.Contains(x.all(), "horse") {
		t.Errorf("shown %q", x.all())
	}
	if out := d.ptyd("user", "ls").ok(t).out; !strings.Contains(out, "yes") {
		t.Errorf("no password was set:\n%s", out)
	}
	x = d.in("user", "passwd")
	x.await("Password: ")
	x.press("one two three four\r")
	x.await("Again: ")
	x.press("five six seven\r")
	x.ended(125)
	x = d.in("user", "passwd")
	x.await("Password: ")
	x.press("\x03")
	x.ended(130)
}

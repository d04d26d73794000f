package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The units hold no misspelt key, which systemd only warns about, and every
// line of them has a reason above it. The system unit restricts as much as it is
// said to.
func TestSystemdUnits(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../systemd/*/*.*")
	if err != nil || len(files) != 5 {
		t.Fatalf("units and drop-ins: %v, %v", files, err)
	}
	for _, file := range files {
		text := string(readFile(t, file))
		explained := false
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			switch key, _, isSetting := strings.Cut(line, "="); {
			case strings.HasPrefix(line, "#"):
				explained = true
			case line == "" || strings.HasPrefix(line, "["):
				explained = false
			case isSetting && !explained && !selfEvident[key]:
				t.Errorf("%s: %q has no reason above it", file, line)
			}
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("left out: systemd-analyze is not on this machine; the units were read, not verified")
	}
	for _, scope := range []string{"system", "user"} {
		dir := t.TempDir()
		units, _ := filepath.Glob("../systemd/" + scope + "/*.service")
		for _, unit := range units {
			// The manual page and the binary need not be installed here.
			text := strings.ReplaceAll(string(readFile(t, unit)), "/usr/local/bin/ptyd", shippedBinary)
			text = strings.ReplaceAll(text, "Documentation=man:ptyd(1)\n", "")
			writeFile(t, filepath.Join(dir, filepath.Base(unit)), text)
		}
		cmd := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, "ptyd.service"))
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), dir) || strings.Contains(string(out), "ptyd") {
			t.Errorf("%s: %v\n%s", scope, err, out)
		}
		if scope == "user" {
			continue
		}
		out, err = exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold=25", filepath.Join(dir, "ptyd.service")).CombinedOutput()
		if err != nil {
			t.Errorf("the system unit is more exposed than 2.5: %v\n%s", err, tailOf(string(out), 500))
		}
	}
}

// selfEvident are the keys whose meaning is their name.
var selfEvident = map[string]bool{"Description": true, "Documentation": true, "WantedBy": true, "ExecStart": true}

// The service manager is told when the daemon answers, reloads and stops, and
// programs in sessions cannot speak for it.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	sock := stateDir(t) + "/notify"
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var heard lockedText
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			heard.add(append(buf[:n:n], '\n'))
		}
	}()
	says := func(what string) {
		t.Helper()
		if !holds(30*time.Second, func() bool { return strings.Contains(heard.String(), what) }) {
			t.Fatalf("the manager never heard %q, only %q", what, heard.String())
		}
	}
	d := start(t, daemonOptions{Env: []string{"NOTIFY_SOCKET=" + sock}})
	says("READY=1")
	s := d.run("bash", "-c", `echo "[$NOTIFY_SOCKET]"`)
	d.waitState(s.ID, "exited")
	if out := string(d.output(s.ID, 0)); out != "[]\r\n" {
		t.Errorf("a session knows the manager's socket: %q", out)
	}
	d.Signal(syscall.SIGHUP)
	says("RELOADING=1")
	if !d.ready() {
		t.Error("after a reload the daemon does not answer")
	}
	d.Stop()
	says("STOPPING=1")
}

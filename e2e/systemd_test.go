package e2e

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The units hold no misspelt key, which systemd only warns about, and every
// line of them has a reason above it.
func TestSystemdUnits(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("../systemd/*/ptyd.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("units: %v, %v", units, err)
	}
	for _, unit := range units {
		text := string(readFile(t, unit))
		explained := false
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			switch key, _, isSetting := strings.Cut(line, "="); {
			case strings.HasPrefix(line, "#"):
				explained = true
			case line == "" || strings.HasPrefix(line, "["):
				explained = false
			case isSetting && !explained && !selfEvident[key]:
				t.Errorf("%s: %q has no reason above it", unit, line)
			}
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("left out: systemd-analyze is not on this machine; the units were read, not verified")
	}
	for _, unit := range units {
		copied := filepath.Join(t.TempDir(), "ptyd.service")
		// The manual page and the binary need not be installed here.
		text := strings.ReplaceAll(string(readFile(t, unit)), "/usr/local/bin/ptyd", shippedBinary)
		text = strings.ReplaceAll(text, "Documentation=man:ptyd(1)\n", "")
		writeFile(t, copied, text)
		out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput()
		if err != nil || strings.Contains(string(out), copied) || strings.Contains(string(out), "ptyd.service:") {
			t.Errorf("%s: %v\n%s", unit, err, out)
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

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

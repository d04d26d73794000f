package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/doctor"
)

// The doctor works beside a daemon and without one, and its exit status tells
// whether something fails.
func TestDoctor(t *testing.T) {
	d := startDaemon(t)
	r := decode[doctor.Report](t, d.ptyd("doctor", "--json").ok(t).out)
	if !r.OK || len(r.Findings) < 15 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"daemon", "version", "survival", "database"} {
		found := false
		for _, f := range r.Findings {
			found = found || f.Check == want && f.Level == doctor.OK
		}
		if !found {
			t.Errorf("%s is not well: %+v", want, r.Findings)
		}
	}
	text := d.ptyd("doctor").ok(t).out
	if !strings.Contains(text, "\nok    version") || !strings.Contains(text, " 0 fail\n") {
		t.Errorf("%s", text)
	}
	d.ptyd("doctor", "--url", "http://127.0.0.1:1").fails(t, 125, "(url)")

	dir := filepath.Join(t.TempDir(), "none")
	if out := run(t, call{args: []string{"doctor", "--state-dir", dir}}).ok(t).out; !strings.Contains(out, "none runs") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the doctor made a state directory")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bad := run(t, call{args: []string{"doctor", "--json", "--state-dir", dir}})
	if got := decode[doctor.Report](t, bad.out); bad.status != 1 || got.OK {
		t.Errorf("a directory that is open to all: status %d, %+v", bad.status, got)
	}
}

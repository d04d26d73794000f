package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The bench measures what only the real daemon can do: it makes sessions, and
// serves them again after its worker was killed. Times are not judged here.
func TestBenchOfTheDaemon(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	bin, out := filepath.Join(dir, "ptyd-bench"), filepath.Join(dir, "bench.json")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/ptyd-bench")
	build.Dir = ".."
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, b)
	}
	b, err := exec.CommandContext(ctx, bin, "-ptyd", shippedBinary, "-short", "-reps", "1", "-tests", "create,kill", "-o", out).CombinedOutput()
	if err != nil {
		t.Fatalf("bench: %v\n%s", err, b)
	}
	for _, want := range []string{"Creation of a session", "| — 150 sessions", "≤ 2.8 ×", "A short run"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the table lacks %q:\n%s", want, b)
		}
	}
	var rep struct {
		Rows []struct {
			Title string
			Ptyd  float64
			Pass  *bool
			Error string
		}
	}
	if err := json.Unmarshal(readFile(t, out), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Rows) != 4 {
		t.Errorf("rows: %+v", rep.Rows)
	}
	for _, r := range rep.Rows {
		if r.Error == "" && r.Ptyd <= 0 {
			t.Errorf("row %+v", r)
		}
	}
}

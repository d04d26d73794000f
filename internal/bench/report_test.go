package bench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ptyd/ptyd/internal/bench/procfs"
	"github.com/ptyd/ptyd/internal/bench/stats"
)

func TestBars(t *testing.T) {
	pairs := []stats.Pair{{Ptyd: 90, Baseline: 100}, {Ptyd: 190, Baseline: 200}, {Ptyd: 50, Baseline: 50}}
	for _, c := range []struct {
		b    bar
		text string
		pass bool
	}{
		{ratioAtLeast(0.95), "≥ 0.95 ×", true}, {ratioAtLeast(0.96), "≥ 0.96 ×", false},
		{ratioAtMost(0.95), "≤ 0.95 ×", true}, {ratioAtMost(0.9), "≤ 0.9 ×", false},
		{atLeast(90), "≥ 90", true}, {atLeast(91), "≥ 91", false},
		{atMost(90), "≤ 90", true}, {atMost(89), "≤ 89", false},
	} {
		row := newRow("t", "T", pairs, c.b)
		if row.Pass == nil || *row.Pass != c.pass || row.Bar != c.text {
			t.Errorf("%v: %+v", c.b, row)
		}
	}
	if row := newRow("t", "T", pairs, noBar()); row.Pass != nil || row.Bar != "" || *row.Ratio != 0.95 || row.Ptyd != 90 || row.Baseline != 100 {
		t.Errorf("without a bar: %+v", row)
	}
	if row := newRow("t", "T", []stats.Pair{{Ptyd: 3}}, ratioAtMost(2)); row.Ratio != nil || *row.Pass {
		t.Errorf("without a baseline a ratio cannot pass: %+v", row)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.0123: "0.012", 0.5: "0.5", 1: "1", 1.234: "1.23", 12.34: "12.3", 20: "20",
		99.99: "100", 100: "100", 1234.5: "1234", -2.5: "-2.5", math.NaN(): "?", math.Inf(1): "?",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
}

func sample() *Report {
	return &Report{
		Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "1.2.3",
		Machine: procfs.Machine{CPU: "Some CPU", Cores: 2, Kernel: "6.1", Load: "0 0 0"},
		Rows: []Row{
			newRow("one", "One viewer, MB/s", []stats.Pair{{Ptyd: 60, Baseline: 50}, {Ptyd: 66, Baseline: 60}}, ratioAtLeast(0.95)),
			newRow("idle", "Sitzungen ≥ 1", []stats.Pair{{Ptyd: 70}}, atMost(60)),
			{Test: "echo", Title: "echo: not measured", Error: "no such binary"},
			{Test: "kill", Title: "A kill", Ptyd: 12, Alone: true},
			{Test: "kill", Title: "Another", Error: "not measured: no room", LeftOut: true},
		},
	}
}

func TestTable(t *testing.T) {
	table := sample().Table()
	for _, want := range []string{"| One viewer, MB/s ", "1.15 (1.1–1.2)", "≥ 0.95 ×", "pass |", "FAIL |", "not measured |", "| not measured: no room |", "|   12 |          |", "2026-01-02 03:04 UTC", "Some CPU, 2 cores, Linux 6.1", "ptyd 1.2.3"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	if strings.Contains(table, "other programs") {
		t.Error("it was a calm machine")
	}
	busy := sample()
	busy.Others = 1.5
	if !strings.Contains(busy.Table(), "other programs kept 1.5 of 2 cores busy") {
		t.Errorf("a busy machine goes unsaid:\n%s", busy.Table())
	}
	width := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		n := utf8.RuneCountInString(line)
		if width != 0 && n != width {
			t.Errorf("columns do not line up:\n%s", table)
		}
		width = n
	}
	if strings.Contains(table, "short run") {
		t.Error("it was not a short run")
	}
}

func TestReportFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "bench.json")
	if err := sample().Write(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"date": "2026-01-02T03:04:05Z"`, `"kernel": "6.1"`, `"version": "1.2.3"`, `"pass": null`, `"ratio": null`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the file lacks %s:\n%s", want, b)
		}
	}
	rep, err := ReadReport(path)
	if err != nil || rep.Table() != sample().Table() {
		t.Errorf("read back: %v\n%s", err, rep.Table())
	}
}

func TestUpdateReadme(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	const head, tail = "# Title\n\ntext\n\n", "\n\n## Next\n"
	if err := os.WriteFile(path, []byte(head+MarkBegin+"\nold numbers\n"+MarkEnd+tail), 0o640); err != nil {
		t.Fatal(err)
	}
	var once []byte
	for range 2 { // the second time changes nothing
		if err := UpdateReadme(path, sample()); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if once != nil && string(once) != string(b) {
			t.Errorf("it grew:\n%s", b)
		}
		once = b
	}
	s := string(once)
	if !strings.HasPrefix(s, head+MarkBegin) || !strings.HasSuffix(s, MarkEnd+tail) || strings.Contains(s, "old numbers") || !strings.Contains(s, sample().Table()) {
		t.Errorf("got:\n%s", s)
	}
}

func TestUpdateReadmeNeedsItsMarks(t *testing.T) {
	for _, doc := range []string{"", MarkBegin, MarkEnd + MarkBegin, MarkBegin + MarkEnd + MarkBegin + MarkEnd} {
		path := filepath.Join(t.TempDir(), "README.md")
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := UpdateReadme(path, sample()); err == nil {
			t.Errorf("%q: no error", doc)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != doc {
			t.Errorf("%q was changed to %q", doc, b)
		}
	}
}

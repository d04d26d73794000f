package bench

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tiny measures the baseline against itself: all the machinery, little of everything.
func tiny(t *testing.T) *runner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return &runner{
		Options: Options{Self: self, SelfCheck: true, Log: t.Output()},
		size: sizes{
			reps: 2, patience: time.Millisecond, turns: 2, oneBytes: 300_000, tenBytes: 100_000, rounds: 5,
			warm: 100 * time.Millisecond, hold: 200 * time.Millisecond, stalledReps: 1,
			idle: 20, settle: 50 * time.Millisecond, idleCPU: 50 * time.Millisecond, starts: 2,
			creates: 2, crashes: []crash{{1, 1, noBar()}, {3, 1, atMost(1000)}},
		},
		scratch: t.TempDir(),
	}
}

func rowsOf(t *testing.T, measure func(context.Context, *runner) error) map[string]Row {
	t.Helper()
	r := tiny(t)
	if err := measure(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	rows := map[string]Row{}
	for _, row := range r.rows {
		rows[row.Title] = row
	}
	return rows
}

func positive(t *testing.T, rows map[string]Row, title string, pairs int) {
	t.Helper()
	row, ok := rows[title]
	if !ok || row.Ptyd <= 0 || row.Baseline <= 0 || len(row.Pairs) != pairs {
		t.Errorf("row %q: %+v, want %d pairs of positive numbers", title, row, pairs)
	}
}

func TestMeasureFloods(t *testing.T) {
	positive(t, rowsOf(t, measureOne), "One viewer, MB/s", 4)
	positive(t, rowsOf(t, measureTen), "Ten viewers of one session, MB/s delivered in all", 4)
}

func TestMeasureEchoes(t *testing.T) {
	rows := rowsOf(t, measureEcho)
	positive(t, rows, "Echo, idle, p50 ms", 2)
	positive(t, rows, "Echo, idle, p99 ms", 2)
	rows = rowsOf(t, measureEchoUnderFloods)
	positive(t, rows, "Echo while 8 sessions flood, p99 ms", 2)
	positive(t, rows, "— the floods meanwhile, MB/s in all", 2)
}

func TestMeasureStalled(t *testing.T) {
	rows := rowsOf(t, measureStalled)
	positive(t, rows, "— another viewer before, MB/s", 1)
	// How much the other viewer gets depends on the sockets' buffers: only a
	// long stall shows that the baseline has nothing else.
	keeps, ok := rows["— what another viewer keeps of its rate"]
	if !ok || keeps.Pass == nil || keeps.Baseline < 0 {
		t.Errorf("rows: %+v", rows)
	}
}

func TestMeasureIdle(t *testing.T) {
	rows := rowsOf(t, measureIdle)
	positive(t, rows, "20 idle sessions: daemon KB each", 1)
	positive(t, rows, "— threads", 1)
}

func TestMeasureStart(t *testing.T) {
	rows := rowsOf(t, measureStart)
	positive(t, rows, "Start to first HTTP answer, ms", 2)
}

func TestMeasureCreate(t *testing.T) {
	rows := rowsOf(t, measureCreate)
	positive(t, rows, "Creation of a session, ms, beside a bare terminal, fork and exec", 2)
}

func TestMeasureKeeper(t *testing.T) {
	rows := rowsOf(t, measureKeeper)
	positive(t, rows, "One viewer, MB/s, beside the daemon with --no-keeper", 4)
}

// The baseline survives nothing, and the report says so.
func TestMeasureKillOfTheBaseline(t *testing.T) {
	row, ok := rowsOf(t, measureKill)["Worker killed"]
	if !ok || !row.LeftOut || row.Error == "" {
		t.Errorf("%+v", row)
	}
}

// A daemon that cannot start is an error that shows what it wrote, and a row
// in the report; the other tests still run.
func TestRunReportsWhatFailed(t *testing.T) {
	daemon := filepath.Join(t.TempDir(), "ptyd")
	if err := os.WriteFile(daemon, []byte("#!/bin/sh\necho no good reason >&2\nexit 4\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Options{Ptyd: daemon, Self: self, Tests: []string{"one", "start"}, Short: true})
	if err == nil || !strings.Contains(err.Error(), "no good reason") || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("error: %v", err)
	}
	if len(rep.Rows) != 2 || rep.Rows[0].Error == "" || rep.Rows[1].Test != "start" {
		t.Errorf("rows: %+v", rep.Rows)
	}
	if table := rep.Table(); !strings.Contains(table, "not measured") {
		t.Errorf("table:\n%s", table)
	}
}

func TestContactOfAnUnknownKind(t *testing.T) {
	if _, err := (contact{Kind: "other"}).view(t.Context(), "0"); err == nil {
		t.Error("no error")
	}
}

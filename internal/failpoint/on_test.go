//go:build ptydtest

package failpoint

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, bad := range []string{"x", "x=explode", "x=0*kill", "x=y*kill", "x=pause"} {
		if _, err := parse(bad, ""); err == nil {
			t.Errorf("parse(%q) succeeded", bad)
		}
	}
	if _, err := parse("", "soon"); err == nil {
		t.Error("a bad offset was accepted")
	}
	if _, err := parseTimes("a=1s;b"); err == nil {
		t.Error("a time without a duration was accepted")
	}
	if times, err := parseTimes("a=1s;b=20ms;"); err != nil || len(times) != 2 || times["b"] != 20*time.Millisecond {
		t.Errorf("times %v, %v", times, err)
	}
	s, err := parse("a=kill;b=2*error:no luck;c=enospc;", "6m")
	if err != nil {
		t.Fatal(err)
	}
	if s.offset != 6*time.Minute || len(s.points) != 3 {
		t.Fatalf("offset %v, points %v", s.offset, s.points)
	}
}

func TestCounting(t *testing.T) {
	s, err := parse("b=2*error:no luck;c=enospc", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for range 3 {
		_, ok := s.reach("b")
		got = append(got, ok)
	}
	if got[0] || !got[1] || got[2] {
		t.Errorf("2*error acted at %v", got)
	}
	if _, ok := s.reach("unarmed"); ok {
		t.Error("a point that nobody armed acted")
	}
	p, ok := s.reach("c")
	if err := p.act("c"); !ok || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("enospc gave %v, %v", ok, err)
	}
}

// A guarded kill that somebody has done already is none; without the file it
// would end this process.
func TestOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "done")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parse("a=2*kill@"+file, "")
	if err != nil {
		t.Fatal(err)
	}
	s.reach("a")
	p, ok := s.reach("a")
	if !ok || p.once != file || p.act("a") != nil {
		t.Errorf("%+v, %v", p, ok)
	}
}

// The pause must hold until the file is removed, and no longer.
func TestPause(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pause")
	done := make(chan struct{})
	go func() { pause(file); close(done) }()
	for {
		if _, err := os.Stat(file); err == nil {
			break
		}
		select {
		case <-done:
			t.Fatal("pause returned before its file was there")
		default:
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	<-done
}

package keeper

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestStateRoundTrip(t *testing.T) {
	for _, want := range []*state{
		{binary: "/a b/ptyd", worker: 7, gen: 3, restarts: 2, notify: 4, notifyPath: "/a b/notify", exits: 5, event: 6, lock: -1},
		{binary: "/a b/ptyd", worker: 7, gen: 1, notify: 4, notifyPath: "@n", exits: 5, event: 6, lock: 9, stay: true, tty: true, started: 1234567, origin: "/c d/ptyd", upgrades: 8, fds: []held{{"0", 10}, {"0", 11}, {"lt0", 12}}},
	} {
		var b bytes.Buffer
		if err := want.write(&b); err != nil {
			t.Fatal(err)
		}
		got, err := parseState(&b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// A state of another release has lines that this one does not know; what is
// not whole, or not this process's, is refused.
func TestStateOfOthers(t *testing.T) {
	var b bytes.Buffer
	if err := (&state{binary: "/a b/ptyd", worker: 7, notify: 4, exits: 5, event: 6, lock: 8}).write(&b); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	if _, err := parseState(strings.NewReader(strings.Replace(good, "worker", "mood fine\nworker", 1))); err != nil {
		t.Error(err)
	}
	// One of a release before has fewer.
	before := good
	for _, gone := range []string{"started 0\n", "origin \n", "upgrades 0\n"} {
		if !strings.Contains(before, gone) {
			t.Errorf("no line %q", gone)
		}
		before = strings.Replace(before, gone, "", 1)
	}
	if s, err := parseState(strings.NewReader(before)); err != nil || s.origin != "" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{
		"", "x", strings.TrimSuffix(good, "end\n"),
		strings.Replace(good, "ptyd-keeper 1", "ptyd-keeper 2", 1),
		strings.Replace(good, fmt.Sprintf("pid %d", os.Getpid()), "pid 1", 1),
		strings.Replace(good, "worker 7", "worker x", 1),
		strings.Replace(good, "worker 7", "worker 0", 1),
		strings.Replace(good, "exits 5\n", "", 1),
		strings.Replace(good, "stay false", "stay perhaps", 1),
	} {
		if s, err := parseState(strings.NewReader(bad)); err == nil {
			t.Errorf("%q gave %+v", bad, s)
		}
	}
}

func FuzzState(f *testing.F) {
	var b bytes.Buffer
	if err := (&state{binary: "/a b/ptyd", worker: 7, notify: 4, exits: 5, event: 6, lock: 8, fds: []held{{"0", 9}}}).write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseState(strings.NewReader(s))
		if (got == nil) == (err == nil) {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

package auth

import (
	"fmt"
	"testing"
	"time"
)

type clock struct{ now time.Time }

func (c *clock) add(d time.Duration) { c.now = c.now.Add(d) }

func newTestLimiter() (*limiter, *clock) {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	return newLimiter(func() time.Time { return c.now }), c
}

// attempt reports whether key was let in, and notes the outcome.
func attempt(l *limiter, key string, failed bool) bool {
	done, ok := l.begin(key)
	if ok {
		done(failed)
	}
	return ok
}

func TestLimiterCountsFailuresOnly(t *testing.T) {
	l, c := newTestLimiter()
	for range 10 * failBurst {
		if !attempt(l, "a", false) {
			t.Fatal("a success was counted")
		}
	}
	for i := range failBurst {
		if !attempt(l, "a", true) {
			t.Fatalf("refused at failure %d", i)
		}
	}
	if attempt(l, "a", false) {
		t.Fatal("let in after too many failures")
	}
	if !attempt(l, "b", true) {
		t.Fatal("another key pays for it")
	}
	c.add(failEvery - time.Millisecond)
	if attempt(l, "a", false) {
		t.Fatal("let in too early")
	}
	c.add(time.Millisecond)
	if !attempt(l, "a", true) || attempt(l, "a", true) {
		t.Fatal("not one attempt after the wait")
	}
}

// A burst of parallel guesses gets no further than a row of them.
func TestLimiterCountsAttemptsUnderWay(t *testing.T) {
	l, _ := newTestLimiter()
	var dones []func(bool)
	for range 3 * failBurst {
		if done, ok := l.begin("a"); ok {
			dones = append(dones, done)
		}
	}
	if len(dones) != failBurst {
		t.Fatalf("%d attempts at once", len(dones))
	}
	for _, done := range dones[1:] {
		done(true)
	}
	dones[0](false)
	if !attempt(l, "a", true) || attempt(l, "a", true) {
		t.Fatal("the one that succeeded did not give its place back")
	}
}

// A flood of keys costs bounded memory and frees nobody who is limited.
func TestLimiterIsBounded(t *testing.T) {
	l, c := newTestLimiter()
	for range failBurst {
		attempt(l, "guilty", true)
	}
	refused := 0
	for i := range 2 * maxLimited {
		if !attempt(l, fmt.Sprint(i), true) {
			refused++
		}
	}
	if len(l.keys) > maxLimited {
		t.Errorf("%d keys", len(l.keys))
	}
	if refused == 0 {
		t.Error("keys without room are not limited")
	}
	if attempt(l, "guilty", false) {
		t.Error("the flood freed a limited key")
	}
	c.add(failBurst * failEvery)
	if !attempt(l, "new", false) || len(l.keys) > 2 {
		t.Errorf("%d keys after they recovered", len(l.keys))
	}
}

func TestRemoteKey(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.7:1234":        "192.0.2.7",
		"192.0.2.7":             "192.0.2.7",
		"[::ffff:192.0.2.7]:1":  "192.0.2.7",
		"[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"2001:db8:1:2::9":       "2001:db8:1:2::/64",
		"fe80::1%eth0":          "fe80::/64",
		"":                      "",
		"@":                     "@",
	} {
		if got := remoteKey(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := remoteKey(string(make([]byte, 1000))); len(got) > 64 {
		t.Errorf("%d bytes", len(got))
	}
}

package tty

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func mustKeys(t *testing.T, s string) []Key {
	t.Helper()
	k, err := ParseDetachKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestDetachKeysAreFound(t *testing.T) {
	const def = DefaultDetachKeys
	for _, c := range []struct {
		name, keys string
		in         []string // pieces that arrive at once
		pass       string
		detached   bool
	}{
		{"twice", def, []string{"\x1c\x1c"}, "", true},
		{"twice, apart", def, []string{"\x1c", "\x1c"}, "", true},
		{"what comes before", def, []string{"ls\r\x1c\x1cmore"}, "ls\r", true},
		{"another key between", def, []string{"\x1ca\x1c\x1c"}, "\x1ca", true},
		{"another key between, apart", def, []string{"\x1c", "a", "b"}, "\x1cab", false},
		{"kitty keyboard", def, []string{"\x1b[92;5u\x1b[92;5u"}, "", true},
		{"kitty keyboard with events", def, []string{"\x1b[92;5:1u", "\x1b[92;5:3u", "\x1b[57442;5:3u", "\x1b[57442;5u", "\x1b[92;5:1u"}, "", true},
		{"kitty keyboard with locks", def, []string{"\x1b[92;69u\x1b[92;133u"}, "", true},
		{"kitty keyboard, all told", def, []string{"\x1b[1094::92;5;28u\x1b[92:124;5u"}, "", true},
		{"kitty keyboard, then another", def, []string{"\x1b[92;5u\x1b[92;5:3u\x1b[97u"}, "\x1b[92;5u\x1b[92;5:3u\x1b[97u", false},
		{"a release alone", def, []string{"\x1b[92;5:3u"}, "\x1b[92;5:3u", false},
		{"other modifiers", def, []string{"\x1b[92;6u\x1b[92;6u"}, "\x1b[92;6u\x1b[92;6u", false},
		{"modifyOtherKeys", def, []string{"\x1b[27;5;92~\x1b[27;5;92~"}, "", true},
		{"both forms", def, []string{"\x1c\x1b[92;5u"}, "", true},
		{"a key cut in two", def, []string{"\x1b[92;", "5u\x1b[9", "2;5u"}, "", true},
		{"arrows and functions", def, []string{"\x1b[A\x1bOP\x1b[1;5C\x1b[15~\x1b[<0;10;10M"}, "\x1b[A\x1bOP\x1b[1;5C\x1b[15~\x1b[<0;10;10M", false},
		{"escape alone", def, []string{"\x1b"}, "\x1b", false},
		{"Alt-[", def, []string{"\x1b["}, "\x1b[", false},
		{"one key", "C-]", []string{"a\x1db"}, "a", true},
		{"two keys", "C-a,d", []string{"\x01d"}, "", true},
		{"two keys, the first twice", "C-a,d", []string{"\x01\x01d"}, "\x01", true},
		{"the longest beginning is kept", "C-a,C-a,d", []string{"\x01\x01\x01d"}, "\x01", true},
		{"none", "none", []string{"\x1c\x1c"}, "\x1c\x1c", false},
		{"as docker writes it", "ctrl-p,ctrl-q", []string{"\x10\x11"}, "", true},
		{"with a caret", "^X", []string{"\x18"}, "", true},
		{"space", "C-Space", []string{"\x00"}, "", true},
		{"the other letters of UTF-8", def, []string{"é漢\x1c\x1c"}, "é漢", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := detacher{keys: mustKeys(t, c.keys)}
			var got []byte
			detached := false
			for _, p := range c.in {
				pass, yes := d.feed([]byte(p))
				got = append(got, pass...)
				if detached = yes; yes {
					break
				}
			}
			if string(got) != c.pass || detached != c.detached {
				t.Errorf("passed %q, detached %v; want %q, %v", got, detached, c.pass, c.detached)
			}
			if !detached && d.waiting() {
				t.Errorf("%q is held back", d.expire())
			}
		})
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for _, s := range []string{"", "C-", "C-é", "C-1", "ab", ",", "C-a,", "\x01"} {
		if k, err := ParseDetachKeys(s); err == nil {
			t.Errorf("%q is taken for %v", s, k)
		}
	}
}

func TestPumpPassesASingleKeyOnAfterItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(chan []byte)
		var mu sync.Mutex // guards buf and at
		var buf []byte
		var at time.Duration
		got := func() string {
			mu.Lock()
			defer mu.Unlock()
			return string(buf)
		}
		start := time.Now()
		type end struct {
			detached bool
			err      error
		}
		ended := make(chan end)
		go func() {
			d, err := pump(t.Context(), mustKeys(t, DefaultDetachKeys), in, func(p []byte) error {
				mu.Lock()
				defer mu.Unlock()
				at = time.Since(start)
				buf = append(buf, p...)
				return nil
			})
			ended <- end{d, err}
		}()
		in <- []byte("a\x1c")
		synctest.Wait()
		if got() != "a" {
			t.Fatalf("at once: %q", got())
		}
		time.Sleep(499 * time.Millisecond)
		synctest.Wait()
		if got() != "a" {
			t.Fatalf("after 499 ms: %q", got())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got() != "a\x1c" || at != detachPause {
			t.Fatalf("after 500 ms: %q, at %v", got(), at)
		}
		// Each press has its own pause.
		in <- []byte("\x1c")
		time.Sleep(400 * time.Millisecond)
		in <- []byte("\x1c")
		if e := <-ended; !e.detached || e.err != nil || got() != "a\x1c" {
			t.Fatalf("%+v after %q", e, got())
		}
	})
}

func TestPumpEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := mustKeys(t, DefaultDetachKeys)
		var got strings.Builder
		write := func(p []byte) error { got.Write(p); return nil }

		in := make(chan []byte, 1)
		in <- []byte("x\x1c")
		close(in)
		if d, err := pump(t.Context(), keys, in, write); d || err != nil || got.String() != "x\x1c" {
			t.Errorf("at the end of input: %v, %v, %q", d, err, got.String())
		}

		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		cancel(why)
		if _, err := pump(ctx, keys, nil, write); !errors.Is(err, why) {
			t.Errorf("cancelled: %v", err)
		}

		in = make(chan []byte, 1)
		in <- []byte("x")
		if _, err := pump(t.Context(), keys, in, func([]byte) error { return why }); !errors.Is(err, why) {
			t.Errorf("write failed: %v", err)
		}
	})
}

// FuzzDetacher: without the detach keys in it, all input is passed on, in
// order, however it arrives.
func FuzzDetacher(f *testing.F) {
	f.Add([]byte("a\x1cb\x1b[92;5uc\x1b[92;5:3u\x1b[9"), 2)
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		d := detacher{keys: []Key{{plain: 0x1c, code: 92, ctrl: true}, {plain: 0x1c, code: 92, ctrl: true}}}
		size = 1 + int(uint(size)%uint(max(len(p), 1)))
		var got []byte
		for i := 0; i < len(p); i += size {
			end := min(i+size, len(p))
			pass, detached := d.feed(p[i:end])
			got = append(got, pass...)
			if detached {
				if !bytes.HasPrefix(p, got) {
					t.Fatalf("passed %q of %q", got, p)
				}
				return
			}
		}
		if got = append(got, d.expire()...); !bytes.Equal(got, p) {
			t.Fatalf("passed %q of %q", got, p)
		}
	})
}

package main

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	rows := func() [][]string {
		return [][]string{{"NAME", "N", "CMD"}, {"é", "100", "a command that is long"}, {"evil\x1b[31m\u202e", "", ""}}
	}
	var b bytes.Buffer
	table(&b, 0, rows())
	if want := "NAME        N    CMD\né           100  a command that is long\nevil\uFFFD[31m\uFFFD\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	table(&b, 25, rows())
	if want := "NAME        N    CMD\né           100  a comma…\nevil\uFFFD[31m\uFFFD\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestQuote(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"ls", "-l", "/tmp/a_b.c", "k=v"}, "ls -l /tmp/a_b.c k=v"},
		{[]string{"sh", "-c", "echo 'a b'; $x", ""}, `sh -c 'echo '\''a b'\''; $x' ''`},
		{[]string{"é"}, "é"},
	} {
		if got := quote(c.argv); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestDurations(t *testing.T) {
	for s, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "1.5d": 36 * time.Hour, "2h": 2 * time.Hour, "0s": 0, "500ms": 500 * time.Millisecond} {
		var d duration
		if err := d.Set(s); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "60", "-1s", "d", "xd", "-1d", "99999999d"} {
		var d duration
		if err := d.Set(s); err == nil {
			t.Errorf("%q is taken for %v", s, time.Duration(d))
		}
	}
}

func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		text  string
		n     int
		want  string
		whole bool
	}{
		{"a\nb\nc", 1, "c", true}, {"a\nb\nc\n", 1, "c\n", true}, {"a\nb\nc\n", 2, "b\nc\n", true},
		{"a\nb\nc\n", 3, "a\nb\nc\n", false}, {"", 1, "", false}, {"\n\n", 1, "\n", true}, {"abc", 5, "abc", false}, {"a\n", 0, "", true},
	} {
		start, whole := lastLines([]byte(c.text), c.n)
		if c.text[start:] != c.want || whole != c.whole {
			t.Errorf("%q, %d: %q, %v", c.text, c.n, c.text[start:], whole)
		}
	}
}

func TestSplitKeys(t *testing.T) {
	got := splitKeys([]string{"Enter,C-c", ",", "x"})
	if !slices.Equal(got, []string{"Enter", "C-c", ",", "x"}) {
		t.Errorf("%q", got)
	}
}

func TestAge(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{-time.Hour: "0s", 59 * time.Second: "59s", 61 * time.Minute: "1h", 47 * time.Hour: "47h", 100 * time.Hour: "4d"} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 30: "5.0 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

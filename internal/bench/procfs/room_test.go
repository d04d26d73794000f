package procfs

import (
	"strings"
	"testing"
)

func TestRoom(t *testing.T) {
	for _, c := range []struct {
		n        int
		fds      uint64
		most, nr int
		want     string
	}{
		{n: 3000, fds: 20000, most: 4096, nr: 10},
		{n: 3000, fds: 20000}, // no such file: not known to be too few
		{n: 3000, fds: 4096, most: 4096, nr: 10, want: "9300 descriptors are needed, ulimit -Hn is 4096"},
		{n: 3000, fds: 20000, most: 4096, nr: 2000, want: "3000 terminals are needed, kernel.pty.max leaves 2096"},
	} {
		if got := room(c.n, c.fds, c.most, c.nr); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if why := Room(1); why != "" {
		t.Errorf("one session: %s", why)
	}
	if why := Room(1 << 40); !strings.Contains(why, "descriptors") {
		t.Errorf("a billion sessions: %q", why)
	}
}

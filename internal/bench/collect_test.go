package bench

import (
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/bench/workload"
)

// text returns the flood's bytes from ≤ position < to.
func text(from, to uint64) []byte {
	var p []byte
	for n := uint64(0); uint64(len(p)) < to; n++ {
		p = append(p, workload.Block(n)...)
	}
	return p[from:to]
}

func TestCollectorWhole(t *testing.T) {
	var c collector
	stream := append([]byte(workload.Ready), text(0, 200_000)...)
	for at := 0; at < len(stream); at += 4095 {
		c.add(uint64(at), stream[at:min(at+4095, len(stream))])
	}
	if c.bytes != 200_000 || c.at() != floodStart+200_000 || len(c.parts) != 1 {
		t.Errorf("bytes %d, at %d, %d parts", c.bytes, c.at(), len(c.parts))
	}
	if err := c.check(0); err != nil {
		t.Error(err)
	}
}

func TestCollectorFindsFaults(t *testing.T) {
	p := text(0, 300_000)
	at := func(n uint64) uint64 { return floodStart + n }
	for name, c := range map[string]struct {
		build   func(*collector)
		skipped uint64
		want    string
	}{
		"declared skip": {func(c *collector) { c.add(at(0), p[:1000]); c.add(at(5000), p[5000:9000]) }, 4000, ""},
		"silent gap":    {func(c *collector) { c.add(at(0), p[:1000]); c.add(at(5000), p[5000:9000]) }, 0, "missing"},
		"gap at front":  {func(c *collector) { c.add(at(500), p[500:1000]) }, 0, "missing"},
		"false claim":   {func(c *collector) { c.add(at(0), p[:1000]) }, 10, "missing"},
		"repeat":        {func(c *collector) { c.add(at(0), p[:1000]); c.add(at(900), p[900:2000]) }, 0, "repeated"},
		"wrong bytes":   {func(c *collector) { c.add(at(0), p[:1000]); c.add(at(1000), p[1001:2001]) }, 0, "differs"},
	} {
		var k collector
		c.build(&k)
		err := k.check(c.skipped)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

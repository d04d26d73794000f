package bench

import (
	"fmt"

	"github.com/ptyd/ptyd/internal/bench/workload"
)

// floodStart is where the flood begins in a session's stream.
const floodStart = uint64(len(workload.Ready))

// collector remembers what a viewer received of a flood: its contiguous parts
// and their checksums. Comparing them costs time, so that is done afterwards.
type collector struct {
	parts []part
	bytes uint64
}

// part is the bytes from ≤ position < to of the stream.
type part struct {
	from, to uint64
	sum      uint32
}

// add takes output that begins at offset.
func (c *collector) add(offset uint64, p []byte) {
	if end := offset + uint64(len(p)); offset < floodStart { // what came before the flood
		if end <= floodStart {
			return
		}
		p = p[floodStart-offset:]
		offset = floodStart
	}
	c.bytes += uint64(len(p))
	if n := len(c.parts); n == 0 || c.parts[n-1].to != offset {
		c.parts = append(c.parts, part{from: offset, to: offset})
	}
	last := &c.parts[len(c.parts)-1]
	last.to += uint64(len(p))
	last.sum = workload.Update(last.sum, p)
}

// at is the position up to which the viewer is.
func (c *collector) at() uint64 {
	if len(c.parts) == 0 {
		return floodStart
	}
	return c.parts[len(c.parts)-1].to
}

// check compares everything received with what the workload wrote. skipped is
// what the server declared as left out; no other gap is allowed.
func (c *collector) check(skipped uint64) error {
	at, gaps := floodStart, uint64(0)
	for _, p := range c.parts {
		if p.from < at {
			return fmt.Errorf("output repeated: %d again, having come to %d", p.from, at)
		}
		gaps += p.from - at
		at = p.to
		if want := workload.Checksum(p.from-floodStart, p.to-floodStart); p.sum != want {
			return fmt.Errorf("content differs between %d and %d: checksum %08x, want %08x", p.from, p.to, p.sum, want)
		}
	}
	if gaps != skipped {
		return fmt.Errorf("%d bytes are missing, %d were declared", gaps, skipped)
	}
	return nil
}

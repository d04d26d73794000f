package oracle

import (
	"fmt"
	"math/rand"
	"testing"
)

// resized puts changes of size into a stream, at any byte.
func (s stream) resized(r *rand.Rand, n int) stream {
	for range n {
		head, tail := s.split(r.Intn(s.size() + 1))
		k := token{cols: 2 + r.Intn(120), rows: 1 + r.Intn(45)}
		head.tokens = append(head.tokens, k)
		head.tokens = append(head.tokens, tail.tokens...)
		s = head
	}
	return s
}

// TestRecordedStreams compares what real programs print: as it was, and with
// changes of size at random places.
func TestRecordedStreams(t *testing.T) {
	list := loadRecordings(t)
	if torture() {
		list = append(list, recordAll(t)...)
	}
	variants := 2
	if torture() {
		variants = 40
	}
	for i, rec := range list {
		t.Run(rec.Name, func(t *testing.T) {
			r := rand.New(rand.NewSource(*seedFlag + int64(i)))
			streams := []stream{rec.stream(1000)}
			for range variants - 1 {
				streams = append(streams, rec.stream(r.Intn(300)).resized(r, 1+r.Intn(5)))
			}
			var f findings
			judge := func(l []stream) []verdict { return compareAll(t, l) }
			for j, v := range judge(streams) {
				if len(v.threw) > 0 {
					t.Errorf("xterm.js threw %v", v.threw)
				}
				if v.bad() && !f.full() {
					f.add(t, fmt.Sprintf("variant %d", j), streams[j], judge)
				}
			}
			for _, text := range f.text {
				t.Error(text)
			}
		})
	}
}

// TestRecordedStreamsAreRestored cuts what real programs print at random places
// and restores it, into a new terminal and into one that was used.
func TestRecordedStreamsAreRestored(t *testing.T) {
	cuts := 4
	if torture() {
		cuts = 100
	}
	for i, rec := range loadRecordings(t) {
		t.Run(rec.Name, func(t *testing.T) {
			r := rand.New(rand.NewSource(*seedFlag + int64(i)))
			s := rec.stream(300)
			var cases []request
			var at []int
			for j := range cuts {
				k := r.Intn(s.size() + 1)
				at = append(at, k)
				cases = append(cases, restore(s.marked(k), j%2 == 1))
			}
			for j, a := range play(t, cases) {
				for h, when := range []string{"at the cut", "after the rest"} {
					if d := pair(a.Out[h]); d != nil {
						t.Errorf("cut at %d (used terminal: %v): %s, restored is \"ours\"", at[j], j%2 == 1, when)
						for _, l := range d {
							t.Log(l)
						}
						break
					}
				}
			}
		})
	}
}

package vt

import (
	"bytes"
	"math/rand"
	"reflect"
	"testing"
)

// whole is all of a terminal that can be told.
type whole struct {
	State    State
	Replies  [][]byte
	Events   []Event
	Snapshot string
}

func all(t *Terminal) whole {
	return whole{t.State(), t.TakeReplies(), t.TakeEvents(), string(t.AppendSnapshot(nil))}
}

// A stream shows the same however it is cut.
func TestCutsChangeNothing(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewSource(int64(seed)))
		o := Options{Cols: 2 + r.Intn(30), Rows: 1 + r.Intn(8), ScrollbackLines: 20}
		stream := []byte(randomStream(r, 40, o.Cols, o.Rows))
		one, many := New(o), New(o)
		one.Write(stream)
		for rest := stream; len(rest) > 0; {
			n := 1
			if r.Intn(3) > 0 {
				n = min(len(rest), 1+r.Intn(10))
			}
			many.Write(rest[:n])
			rest = rest[n:]
		}
		if a, b := all(one), all(many); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: %q differs when cut\n%+v\n%+v", seed, stream, a, b)
		}
	}
}

// A snapshot brings a terminal to where the first was, and what comes then finds
// them alike. Left out: what no bytes can draw (DESIGN.md) and what a random
// stream comes to that way, so streams are of whole text without ?7l.
func TestSnapshotRestores(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewSource(int64(seed)))
		o := Options{Cols: 8 + r.Intn(30), Rows: 2 + r.Intn(8), ScrollbackLines: 20}
		stream := []byte(randomStream(r, 40, o.Cols, o.Rows))
		if bytes.Contains(stream, []byte("\x1b[?7l")) || bytes.Contains(stream, []byte("\x1b['")) {
			continue
		}
		cut := r.Intn(len(stream) + 1)
		first := New(o)
		first.Write(stream[:cut])
		second := Restore(o, first.AppendSnapshot(nil))
		compare := func(when string) {
			t.Helper()
			a, b := first.State(), second.State()
			a.Join, b.Join = 0, 0
			if a.Alt {
				// They follow those of the alternate screen.
				a.Normal.X, a.Normal.Y, b.Normal.X, b.Normal.Y = 0, 0, 0, 0
			}
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("seed %d, cut at %d: %q differs %s\n%+v\n%+v", seed, cut, stream, when, a, b)
			}
		}
		compare("at the cut")
		first.Write(stream[cut:])
		second.Write(stream[cut:])
		compare("after the rest")
	}
}

// A backlog of plain lines, which takes a shorter way, comes to the same.
func TestBacklogIsExact(t *testing.T) {
	for seed := range 20 {
		r := rand.New(rand.NewSource(int64(seed)))
		o := Options{Cols: 2 + r.Intn(40), Rows: 1 + r.Intn(8), ScrollbackLines: []int{-1, 5, 60, 150}[r.Intn(4)], ScrollbackBytes: []int{0, 1000, 40_000}[r.Intn(3)]}
		one, many := New(o), New(o)
		for range 3 {
			var b bytes.Buffer
			b.WriteString(randomStream(r, r.Intn(4), o.Cols, o.Rows))
			b.WriteString("\x1b[m\x1b(B\x0f\x1b[?1049l\x1b[r\x1b[4l\x1b[999;1H\x1b[K")
			for range 40 + r.Intn(120) {
				n := r.Intn(o.Cols + 2)
				if r.Intn(100) > 0 {
					n = min(n, o.Cols)
				}
				b.WriteString("The quick brown fox jumps over the lazy dog  "[:min(n, 45)])
				b.WriteString("\r\n")
			}
			one.Write(b.Bytes())
			for _, c := range b.Bytes() {
				many.Write([]byte{c})
			}
			checkShape(t, one)
			a, b2 := all(one), all(many)
			if !reflect.DeepEqual(a, b2) {
				t.Fatalf("seed %d differs\n%+v\n%+v", seed, a, b2)
			}
		}
	}
}

// Resizing back and forth neither panics nor leaves the limits.
func TestResizesHold(t *testing.T) {
	for seed := range 150 {
		r := rand.New(rand.NewSource(int64(seed)))
		vt := New(Options{Cols: 20, Rows: 5, ScrollbackLines: []int{-1, 3, 50}[r.Intn(3)]})
		for range 10 {
			cols, rows := vt.Size()
			vt.Write([]byte(randomStream(r, 10, cols, rows)))
			vt.Resize(r.Intn(40), r.Intn(12))
			checkShape(t, vt)
		}
	}
}

// checkShape fails when a terminal's parts do not fit together.
func checkShape(t testing.TB, vt *Terminal) {
	t.Helper()
	for _, s := range []*screen{vt.normal, vt.alt} {
		if s == vt.alt && !vt.Alt() {
			continue
		}
		if len(s.rows) != vt.rows || s.y < 0 || s.y >= vt.rows || s.x < 0 || s.top < 0 || s.top > s.bottom || s.bottom >= vt.rows {
			t.Fatalf("%d rows of %d, cursor %d,%d, region %d-%d", len(s.rows), vt.rows, s.x, s.y, s.top, s.bottom)
		}
		seen := map[*row]bool{}
		for _, r := range s.rows {
			if len(r.cells) != vt.cols || seen[r] {
				t.Fatalf("a row of %d columns on a screen of %d, twice there: %v", len(r.cells), vt.cols, seen[r])
			}
			seen[r] = true
			for _, c := range r.cells {
				if int(c.style()) >= len(vt.styles.list) || c.isCluster() && c.clusterIndex() >= len(vt.styles.clusters) {
					t.Fatalf("cell %x has no style or cluster", uint64(c))
				}
			}
		}
	}
	if h := vt.normal.hist; h.n > h.maxLines || h.bytes > h.maxBytes+(64<<10)+64*len(h.blocks) && len(h.blocks) > 2 {
		t.Fatalf("scrollback of %d lines, %d bytes", h.n, h.bytes)
	}
}

// FuzzTerminal feeds anything, cut anywhere.
func FuzzTerminal(f *testing.F) {
	for seed := range 20 {
		r := rand.New(rand.NewSource(int64(seed)))
		f.Add([]byte(randomStream(r, 30, 20, 5)), uint16(r.Intn(100)), uint8(r.Intn(40)), uint8(r.Intn(10)))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16, cols, rows uint8) {
		o := Options{Cols: int(cols), Rows: int(rows), ScrollbackLines: 30, ScrollbackBytes: 1 << 20}
		one, two := New(o), New(o)
		one.Write(stream)
		n := int(cut) % (len(stream) + 1)
		two.Write(stream[:n])
		two.Write(stream[n:])
		checkShape(t, one)
		if a, b := all(one), all(two); !reflect.DeepEqual(a, b) {
			t.Fatalf("differs when cut at %d\n%+v\n%+v", n, a, b)
		}
		again := Restore(o, one.AppendSnapshot(nil))
		checkShape(t, again)
		one.Resize(int(rows), int(cols))
		checkShape(t, one)
		one.Write(stream)
		checkShape(t, one)
		one.Text()
		one.Marks()
	})
}

package oracle

import (
	"fmt"
	"math/rand"
	"testing"
)

// verdict is what comparing one stream found.
type verdict struct {
	diff  []string
	threw []string
}

func (v verdict) bad() bool { return len(v.diff) > 0 }

// compareAll plays the streams on both and compares at the end.
func compareAll(t *testing.T, list []stream) []verdict {
	t.Helper()
	cases := make([]request, len(list))
	for i, s := range list {
		cases[i] = request{append(s.ops(0), opDump(0))}
	}
	out := make([]verdict, len(list))
	for i, a := range play(t, cases) {
		out[i].threw = a.Threw
		if len(a.Threw) > 0 {
			continue // xterm.js gave up in the middle: see faults_test.go
		}
		out[i].diff = difference(list[i].play().state(t), a.Out[0])
	}
	return out
}

// findings collects differences, each shortened and said once.
type findings struct {
	text []string
	seen map[string]bool
	like map[string]int // of differences before they were shortened
	n    int
}

func (f *findings) full() bool { return f.n >= *keepFlag }

// add reports a stream that differs unless its like was reported already.
func (f *findings) add(t *testing.T, what string, s stream, judge func([]stream) []verdict) {
	t.Helper()
	if f.seen == nil {
		f.seen, f.like = map[string]bool{}, map[string]int{}
	}
	// Shortening takes seconds, and most differences are the same.
	c := class(judge([]stream{s})[0].diff)
	if f.like[c]++; f.like[c] > 3 {
		return
	}
	m := minimise(s, func(list []stream) []bool {
		out := make([]bool, len(list))
		for i, v := range judge(list) {
			out[i] = v.bad()
		}
		return out
	})
	if f.seen[m.String()] {
		return
	}
	f.seen[m.String()] = true
	f.n++
	text := ""
	diff := judge([]stream{m})[0].diff
	for _, d := range diff {
		text += "\n    " + d
	}
	f.text = append(f.text, fmt.Sprintf("%s: %v%s", what, m, text))
}

// tell logs what was found. It is a failure where more than the bar, of a
// thousand, differ: some cells and cursors that only strange streams leave can't
// be drawn by any bytes, and history is kept as such bytes.
func (f *findings) tell(t *testing.T, differ, of, bar int) {
	t.Helper()
	for _, text := range f.text {
		t.Log(text)
	}
	t.Logf("%d of %d differ, by kind: %v", differ, of, f.like)
	if differ*1000 > of*bar {
		t.Errorf("%d of %d differ: the bar is %d of a thousand", differ, of, bar)
	}
}

// TestRandomStreams plays random streams on both emulators.
func TestRandomStreams(t *testing.T) {
	n := amount(900, 50000)
	var f findings
	differ, threw := 0, map[string]int{}
	const batch = 250
	for at := 0; at < n && !f.full(); at += batch {
		list := make([]stream, min(batch, n-at))
		names := make([]string, len(list))
		for i := range list {
			list[i], names[i] = generate(*seedFlag + int64(at+i))
		}
		for i, v := range compareAll(t, list) {
			for _, e := range v.threw {
				threw[e]++
			}
			if v.bad() {
				differ++
				if !f.full() {
					f.add(t, fmt.Sprintf("seed %d (%s)", *seedFlag+int64(at+i), names[i]), list[i], func(l []stream) []verdict { return compareAll(t, l) })
				}
			}
		}
	}
	t.Logf("exceptions of xterm.js: %v", threw)
	f.tell(t, differ, n, 1)
}

// TestCutsMakeNoDifference plays each stream whole and in random pieces.
func TestCutsMakeNoDifference(t *testing.T) {
	n := amount(400, 20000)
	var f findings
	judge := func(list []stream) []verdict {
		out := make([]verdict, len(list))
		for i, s := range list {
			whole := s.join().play().state(t)
			r := rand.New(rand.NewSource(int64(s.size())))
			if out[i].diff = difference(s.shred(r).play().state(t), whole); out[i].diff == nil {
				out[i].diff = difference(s.bytewise().play().state(t), whole)
			}
		}
		return out
	}
	for i := range n {
		s, name := generate(*seedFlag + int64(i))
		if judge([]stream{s})[0].bad() {
			f.add(t, fmt.Sprintf("seed %d (%s) depends on how it is cut", *seedFlag+int64(i), name), s, judge)
			if f.full() {
				break
			}
		}
	}
	for _, text := range f.text {
		t.Error(text)
	}
}

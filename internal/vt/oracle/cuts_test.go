package oracle

import "testing"

// TestReferenceDoesNotDependOnCuts plays the same bytes whole and in pieces on
// the reference. What it finds would be a fault of xterm.js, and the reason of
// a difference that no emulator could avoid.
func TestReferenceDoesNotDependOnCuts(t *testing.T) {
	bad := func(list []stream) []bool {
		var cases []request
		for _, s := range list {
			ops := append(s.join().ops(0), s.bytewise().ops(1)...)
			cases = append(cases, request{append(ops, opCompare(0, 1))})
		}
		out := make([]bool, len(list))
		for i, a := range play(t, cases) {
			out[i] = string(a.Out[0]) != "null" && len(a.Threw) == 0
		}
		return out
	}
	n := amount(80, 5000)
	seeds := make([]stream, 0, n)
	for i := range n {
		s, _ := generate(*seedFlag + int64(i))
		seeds = append(seeds, s)
	}
	failures := 0
	for at := 0; at < n; at += 100 {
		for i, b := range bad(seeds[at:min(at+100, n)]) {
			if !b {
				continue
			}
			m := minimise(seeds[at+i], bad)
			a := play(t, []request{{append(append(m.join().ops(0), m.bytewise().ops(1)...), opDump(0), opDump(1))}})
			t.Log(difference(a[0].Out[0], a[0].Out[1]))
			t.Errorf("seed %d: xterm.js differs by how it is cut: %v", *seedFlag+int64(at+i), m)
			if failures++; failures >= *keepFlag {
				return
			}
		}
	}
}

package oracle

import (
	"fmt"
	"math/rand"
	"testing"
)

// restore plays s on xterm.js up to its mark, loads our snapshot of the same
// place into a second xterm.js, compares the two, plays the rest on both and
// compares again. used makes the second one a terminal that has shown other
// things before, as a page's has that attaches again.
func restore(s stream, used bool) request {
	head, tail, ok := s.parts()
	if !ok {
		return request{Ops: []op{}} // the minimiser took the mark away
	}
	ops := append(head.ops(0), opForgetReplies(0))
	fresh := stream{cols: tail.cols, rows: tail.rows, scrollback: s.scrollback}
	if used {
		fresh.tokens = []token{{b: []byte(litter)}}
	}
	ops = append(ops, fresh.ops(1)...)
	ops = append(ops, opForgetReplies(1), opWrite(1, head.play().AppendSnapshot(nil)), opCompare(0, 1))
	ops = append(ops, tail.plays(0)...)
	ops = append(ops, tail.plays(1)...)
	return request{append(ops, opCompare(0, 1))}
}

// litter leaves a terminal in a state in which everything is set.
const litter = "\x1b[20h\x1b[4h\x1b[?1;6;12;45;66;1003;1004;1006;2004;2026h\x1b[?7;25l\x1b[3 q\x1b(0\x1b)A\x0e\x1b[1;1r\x1b[3g" +
	"\x1b]2;old\x07\x1b]8;;http://old\x07\x1b[1;3;4:3;31;42;58:5:1mold\r\n\r\n\r\n\r\nold\x1b7\x1b[?1049hold\x1b7\x1b[3;4H\x1b]0;open"

// judgeRestore restores each stream at its mark.
func judgeRestore(t *testing.T, list []stream, used bool) []verdict {
	t.Helper()
	cases := make([]request, len(list))
	for i, s := range list {
		cases[i] = restore(s, used)
	}
	out := make([]verdict, len(list))
	for i, a := range play(t, cases) {
		v := &out[i]
		v.threw = a.Threw
		if len(a.Threw) > 0 || len(a.Out) < 2 {
			continue
		}
		for at, when := range []string{"at the cut", "after the rest"} {
			if d := pair(a.Out[at]); d != nil {
				v.diff = append([]string{"(ours: restored) " + when}, d...)
				break
			}
		}
	}
	return out
}

// TestRestore cuts random streams at random places.
func TestRestore(t *testing.T) {
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("used=%v", used), func(t *testing.T) {
			n := amount(400, 20000)
			var f findings
			differ := 0
			const batch = 100
			for at := 0; at < n && !f.full(); at += batch {
				var list []stream
				var names []string
				for i := range min(batch, n-at) {
					seed := *seedFlag + int64(at+i)
					s, name := generate(seed)
					r := rand.New(rand.NewSource(seed))
					list = append(list, s.marked(r.Intn(s.size()+1)))
					names = append(names, fmt.Sprintf("seed %d (%s) is not restored", seed, name))
				}
				for i, v := range judgeRestore(t, list, used) {
					if !v.bad() {
						continue
					}
					differ++
					if !f.full() {
						f.add(t, names[i], list[i], func(l []stream) []verdict { return judgeRestore(t, l, used) })
					}
				}
			}
			f.tell(t, differ, n, 1)
		})
	}
}

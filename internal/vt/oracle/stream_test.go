package oracle

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
)

// usable says whether xterm.js can do what the stream asks for: see faults.
// Without scrollback a change of size leaves it with a screen below its last line.
func (s stream) usable() bool {
	if s.scrollback > 0 {
		return true
	}
	for _, k := range s.tokens {
		if k.resizes() {
			return false
		}
	}
	return true
}

// token is one unit of a stream: bytes, a change of size, or the place at which
// a test cuts it.
type token struct {
	b          []byte
	cols, rows int // of a change of size, else 0
	cut        bool
}

func (k token) resizes() bool { return k.cols > 0 }

// stream is what a terminal lives through.
type stream struct {
	cols, rows, scrollback int
	tokens                 []token
}

// String is the stream as Go source: what a regression test would hold.
func (s stream) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%dx%d, %d lines of scrollback", s.cols, s.rows, s.scrollback)
	var run []byte
	flush := func() {
		if len(run) > 0 {
			fmt.Fprintf(&b, ", %+q", run)
			run = nil
		}
	}
	for _, k := range s.tokens {
		if k.resizes() {
			flush()
			fmt.Fprintf(&b, ", resize %dx%d", k.cols, k.rows)
			continue
		}
		if k.cut {
			flush()
			b.WriteString(", CUT")
			continue
		}
		run = append(run, k.b...)
	}
	flush()
	return b.String()
}

// size is how many bytes the stream has; a change of size counts as one.
func (s stream) size() int {
	n := 0
	for _, k := range s.tokens {
		if k.resizes() {
			n++
		}
		n += len(k.b)
	}
	return n
}

// join merges neighbouring bytes, so that a stream is written as it would come.
func (s stream) join() stream {
	out := stream{cols: s.cols, rows: s.rows, scrollback: s.scrollback}
	for _, k := range s.tokens {
		n := len(out.tokens)
		if len(k.b) > 0 && n > 0 && len(out.tokens[n-1].b) > 0 {
			out.tokens[n-1].b = append(bytes.Clone(out.tokens[n-1].b), k.b...)
			continue
		}
		out.tokens = append(out.tokens, k)
	}
	return out
}

// split cuts the stream at position k of size(), within a token too.
func (s stream) split(k int) (head, tail stream) {
	head = stream{cols: s.cols, rows: s.rows, scrollback: s.scrollback}
	tail = head
	for i, t := range s.tokens {
		n := len(t.b)
		if t.resizes() {
			n = 1
		}
		switch {
		case k >= n:
			head.tokens = append(head.tokens, t)
			k -= n
			if t.resizes() {
				tail.cols, tail.rows = t.cols, t.rows
			}
			continue
		case k > 0:
			head.tokens = append(head.tokens, token{b: t.b[:k]})
			tail.tokens = append(tail.tokens, token{b: t.b[k:]})
			i++
		}
		tail.tokens = append(tail.tokens, s.tokens[i:]...)
		return head, tail
	}
	return head, tail
}

// marked is the stream with a mark at position k of size().
func (s stream) marked(k int) stream {
	head, tail := s.split(k)
	head.tokens = append(append(head.tokens, token{cut: true}), tail.tokens...)
	return head
}

// parts is what is before and behind the mark; false where there is none.
func (s stream) parts() (head, tail stream, ok bool) {
	head = stream{cols: s.cols, rows: s.rows, scrollback: s.scrollback}
	tail = head
	for i, k := range s.tokens {
		if k.cut {
			tail.tokens = s.tokens[i+1:]
			return head, tail, true
		}
		if k.resizes() {
			tail.cols, tail.rows = k.cols, k.rows
		}
		head.tokens = append(head.tokens, k)
	}
	return head, tail, false
}

// shred cuts the bytes at random places and leaves all else as it is.
func (s stream) shred(r *rand.Rand) stream {
	out := stream{cols: s.cols, rows: s.rows, scrollback: s.scrollback}
	for _, k := range s.join().tokens {
		for len(k.b) > 1 && r.Intn(4) > 0 {
			n := 1 + r.Intn(min(len(k.b)-1, 12))
			out.tokens = append(out.tokens, token{b: k.b[:n]})
			k.b = k.b[n:]
		}
		out.tokens = append(out.tokens, k)
	}
	return out
}

// bytewise is the stream one byte at a time.
func (s stream) bytewise() stream {
	out := stream{cols: s.cols, rows: s.rows, scrollback: s.scrollback}
	for _, k := range s.tokens {
		for i := range k.b {
			out.tokens = append(out.tokens, token{b: k.b[i : i+1]})
		}
		if len(k.b) == 0 {
			out.tokens = append(out.tokens, k)
		}
	}
	return out
}

// ops are the stream's instructions for terminal t of the reference.
func (s stream) ops(t int) []op {
	return append([]op{opNew(t, s.cols, s.rows, s.scrollback)}, s.plays(t)...)
}

// plays are the instructions without the one that makes the terminal.
func (s stream) plays(t int) []op {
	var ops []op
	for _, k := range s.tokens {
		if k.resizes() {
			ops = append(ops, opResize(t, k.cols, k.rows))
		} else if len(k.b) > 0 {
			ops = append(ops, opWrite(t, k.b))
		}
	}
	return ops
}

// kind is a family of streams: how likely each sort of token is.
type kind struct {
	name                                                                      string
	text, wide, broken, c0, c1, cursor, erase, sgr, mode, esc                 int
	osc, dcs, region, query, anyCSI, resize, swap, save, link, charset, flood int
}

var kinds = []kind{
	{name: "text", text: 12, c0: 5, sgr: 2, resize: 1},
	{name: "unicode", text: 3, wide: 12, c0: 3, cursor: 3, erase: 2, sgr: 1, resize: 1, mode: 1},
	{name: "screen", text: 8, wide: 2, c0: 3, cursor: 8, erase: 6, sgr: 4, mode: 2, region: 3, esc: 2, swap: 1, save: 1},
	{name: "mixed", text: 6, wide: 3, broken: 1, c0: 4, c1: 1, cursor: 5, erase: 5, sgr: 4, mode: 4, esc: 3,
		osc: 1, dcs: 1, region: 2, query: 2, anyCSI: 2, resize: 2, swap: 2, save: 2, link: 1, charset: 1},
	{name: "reflow", text: 10, wide: 4, c0: 4, cursor: 2, erase: 2, sgr: 2, resize: 8, swap: 1, save: 1, region: 1},
	{name: "hostile", text: 3, wide: 3, broken: 5, c0: 3, c1: 3, cursor: 3, erase: 3, sgr: 4, mode: 3, esc: 4,
		osc: 4, dcs: 4, region: 3, query: 2, anyCSI: 6, resize: 2, swap: 2, save: 2, link: 2, charset: 2},
	{name: "links", text: 6, wide: 2, sgr: 5, link: 6, erase: 3, cursor: 3, c0: 3, swap: 1, resize: 1, save: 2},
	{name: "floods", text: 3, wide: 1, flood: 4, sgr: 2, c0: 3, cursor: 2, region: 1, resize: 2, swap: 1, save: 1, mode: 1},
	{name: "charsets", text: 8, wide: 1, charset: 8, save: 3, esc: 2, swap: 1, c0: 2, mode: 1},
}

func kindNames() string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return strings.Join(out, ", ")
}

// generator makes the streams of one seed: the same seed, the same stream.
type generator struct {
	r          *rand.Rand
	cols, rows int
}

// generate makes the stream of a seed.
func generate(seed int64) (stream, string) {
	r := rand.New(rand.NewSource(seed))
	k := kinds[r.Intn(len(kinds))]
	for *kindFlag != "" && k.name != *kindFlag {
		k = kinds[r.Intn(len(kinds))]
	}
	s := stream{cols: 2 + r.Intn(14), rows: 1 + r.Intn(7), scrollback: r.Intn(20)}
	switch r.Intn(12) {
	case 0:
		s.cols, s.rows, s.scrollback = 80, 24, 100
	case 1:
		s.scrollback = 0
	case 2:
		s.cols, s.rows = 2, 1+r.Intn(2)
	case 3:
		s.cols = 20 + r.Intn(30)
	}
	g := &generator{r: r, cols: s.cols, rows: s.rows}
	n := 3 + r.Intn(60)
	if k.flood > 0 {
		n /= 4
		s.scrollback += r.Intn(2) * r.Intn(400)
	}
	for range n {
		t := g.token(k)
		if t.resizes() {
			g.cols, g.rows = t.cols, t.rows
		}
		s.tokens = append(s.tokens, t)
	}
	if !s.usable() {
		s.scrollback = 1 + r.Intn(3)
	}
	return s, k.name
}

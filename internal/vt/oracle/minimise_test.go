package oracle

import "bytes"

// minimise makes s as short as it can while bad says so: whole tokens first,
// then bytes, then smaller screens. bad judges many streams at once, because
// the reference answers batches fast.
func minimise(s stream, bad func([]stream) []bool) stream {
	judge := bad
	bad = func(list []stream) []bool {
		out := judge(list)
		for i := range out {
			out[i] = out[i] && list[i].usable()
		}
		return out
	}
	s = shorten(s, bad)
	// Every byte a token of its own; sizes stay whole.
	var small stream
	for {
		before := s.size()
		small = stream{cols: s.cols, rows: s.rows, scrollback: s.scrollback}
		for _, k := range s.tokens {
			if len(k.b) == 0 {
				small.tokens = append(small.tokens, k)
				continue
			}
			for i := range k.b {
				small.tokens = append(small.tokens, token{b: k.b[i : i+1]})
			}
		}
		s = shrinkScreen(shorten(small, bad), bad)
		if s.size() >= before {
			break
		}
	}
	return plainer(s, bad).join()
}

// shorten removes tokens: runs of halves, quarters and so on, down to one.
func shorten(s stream, bad func([]stream) []bool) stream {
	for n := (len(s.tokens) + 1) / 2; n >= 1; {
		var tries []stream
		for at := 0; at < len(s.tokens); at += n {
			t := s
			t.tokens = append(append([]token(nil), s.tokens[:at]...), s.tokens[min(at+n, len(s.tokens)):]...)
			tries = append(tries, t)
		}
		found := false
		for i, b := range bad(tries) {
			if b {
				s, found = tries[i], true
				break
			}
		}
		if !found {
			if n == 1 {
				break
			}
			n = (n + 1) / 2
		}
		n = min(n, max(1, len(s.tokens)))
		if len(s.tokens) == 0 {
			break
		}
	}
	return s
}

// shrinkScreen takes columns, rows and lines of scrollback away.
func shrinkScreen(s stream, bad func([]stream) []bool) stream {
	for {
		var tries []stream
		add := func(cols, rows, scrollback int) {
			if cols >= 2 && rows >= 1 && scrollback >= 0 {
				t := s
				t.cols, t.rows, t.scrollback = cols, rows, scrollback
				tries = append(tries, t)
			}
		}
		add(s.cols/2, s.rows, s.scrollback)
		if s.rows > 1 {
			add(s.cols, s.rows/2, s.scrollback)
		}
		if s.scrollback > 0 {
			add(s.cols, s.rows, s.scrollback/2)
		}
		add(s.cols-1, s.rows, s.scrollback)
		add(s.cols, s.rows-1, s.scrollback)
		if s.scrollback > 0 {
			add(s.cols, s.rows, s.scrollback-1)
		}
		found := false
		for i, b := range bad(tries) {
			if b {
				s, found = tries[i], true
				break
			}
		}
		if !found {
			return s
		}
	}
}

// plainer replaces digits by 1 and letters of text by x where that changes nothing.
func plainer(s stream, bad func([]stream) []bool) stream {
	for i := range s.tokens {
		k := s.tokens[i]
		if len(k.b) != 1 {
			continue
		}
		for _, c := range []byte{'x', '1', '2'} {
			if bytes.Equal(k.b, []byte{c}) {
				break
			}
			t := s
			t.tokens = append([]token(nil), s.tokens...)
			t.tokens[i] = token{b: []byte{c}}
			if bad([]stream{t})[0] {
				s = t
				break
			}
		}
	}
	return s
}

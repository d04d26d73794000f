package tty

import "unicode/utf8"

// Stripper turns a terminal's output into plain text: control sequences go, a
// carriage return before a line feed goes, one that would write over a line
// begins a new one instead, so that nothing that was shown is missing. Bytes
// that are no UTF-8 become U+FFFD. What it gives is safe to print to any
// terminal. The zero value is ready.
type Stripper struct {
	scan    scanner
	partial []byte // the beginning of a character
	column  bool   // something stands on the line
	cr      bool   // a carriage return came, and nothing since
	// Cut is set where the stream begins in the middle: the rest of a
	// character at its very beginning is left out, as it is nobody's.
	Cut bool
}

// Append appends the text of p to dst.
func (s *Stripper) Append(dst, p []byte) []byte {
	for len(p) > 0 {
		n, ev := s.scan.next(p)
		switch ev {
		case evText:
			dst = s.text(dst, p[:n])
		case evControl:
			dst = s.control(dst, p[n-1])
		}
		p = p[n:]
	}
	return dst
}

func (s *Stripper) text(dst, p []byte) []byte {
	for s.Cut && len(p) > 0 && !utf8.RuneStart(p[0]) {
		p = p[1:]
	}
	if len(p) > 0 {
		s.Cut = false
	}
	if len(s.partial) > 0 {
		p = append(s.partial, p...)
		s.partial = nil
	}
	for len(p) > 0 {
		// The plain bytes at a time: nearly everything is.
		n := 0
		for n < len(p) && p[n] < utf8.RuneSelf {
			n++
		}
		if n == 0 {
			if !utf8.FullRune(p) {
				s.partial = append([]byte(nil), p...)
				return dst
			}
			var r rune
			r, n = utf8.DecodeRune(p)
			if r == utf8.RuneError && n == 1 {
				dst = utf8.AppendRune(s.print(dst), utf8.RuneError)
				p = p[n:]
				continue
			}
			if r >= 0x80 && r < 0xa0 { // eight-bit controls, which some terminals obey
				p = p[n:]
				continue
			}
		}
		dst = append(s.print(dst), p[:n]...)
		p = p[n:]
	}
	return dst
}

// print is called before something is put on the line.
func (s *Stripper) print(dst []byte) []byte {
	if s.cr && s.column {
		dst = append(dst, '\n')
	}
	s.cr, s.column, s.Cut = false, true, false
	return dst
}

func (s *Stripper) control(dst []byte, b byte) []byte {
	dst = s.broken(dst)
	switch b {
	case '\n', '\v', '\f':
		s.cr, s.column = false, false
		dst = append(dst, '\n')
	case '\t':
		dst = append(s.print(dst), '\t')
	case '\r':
		s.cr = true
	}
	return dst
}

// broken gives up a character whose rest did not come.
func (s *Stripper) broken(dst []byte) []byte {
	if len(s.partial) > 0 {
		s.partial = nil
		dst = utf8.AppendRune(s.print(dst), utf8.RuneError)
	}
	return dst
}

// Flush ends the stream.
func (s *Stripper) Flush(dst []byte) []byte { return s.broken(dst) }

package tty

import "bytes"

// Queries takes out of output that is shown again what would make the terminal
// answer: whoever asked has long had an answer or given up, and the answer
// would arrive in the session as if it had been typed.
type Queries struct {
	scan scanner
	open []byte // the open sequence, or nothing once it is too long for a question
	pass bool   // the open sequence is passed on as it comes
}

// maxQuery is the longest sequence that is looked at as a whole. Longer ones
// are images and clipboards.
const maxQuery = 4 << 10

// Append appends p without its questions to dst. The beginning of a sequence
// waits for its end.
func (f *Queries) Append(dst, p []byte) []byte {
	for len(p) > 0 {
		begun, state := f.scan.begun, f.scan.state
		n, ev := f.scan.next(p)
		piece := p[:n]
		p = p[n:]
		if f.scan.begun != begun && state != stGround {
			// The sequence before was cut off by this one. It goes as it came,
			// but for this one's ESC, which could have been its end.
			var esc []byte
			if k := len(f.open); k > 0 && piece[0] != 0x1b {
				esc = []byte{0x1b}
				f.open = f.open[:k-1]
			}
			dst = f.flush(dst)
			f.open = append(f.open, esc...)
			f.pass = false
		}
		switch {
		case ev == evText:
			dst = append(dst, piece...)
			continue
		case state == stGround && ev == evControl && n == 1:
			if piece[0] != 0x05 { // ENQ asks as well
				dst = append(dst, piece...)
			}
			continue
		case f.pass && f.scan.open() && piece[n-1] == 0x1b:
			dst = append(dst, piece[:n-1]...)
			f.open = append(f.open, 0x1b)
		case f.pass:
			dst = append(f.flush(dst), piece...)
		default:
			f.open = append(f.open, piece...)
		}
		switch {
		case ev == evSequence:
			if !f.pass && asks(&f.scan.seq) {
				f.open = f.open[:0]
			}
			dst = f.flush(dst)
			f.pass = false
		case !f.scan.open():
			dst = f.flush(dst)
			f.pass = false
		case len(f.open) > maxQuery:
			dst = f.flush(dst)
			f.pass = true
		}
	}
	return dst
}

func (f *Queries) flush(dst []byte) []byte {
	dst = append(dst, f.open...)
	f.open = f.open[:0]
	return dst
}

// Flush appends what waits for its end, for when no more is shown again.
func (f *Queries) Flush(dst []byte) []byte { return f.flush(dst) }

// asks reports whether a terminal answers q.
func asks(q *sequence) bool {
	switch q.kind {
	case kindESC:
		return len(q.inter) == 0 && q.final == 'Z' // DECID
	case kindDCS:
		// DECRQSS and XTGETTCAP
		return q.final == 'q' && (string(q.inter) == "$" || string(q.inter) == "+")
	case kindAPC:
		return bytes.HasPrefix(q.data, []byte("G")) // kitty's images are confirmed
	case kindOSC:
		number, rest, _ := bytes.Cut(q.data, []byte{';'})
		switch string(number) {
		case "4", "5", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "52", "60", "61", "99", "5522":
			return bytes.HasSuffix(rest, []byte("?")) || bytes.Contains(rest, []byte(";?;")) || bytes.HasPrefix(rest, []byte("?;"))
		case "21", "22":
			return bytes.Contains(rest, []byte("?"))
		}
		return false
	}
	inter := string(q.inter)
	switch q.final {
	case 'c': // DA1, DA2, DA3
		return inter == "" && q.prefix != '?'
	case 'n': // DSR, CPR; with > it switches something off
		return inter == "" && (q.prefix == 0 || q.prefix == '?')
	case 'p': // DECRQM
		return inter == "$"
	case 'q': // XTVERSION
		return q.prefix == '>' && inter == ""
	case 'u': // the kitty keyboard's flags
		return q.prefix == '?' && inter == "" || inter == "$" || inter == "&"
	case 'x': // DECREQTPARM
		return inter == "" && q.prefix == 0
	case 'm': // XTQMODKEYS
		return q.prefix == '?'
	case 'g': // XTQFMTKEYS
		return q.prefix == '?'
	case 'w': // DECRQPSR
		return inter == "$"
	case 'y': // DECRQCRA
		return inter == "*"
	case '|': // DECRQLP
		return inter == "'"
	case 'S': // XTSMGRAPHICS
		return q.prefix == '?'
	case 't': // reports of the window
		n := q.param(0, 0)
		return inter == "" && q.prefix == 0 && n >= 11 && n <= 21
	}
	return false
}

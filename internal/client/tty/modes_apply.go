package tty

import (
	"bytes"
	"strconv"
)

// set notes that entry k of a set of changes is, or is no longer, changed.
func set(m *map[int]bool, k int, changed bool) {
	if !changed {
		delete(*m, k)
		return
	}
	if *m == nil {
		*m = map[int]bool{}
	}
	(*m)[k] = true
}

// control follows the controls that change more than the cursor's place.
func (m *Modes) control(b byte) {
	switch b {
	case 0x0e:
		m.shift = true
	case 0x0f:
		m.shift = false
	}
}

// apply follows one sequence.
func (m *Modes) apply(q *sequence) {
	switch q.kind {
	case kindESC:
		m.applyESC(q)
	case kindCSI:
		m.applyCSI(q)
	case kindOSC:
		m.applyOSC(q.data)
	}
}

func (m *Modes) applyESC(q *sequence) {
	if len(q.inter) == 1 {
		switch i := q.inter[0]; i {
		case '(', ')', '*', '+':
			g := &m.charsets[i-'(']
			if *g = q.final; q.final == 'B' {
				*g = 0
			}
		case '%':
			m.notUTF8 = q.final == '@'
		}
		return
	}
	if len(q.inter) > 0 {
		return
	}
	switch q.final {
	case '=':
		m.keypad = true
	case '>':
		m.keypad = false
	case 'n', 'o':
		m.shift = true
	case 'c': // everything begins anew
		*m = Modes{Rows: m.Rows, scan: m.scan}
	}
}

func (m *Modes) applyCSI(q *sequence) {
	switch {
	case q.is('?', "", 'h'), q.is('?', "", 'l'):
		for i := range q.params {
			m.setPrivate(q.param(i, 0), q.final == 'h')
		}
	case q.is('?', "", 's'):
		for i := range q.params {
			n := q.param(i, 0)
			set(&m.saved, n, m.private[n])
		}
	case q.is('?', "", 'r'):
		for i := range q.params {
			n := q.param(i, 0)
			m.setPrivate(n, m.saved[n] != defaultOn[n])
		}
	case q.is(0, "", 'h'), q.is(0, "", 'l'):
		for i := range q.params {
			switch n := q.param(i, 0); n {
			case 2, 4, 20: // keyboard locked, insert, newline
				set(&m.ansi, n, q.final == 'h')
			}
		}
	case q.is(0, "", 'm'):
		m.style.apply(q)
	case q.is(0, "", 'r'):
		bottom := q.param(1, 0)
		m.region = q.param(0, 1) > 1 || bottom > 0 && (m.Rows == 0 || bottom < m.Rows)
	case q.is(0, " ", 'q'):
		m.cursor = q.param(0, 0) != 0
	case q.is('!', "", 'p'), q.is(0, "!", 'p'):
		m.softReset()
	case q.is(0, "", 't'):
		m.window(q)
	case q.prefix == '>' && len(q.inter) == 0 && (q.final == 'm' || q.final == 'n' || q.final == 'f'):
		m.keyResource(q)
	case q.is('>', "", 'u'), q.is('<', "", 'u'), q.is('=', "", 'u'):
		m.kittyKeys(q)
	}
}

// setPrivate follows one private mode.
func (m *Modes) setPrivate(n int, on bool) {
	switch {
	case n == 47 || n == 1047 || n == 1049:
		if m.alternate = 0; on {
			m.alternate = n
		}
	case n == 66: // the same switch as ESC = and ESC >
		m.keypad = on
	case !notFollowed[n]:
		set(&m.private, n, on != defaultOn[n])
	}
}

// softReset follows DECSTR.
func (m *Modes) softReset() {
	for _, n := range []int{1, 6, 7, 25, 69} {
		set(&m.private, n, false)
	}
	m.ansi, m.keypad, m.region, m.shift = nil, false, false, false
	m.charsets = [4]byte{}
	m.style = style{}
}

// window follows the stack of titles.
func (m *Modes) window(q *sequence) {
	switch q.param(0, 0) {
	case 22:
		m.titles = min(m.titles+1, titleStack)
	case 23:
		switch {
		case m.titles > 0:
			m.titles--
		case m.titled:
			// Our own went: the next title needs another one below it.
			m.titled = false
		}
	}
}

// keyResource follows XTMODKEYS and XTFMTKEYS.
func (m *Modes) keyResource(q *sequence) {
	switch q.final {
	case 'm', 'f':
		table := &m.modifyKeys
		if q.final == 'f' {
			table = &m.formatKeys
		}
		if len(q.params) == 0 {
			*table = nil
			return
		}
		// Resource 4, which is modifyOtherKeys, starts as 0; the others start
		// with a value of their own.
		n, value := q.param(0, 0), q.param(1, -1)
		set(table, n, value > 0 || value == 0 && n != 4)
	case 'n': // disabled, which is not what terminals start with
		set(&m.modifyKeys, q.param(0, 2), true)
	}
}

// kittyKeys follows the kitty keyboard protocol; each screen has its own stack.
func (m *Modes) kittyKeys(q *sequence) {
	k := &m.kitty[0]
	if m.alternate != 0 {
		k = &m.kitty[1]
	}
	switch q.prefix {
	case '>':
		k.depth = min(k.depth+1, kittyStack)
	case '<':
		if k.depth -= max(q.param(0, 1), 1); k.depth < 0 {
			*k = kittyKeys{} // an empty stack has no flags
		}
	case '=':
		if k.depth > 0 {
			return // goes with its entry
		}
		switch flags := q.param(0, 0); q.param(1, 1) {
		case 1:
			k.base = flags
		case 2:
			k.base |= flags
		case 3:
			k.base &^= flags
		}
	}
}

// applyOSC follows the strings that change how the terminal looks.
func (m *Modes) applyOSC(data []byte) {
	number, rest, _ := bytes.Cut(data, []byte{';'})
	n, err := strconv.Atoi(string(number))
	if err != nil {
		return
	}
	switch {
	case n == 4 || n == 5: // pairs of a colour's index and its value
		for f := bytes.Split(rest, []byte{';'}); len(f) >= 2; f = f[2:] {
			if string(f[1]) != "?" {
				set(&m.colours, n, true)
			}
		}
	case n >= 10 && n <= 19: // values for this number and those after it
		for i, v := range bytes.Split(rest, []byte{';'}) {
			if n+i <= 19 && len(v) > 0 && string(v) != "?" {
				set(&m.colours, n+i, true)
			}
		}
	case n == 104 || n == 105:
		if len(rest) == 0 { // else a few colours of many
			set(&m.colours, n-100, false)
		}
	case n >= 110 && n <= 119:
		set(&m.colours, n-100, false)
	case n == 8:
		_, target, _ := bytes.Cut(rest, []byte{';'})
		m.link = len(target) > 0
	case n == 9:
		if state, ok := bytes.CutPrefix(rest, []byte("4;")); ok {
			m.progress = len(state) > 0 && state[0] != '0'
		}
	case n == 22:
		m.pointer = len(rest) > 0 && string(rest) != "default"
	}
}

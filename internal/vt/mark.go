package vt

import "bytes"

// mark is one OSC 133: where a prompt, a command or its output begins, or a
// command ends.
type mark struct {
	kind byte   // 'A' to 'D'
	data string // parameters, with the ';' before them
}

func (m mark) append(dst []byte) []byte {
	dst = append(dst, "\x1b]133;"...)
	dst = append(dst, m.kind)
	dst = append(dst, m.data...)
	return append(dst, "\x1b\\"...)
}

// promptMark is OSC 133: it marks the row of the cursor.
func (t *Terminal) promptMark(b []byte) {
	if len(b) == 0 || b[0] < 'A' || b[0] > 'D' || len(b) > 1 && b[1] != ';' {
		return
	}
	m := mark{kind: b[0], data: limited(b[1:], maxMarkData)}
	r := t.line()
	if len(r.marks) < maxMarks {
		// Rows are copied by value nowhere, but their marks are shared
		// with nobody either.
		r.marks = append(r.marks[:len(r.marks):len(r.marks)], m)
	}
	t.event(Event{Kind: EventMark, Text: string(b[:1]) + m.data, Data: bytes.Clone([]byte(t.cwd))})
}

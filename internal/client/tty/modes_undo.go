package tty

import (
	"fmt"
	"maps"
	"slices"
)

// Undo returns what to write to the terminal so that it is again as it was
// before the output: nothing at all where the output changed nothing. Modes is
// afterwards as new.
func (m *Modes) Undo() []byte {
	var b []byte
	add := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	// What is held back was never written; but for that, an open sequence would
	// swallow what follows.
	unwritten := len(m.held) > 0 && !m.scan.cut && (m.scan.state == stEsc || m.scan.state == stOSC)
	if m.scan.open() && !unwritten {
		add("\x18")
	}
	if m.private[2026] { // first of all, so that the rest is shown
		add("\x1b[?2026l")
		delete(m.private, 2026)
	}
	if m.alternate != 0 {
		m.kitty[1].undo(add)
		// Going back restores the cursor with the style, charsets and origin
		// mode of that time, so these are undone after it.
		add("\x1b[?%dl", m.alternate)
	}
	m.kitty[0].undo(add)
	for _, n := range slices.Sorted(maps.Keys(m.modifyKeys)) {
		add("\x1b[>%dm", n)
	}
	for _, n := range slices.Sorted(maps.Keys(m.formatKeys)) {
		add("\x1b[>%df", n)
	}
	if m.private[69] || m.region {
		// Both send the cursor to the corner.
		add("\x1b7")
		if m.private[69] {
			add("\x1b[?69l")
			delete(m.private, 69)
		}
		if m.region {
			add("\x1b[r")
		}
		add("\x1b8")
	}
	if m.private[6] { // so does this, and it is saved with the cursor
		add("\x1b[?6l\x1b[999;1H")
		delete(m.private, 6)
	}
	for _, n := range slices.Sorted(maps.Keys(m.private)) {
		if defaultOn[n] {
			add("\x1b[?%dh", n)
		} else {
			add("\x1b[?%dl", n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(m.ansi)) {
		add("\x1b[%dl", n)
	}
	if m.keypad {
		add("\x1b>")
	}
	for i, c := range m.charsets {
		if c != 0 {
			add("\x1b%cB", '('+i)
		}
	}
	if m.shift {
		add("\x0f")
	}
	if m.notUTF8 {
		add("\x1b%%G")
	}
	if m.style.changed() {
		add("\x1b[m")
	}
	if m.link {
		add("\x1b]8;;\x1b\\")
	}
	for _, n := range slices.Sorted(maps.Keys(m.colours)) {
		add("\x1b]%d\x1b\\", n+100)
	}
	if m.pointer {
		add("\x1b]22;default\x1b\\")
	}
	if m.progress {
		add("\x1b]9;4;0\x1b\\")
	}
	if m.cursor {
		add("\x1b[0 q")
	}
	if m.titled {
		m.titles++
	}
	for range m.titles {
		add(popTitle)
	}
	*m = Modes{Rows: m.Rows}
	return b
}

// undo takes off what was pushed and clears what was set without a push.
func (k kittyKeys) undo(add func(string, ...any)) {
	if k.depth > 0 {
		add("\x1b[<%du", k.depth)
	}
	if k.base != 0 {
		add("\x1b[=0;1u")
	}
}

// Alternate reports whether the output is on the alternate screen.
func (m *Modes) Alternate() bool { return m.alternate != 0 }

// Reporting reports whether the terminal now writes by itself, or in other
// forms than usual, so that some of it may still be on its way.
func (m *Modes) Reporting() bool {
	for _, n := range reporting {
		if m.private[n] {
			return true
		}
	}
	return m.kitty != [2]kittyKeys{} || len(m.modifyKeys) > 0
}

// Package tty is about the user's own terminal while it shows a session: raw
// mode and its undoing, the detach key, what the session's output changed of
// the terminal, and text without control sequences for those who are none.
//
// Attach owns three goroutines and waits for them: keyboard reads input and
// looks for the detach key, screen writes output, and window follows signals.
// A panic in any of them comes out of Attach, after the terminal is restored.
//
// Locks: Terminal.mu guards the terminal's settings and is held over the ioctl
// that changes them, which does not wait for the terminal. No other lock is
// taken inside it. See DESIGN.md.
package tty

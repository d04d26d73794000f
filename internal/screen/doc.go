// Package screen makes a session's screen when somebody asks for it: it plays the
// kept output to an emulator (internal/vt), with the resizes at their places, and
// keeps the emulator for a while, so that the next question plays only what is new.
//
// It has no goroutine. The caller's goroutine plays, at most two at a time in
// the daemon, and others wait as long as their contexts live. Who keeps a Cache
// calls Expire now and then. The output's own way knows nothing of this package.
//
// Bounds: emulators that are kept take at most CacheBytes by an estimate (16
// bytes a cell and 2 MiB), and those being played, two, come on top. What the
// estimate leaves out are links (4 MiB at most) and a sequence that is open (1 MiB).
// Screens of more than MaxCells are refused.
//
// Lock order: an entry's turn, then a place to play, then Cache.mu, which is held
// over nothing else.
package screen

// Package buffer keeps the output of one session: an append-only log with
// absolute 64-bit offsets, of which a ring in a memfd holds the newest part.
//
// One goroutine appends (the reading thread of ptymgr); any number of readers
// pull by their own offset and are told when there is more. Nobody pushes into
// a reader, a reader never blocks the writer, and waiting compares offsets
// (level-triggered), so a wake-up cannot be lost. A reader that fell out of
// the ring gets an *EvictedError: there is never a silent gap.
//
// The package starts no goroutine. Lock order: Ring.life (held by readers
// while they copy, by Close), then Ring.mu (guards the waiters' channel only).
// DESIGN.md has the layout of the memfd.
package buffer

// Package baseline is the server that ptyd is measured against: the least Go
// code that moves bytes between terminals and WebSocket viewers. It has no
// login, no scrollback, no limits, and a slow viewer holds up its session. It
// exists for comparison and is never part of the daemon.
//
// Goroutines: one a session reads the terminal and writes to each viewer in
// turn, and one waits for the program; net/http's one a viewer reads its input.
// The process ends as a whole when its standard input closes.
//
// Locks: Server.mu, then session.mu; neither is taken under the other.
package baseline

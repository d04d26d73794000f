// Package ws serves ptyd.v1 on WebSockets, over TCP and over the Unix socket,
// and dials it for the command line. internal/wire has the frames.
//
// Goroutines and their owners. A connection has two, owned by the Server, whose
// Shutdown returns after they ended: one reads (and acts on what it reads), one
// writes. The reading thread of ptymgr may write too, where a connection is
// idle: see DESIGN.md for the token that makes this safe. A Client (the
// dialler's end) has none of its own.
//
// Lock order: Server.mu, then conn.mu. conn.mu is held for a few assignments,
// never over I/O, a copy of output, or a call into another package.
package ws

// Package client speaks to a ptyd daemon: the REST API over its Unix socket or
// over the network, and the frames of ptyd.v1 for terminals. It is what the
// command line is made of.
//
// A Client has no goroutine of its own beyond those of net/http's idle
// connections, which Close ends. A Stream owns one goroutine, run, which keeps
// one connection after another; run owns, for each connection, the goroutine
// send, and waits for it before it turns to the next. Close waits for run.
//
// Lock order: Stream.mu is the only lock, and nothing is sent, received or
// called back while it is held.
package client

// Package daemon builds the daemon from its configuration, starts its parts in
// order and stops them in the reverse one. It is the only package that wires:
// parts that must not know each other meet by the adapters here.
//
// Goroutines, all owned by the Daemon, whose Stop returns after they ended: one
// http.Server per listener and the housekeeper. Run adds one while it stops, and
// waits for it.
// Daemon.mu guards the configuration and is held over nothing else.
package daemon

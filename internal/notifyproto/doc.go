// Package notifyproto is the language between keeper and worker: datagrams of
// sd_notify that carry descriptors, and the shared memory in which the keeper
// writes down how processes ended.
//
// It is systemd's own protocol and not one of ptyd's, so that a keeper can pass
// on what it hears, word for word, to the service manager above it, and the
// worker needs no second way of speaking for the case that there is one.
//
// The package starts no goroutine that outlives a call; Server.Watch runs in
// its caller's. There is no lock. A Conn may be used by any number of
// goroutines. A Server has one reader. Exits has one writer (the keeper) and
// one consumer (the worker), in two processes; Find may be called by anybody.
//
// DESIGN.md has the keys and the layout of the memory.
package notifyproto

// Package ptymgr owns the sessions: it creates, lists, resizes, writes to,
// waits for and ends processes in PTYs. It knows no transport and no SQL.
//
// Goroutines and their owners. The Manager owns all of them and Shutdown
// returns after they ended:
//   - the reading thread (loop.run, locked to its thread): reads every PTY
//     through one epoll set, one read a session and turn, into the session's
//     ring, and offers the bytes to the followers; it takes no lock that is
//     held over I/O, a parse or an allocation of unbounded size;
//   - the scribe: writes ends and sizes of sessions to the store;
//   - the sweeper: removes sessions that ended long enough ago, and the oldest
//     ended ones where their output is too much in all; a second goroutine
//     ends its waiting at shutdown;
//   - the archivist: writes output to the disk, and removes what it wrote; it
//     reads the rings by offset like any viewer, so the reading thread knows
//     nothing of it;
//   - for each creation in flight one or two that write its row, awaited by it;
//   - one goroutine for each Close in flight, owned by its caller.
//
// Lock order: Manager.mu, Session.mu, input.mu, Session.fdmu, loop.mu; groups.mu, lookout.mu,
// archivist.mu and shelf.mu are held alone. No two
// sessions' locks are held at once, and none of them is held while a follower,
// the store or the hub is called. Session.fdmu is held (shared) over system
// calls on the master that never block, so that the descriptor's number cannot
// be used again under them; only the reading thread closes it.
//
// DESIGN.md says how output, input, sizes and ends travel.
package ptymgr

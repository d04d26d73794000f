// Package depcache gets or creates: one build runs per key however many ask,
// and everybody gets its value or its error. It holds what is costly to make
// and is shared by key, such as an opened database.
//
// What holds:
//   - Errors and panics of a build are handed to all who waited and are not
//     kept: the next Get builds again.
//   - A waiter may give up alone; only when the last one has, the build's
//     context ends. No build runs while another one of its key does.
//   - The same key with other settings is a *ConflictError, at once.
//   - Invalidate during a build discards the late result; who waited for it
//     builds anew.
//   - A value is closed once, after its last user has released it.
//   - A build runs outside every lock and may Get other keys. Needing its own
//     key, through any chain of builds that pass their context on, is
//     ErrRecursive instead of waiting for itself for ever.
//
// xsync's map computes under a bucket's lock, so it never runs a build: it
// stores cells, and the value is made in its cell.
//
// Goroutines: one for each build, owned by the Cache; Close waits for them. A
// build that ignores its context delays Close. Locks: Cache.mu and cell.mu are
// leaves: nothing else is locked or called while one is held.
package depcache

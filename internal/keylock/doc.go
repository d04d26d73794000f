// Package keylock locks by key: callers of one key follow each other, callers
// of different keys do not meet. Locks are counted, so the set holds only keys
// that somebody has or waits for, and waiting takes a context.
//
// The package has no goroutine. Locks.mu is held over nothing but the map;
// callers order their own keys.
package keylock

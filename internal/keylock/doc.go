// Package keylock gives one lock per key: counted, so that the set does not
// grow, and with a context, so that a waiter may give up. It starts no
// goroutine. Locks.mu is held for map operations only, never while waiting.
package keylock

// Package fdstore is the worker's half of surviving: it takes the descriptors
// that the keeper (or a service manager behind it) holds, tells them apart by
// what they are, and stores new ones. It speaks only the sd_notify protocol.
//
// The package starts no goroutine. Store.mu guards the maps and the counter;
// it is not held while a message is sent.
package fdstore

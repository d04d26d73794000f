// Package events tells watchers that something changed. An event carries no
// state, only what to read again, so a lost or merged event loses nothing: a
// watcher that is behind by a thousand changes of one session learns of one.
//
// The hub has no goroutine; Publish runs in its caller and never waits for a
// watcher. Lock order: Hub.mu, then Subscription.mu. Nothing else is called
// while either is held.
package events

// Package stats reduces samples to the few numbers that a report shows. It is
// pure: no goroutine, no lock.
package stats

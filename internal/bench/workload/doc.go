// Package workload is what runs inside the terminals while they are measured:
// the same program on both servers. Its output is a function of the position
// alone, so a reader can check any part of it, whatever was left out before.
// One goroutine, no lock.
package workload

// Package procfs reads what Linux says about processes and the machine: the
// memory, threads and processor time of a server, and which processes make it
// up. It holds no state, no goroutine and no lock.
package procfs

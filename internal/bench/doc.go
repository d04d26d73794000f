// Package bench measures the shipped daemon beside the least server that could
// do the same work (package baseline), in pairs, in the same run, on the same
// machine. It reports ratios and compares them to bars; it never fails on a
// time, because a time depends on the machine.
//
// Every server is a process of its own. The bench binary plays all other parts
// by running itself again (roles.go): the baseline server, the programs inside
// the terminals (package workload), and the viewers of the flooding sessions.
//
// Both servers are driven through the same two interfaces (target, viewer), so
// that a measurement is written once. What a viewer receives is checked: every
// byte's position, and a checksum over every contiguous part; parts that the
// server declared as skipped are counted.
//
// Goroutines: a measurement starts and awaits its own. A viewer belongs to one
// reading goroutine at a time; its input may come from another one. A process
// has one goroutine that waits for it, ended by stop.
//
// Locks: ptydViewer.mu (writing to one socket) only; nothing is taken under it.
package bench

// Package doctor looks at what a daemon needs to work well, with a running
// daemon and without one, and says of each thing how it is, why it matters and
// what to do. It changes nothing that stays. It has no goroutines and no locks.
package doctor

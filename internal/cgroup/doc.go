// Package cgroup gives each session a cgroup of its own (cgroup v2), where the
// kernel and whoever started the daemon allow that: a session's processes can
// then be ended all at once, whatever they did to get away, be bounded, and be
// measured. It knows no sessions: groups have names.
//
// A daemon has one subtree, named after its state directory, below the cgroup
// that it was started in, and touches nothing outside of it. Nothing here is
// fatal: Open says why there is no subtree, and callers go on without.
//
// No goroutines and no locks: a Tree does not change once it is open, and a
// Group is a path. Source for the files' formats:
// Documentation/admin-guide/cgroup-v2.rst of the kernel.
package cgroup

// Package wire is the codec of the protocol ptyd.v1: frames, their header and
// the JSON payloads of control frames. DESIGN.md beside this file has the byte
// tables and the meaning of every frame; testdata/vectors.json freezes the
// numbers, and the page's mirror is tested against the same file.
//
// The package is pure: it has no goroutine, no lock and no I/O.
package wire

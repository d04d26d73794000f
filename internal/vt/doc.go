// Package vt is a terminal emulator without a terminal: it reads what a program
// prints and knows the screen that a person would see, exactly as the xterm.js
// that the page ships lays it out, in rows, attributes, cursor, modes, scrollback
// and wrapped lines.
//
// It is pure. It starts no goroutine, reads no clock, does no I/O and holds no
// lock: the owner of a Terminal serialises all calls, reads included.
//
// The result of a stream never depends on how it was cut into Writes. No stream
// can make it panic, grow beyond its limits (limits.go) or hold the CPU longer
// than its bytes are worth.
//
// DESIGN.md has the layout of the memory, the form of a snapshot and the places
// where it departs from xterm.js on purpose.
package vt

//go:generate node gen/tables.cjs

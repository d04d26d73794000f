// Package oracle holds the tests that compare internal/vt with the reference:
// @xterm/headless with the Unicode addon that the page activates, both at the
// page's versions. It has no code of its own.
//
// oracle.cjs runs under node, reads cases and answers with everything that
// xterm.js knows: cells, attributes, links, wrap flags, scrollback, cursor,
// saved cursors, region, tab stops, charsets, modes, title, replies. The tests
// play random and recorded streams on both and compare; a stream that differs
// is made as short as it can be and printed as a Go string with its seed.
//
// The files: reference_test.go runs node; stream_test.go, tokens_test.go and
// text_test.go make random streams; compare_test.go names differences;
// minimise_test.go shortens; faults_test.go lists what xterm.js does wrong and
// vt does otherwise, each with a test that it still does.
//
//	go test ./internal/vt/oracle -seed 7 -streams 100000
//	go test ./internal/vt/oracle -run Recorded -record   # testdata anew
//
// -streams 0, the default, is the short form; PTYD_TORTURE=1 the long one.
// There are no goroutines but the two of the process that node is in, which end
// with it, and no locks but the one that hands the process out.
package oracle

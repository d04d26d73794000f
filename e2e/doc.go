// Package e2e holds the tests that start the real binary: real shells and
// programs in real terminals, real sockets, real signals. It has no code
// outside of its tests.
//
// TestMain builds the daemon twice: with -race and the tag ptydtest for nearly
// all tests, and as it ships (static, without failpoints) for the smoke run
// and for measurements of memory. Each test has a daemon and a state directory
// of its own; whatever process a test leaves behind fails it. Nothing waits by
// sleeping: `eventually` looks again until a condition holds or a generous
// limit has passed, and says what it waited for.
//
// The tests talk to the daemon by the codec of internal/wire over a WebSocket
// of their own, not through the product's client: a mistake made twice would
// hide itself. Random choices come from one seed, printed at the start; -seed
// repeats a run. The short forms run by default; -torture or PTYD_TORTURE=1
// (make torture) runs the full numbers.
//
// The folder browser holds the suite that drives Chromium against the daemon.
package e2e

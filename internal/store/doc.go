// Package store is all SQL of ptyd: users and their credentials, sessions, the
// audit log. It implements the stores that auth and ptymgr declare.
//
// The database is SQLite in the state directory. One SQL text serves every
// engine, with $n placeholders; what differs stands in the dialect. A second
// engine needs a dialect and passes the same conformance tests.
//
// Writing: one handle with one connection, whose transactions begin immediate,
// so that no transaction reads before it may write. What decides and what is
// decided is one transaction, and where one statement can do both, it does. A
// transaction that began runs to its end whatever happens to its caller: a
// caller who gives up waits no longer for the connection, but never leaves half
// a change. Reading: a second handle that cannot write and, thanks to the
// write-ahead log, never waits.
//
// Every read-before-write path answers problem.NotFound for an absent row. A
// full disk is problem.DiskFull.
//
// Goroutines: one per Store, the batcher's, which commits audit entries and
// uses of tokens in groups; Close drains it and waits for its end. The lock
// batcher.mu is held over nothing but its queue, statements.mu over nothing but its maps.
//
// Each aggregate has its file: users, groups, tokens, weblogins, links,
// sessions, audit.
package store

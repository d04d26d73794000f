// Package auth says who calls and what they may do. It knows no HTTP and no
// SQL: callers hand it a secret or a uid and get a Principal, and what must
// last is kept by the Store that the package declares.
//
// Rights stand in one table (roles.go). A principal's role is the lesser of
// what its credential was made for and what its user has now, so lowering a
// user's role lowers every token of theirs at once.
//
// Secrets are 32 random bytes each and are kept as SHA-256 only; a lookup by
// that hash needs no constant-time comparison, since whoever can steer the hash
// already knows the secret. Passwords are kept as argon2id.
//
// What a credential opened ends with it: connections register by Bind, and
// revoking, expiring, disabling or changing a role cancels them.
//
// The package has no goroutine of its own; the timers of Bind end with their
// binding. Locks: Service.bindings.mu, Service.tickets.mu and limiter.mu are
// each taken alone, and neither a callback, a store call nor a hash runs under
// one.
package auth

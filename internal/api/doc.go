// Package api is the HTTP face of the daemon: the JSON API under /v1, health,
// metrics and the page. One table (routes.go) lists every endpoint; the mux,
// the check of rights, the OpenAPI document and the tests are made from it.
//
// A request passes, in this order: the allow-list of host names (host.go), the
// base path, the route's method and pattern, its credential (credentials.go),
// the origin where a browser may be behind it (origin.go), and the role. Only
// then is its body read.
//
// The package has no goroutine of its own. Locks: refusals.mu and staticPage.mu are
// each taken alone, and nothing is called while one is held.
package api

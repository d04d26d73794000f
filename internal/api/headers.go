package api

import (
	"net/http"
	"strings"
)

// securityHeaders are on every response: JSON that a browser is tricked into
// opening must not become a page, and no other site may frame or read any of it.
// trustworthy tells that the browser sees a secure context: elsewhere it would
// ignore the opener policy and complain about it on every load of the page.
func securityHeaders(h http.Header, trustworthy bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if trustworthy {
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
}

// pagePolicy is the content security policy of the page. Scripts come from the
// daemon's files alone, never inline; so do styles, which the page adds by the
// CSSOM where the terminal would write <style> elements. No string becomes
// markup or code by any of the browser's ways to do that (trusted types).
func (s *Server) pagePolicy(r *http.Request) string {
	// Older browsers do not count a WebSocket of the same host as 'self'.
	connect := []string{"'self'"}
	if _, viaSocket := peer(r.Context()); !viaSocket {
		for _, o := range s.hosts.origins(r) {
			connect = append(connect, "ws"+strings.TrimPrefix(o, "http"))
		}
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"img-src 'self'",
		"font-src 'self'",
		"connect-src " + strings.Join(connect, " "),
		"manifest-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ptyd/ptyd/internal/problem"
)

// checkOrigin refuses what a page of another origin makes a browser send. A
// browser always tells the origin of what changes something and of a WebSocket,
// and newer ones tell by Sec-Fetch-Site for everything on a secure origin; what
// says nothing is no browser. strict is for credentials that a browser adds by
// itself: then somebody must have said something.
func (s *Server) checkOrigin(r *http.Request, strict bool) error {
	site, origin := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	if len(site) > 1 || len(origin) > 1 {
		return originProblem("sends Origin or Sec-Fetch-Site twice")
	}
	// "none" is a person who typed the address; pages of ours say same-origin,
	// and same-site is a server on another port of this host.
	if len(site) == 1 && site[0] != "same-origin" {
		return originProblem("comes from another origin (Sec-Fetch-Site: " + clip(site[0]) + ")")
	}
	if len(origin) == 1 && !slices.Contains(s.hosts.origins(r), strings.ToLower(origin[0])) {
		return originProblem("comes from the origin " + clip(origin[0]))
	}
	if strict && len(origin) == 0 && (len(site) == 0 || isUpgrade(r)) && (isUpgrade(r) || !isSafe(r.Method)) {
		return originProblem("does not tell its origin")
	}
	return nil
}

func originProblem(what string) error {
	return problem.New(problem.OriginRefused, "the request %s", what).
		WithHint("behind a proxy, set public_url to the address people use")
}

func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

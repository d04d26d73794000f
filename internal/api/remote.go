package api

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// maxForwards bounds how many proxies' entries are looked at.
const maxForwards = 32

// proxies are the networks whose word about a request's origin counts.
type proxies []netip.Prefix

func newProxies(networks []string) (proxies, error) {
	var out proxies
	for _, n := range networks {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, fmt.Errorf("trusted_proxies: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

func (p proxies) trusts(a netip.Addr) bool {
	for _, n := range p {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// remoteAddr is the address of whoever sent a request, without a port; "" on
// the Unix socket. Behind proxies that are trusted it is the last address in
// X-Forwarded-For that is none of theirs: each proxy appends whom it got the
// request from, so all to the left of that one is the sender's own invention.
func (s *Server) remoteAddr(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	at, err := netip.ParseAddr(host)
	if err != nil || !s.proxies.trusts(at.Unmap()) {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for n := range min(len(hops), maxForwards) {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1-n]))
		if err != nil {
			break // a proxy that says nothing of use: its own address, then
		}
		hop = hop.Unmap().WithZone("")
		host = hop.String()
		if !s.proxies.trusts(hop) {
			break
		}
	}
	return host
}

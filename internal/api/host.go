package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hosts decides by which names the daemon may be addressed over TCP. Without
// it a page of another site whose name was pointed at this machine (DNS
// rebinding) would be of the daemon's own origin.
type hosts struct {
	tls      bool
	port     string          // of the TCP listener
	loopback bool            // the loopback names reach the listener
	listen   string          // "name:port" of the listener; "" when it listens on all addresses
	exact    map[string]bool // configured "name:port"
	anyPort  map[string]bool // configured "name"
	public   *url.URL        // nil when none
}

// newHosts makes the list from the address that is listened on and from what
// the configuration adds.
func newHosts(addr string, tls bool, allowed []string, publicURL string) (*hosts, error) {
	h := &hosts{tls: tls, exact: map[string]bool{}, anyPort: map[string]bool{}}
	if addr != "" {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		h.port = port
		ip, err := netip.ParseAddr(host)
		switch {
		case host == "" || err == nil && ip.IsUnspecified():
			// Which of the machine's addresses a client used is known by request.
			h.loopback = true
		case strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback():
			h.loopback = true
			h.listen = canonicalHost(addr, tls)
		default:
			h.listen = canonicalHost(addr, tls)
		}
	}
	for _, a := range allowed {
		if _, port, err := net.SplitHostPort(a); err == nil && port != "" {
			h.exact[canonicalHost(a, tls)] = true
		} else {
			h.anyPort[hostName(a)] = true
		}
	}
	if publicURL != "" {
		u, err := url.Parse(publicURL)
		if err != nil {
			return nil, err
		}
		h.public = u
	}
	return h, nil
}

// allows reports whether r's Host is one of the daemon's names. Headers that a
// proxy adds are not looked at: anybody can send them.
func (h *hosts) allows(r *http.Request) bool {
	if r.Host == "" {
		return false
	}
	host := canonicalHost(r.Host, h.tls)
	name := hostName(r.Host)
	if host == h.listen || h.exact[host] || h.anyPort[name] {
		return true
	}
	if h.public != nil && canonicalHost(r.Host, h.public.Scheme == "https") == canonicalHost(h.public.Host, h.public.Scheme == "https") {
		return true
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil || port != h.port {
		return false
	}
	if h.loopback && (name == "localhost" || name == "127.0.0.1" || name == "::1") {
		return true
	}
	// An address cannot be rebound. It must be the one the connection came in
	// by, for one that belongs to another machine is no name of this one.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ip, err := netip.ParseAddr(name)
	lp, lerr := netip.ParseAddrPort(local.String())
	return err == nil && lerr == nil && ip.Unmap() == lp.Addr().Unmap().WithZone("")
}

// origins returns the origins that pages of this daemon have when they are
// addressed as r is. Host was allowed before.
func (h *hosts) origins(r *http.Request) []string {
	scheme := "http"
	if h.tls {
		scheme = "https"
	}
	origins := []string{scheme + "://" + strings.ToLower(r.Host)}
	// Behind a proxy that ends TLS and passes Host on, pages have https where
	// this listener has http. Only names that were configured are behind one.
	if !h.tls && (h.anyPort[hostName(r.Host)] || h.exact[canonicalHost(r.Host, false)] || h.exact[canonicalHost(r.Host, true)]) {
		origins = append(origins, "https://"+strings.ToLower(r.Host))
	}
	if h.public != nil {
		origins = append(origins, h.public.Scheme+"://"+h.public.Host)
	}
	return origins
}

// secure reports whether the browser reached the daemon by https, as far as
// this can be known without trusting a header.
func (h *hosts) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return h.public != nil && h.public.Scheme == "https" && strings.EqualFold(r.Host, h.public.Host)
}

// trustworthy reports whether the browser counts the page's origin as secure:
// by https, by a loopback name, or because it sent what it only sends to those
// (a proxy may end TLS without this daemon knowing).
func (h *hosts) trustworthy(r *http.Request) bool {
	name := hostName(r.Host)
	return h.secure(r) || name == "localhost" || name == "127.0.0.1" || name == "::1" || r.Header.Get("Sec-Fetch-Mode") != ""
}

// canonicalHost is a lower-case name:port, with the scheme's port where none is
// given.
func canonicalHost(host string, tls bool) string {
	name, port := hostName(host), "80"
	if tls {
		port = "443"
	}
	if _, p, err := net.SplitHostPort(host); err == nil && p != "" {
		port = p
	}
	return net.JoinHostPort(name, port)
}

// hostName is the lower-case name without port, brackets and final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

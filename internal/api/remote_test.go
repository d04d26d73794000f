package api

import (
	"net/http"
	"testing"
)

func TestRemoteAddr(t *testing.T) {
	trusted, err := newProxies([]string{"127.0.0.1/32", "10.0.0.0/8", "fd00::/8"})
	check(t, err)
	s := &Server{proxies: trusted}
	for _, c := range []struct {
		from string
		fwd  []string
		want string
	}{
		{"@", nil, ""},
		{"192.0.2.9:1000", nil, "192.0.2.9"},
		{"192.0.2.9:1000", []string{"198.51.100.1"}, "192.0.2.9"}, // a stranger's word does not count
		{"127.0.0.1:1000", nil, "127.0.0.1"},
		{"127.0.0.1:1000", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[::ffff:127.0.0.1]:1000", []string{"198.51.100.1"}, "198.51.100.1"},
		{"127.0.0.1:1000", []string{"203.0.113.5, 198.51.100.1"}, "198.51.100.1"},             // the first is the sender's invention
		{"127.0.0.1:1000", []string{"203.0.113.5", "198.51.100.1, 10.1.2.3"}, "198.51.100.1"}, // two proxies, two headers
		{"127.0.0.1:1000", []string{"10.1.2.3, 10.1.2.4"}, "10.1.2.3"},                        // a client beside the proxies
		{"127.0.0.1:1000", []string{"unknown"}, "127.0.0.1"},
		{"127.0.0.1:1000", []string{"198.51.100.1, nonsense"}, "127.0.0.1"},
		{"[fd00::1]:1000", []string{"2001:db8::7%eth0"}, "2001:db8::7"},
	} {
		r := &http.Request{RemoteAddr: c.from, Header: http.Header{"X-Forwarded-For": c.fwd}}
		if got := s.remoteAddr(r); got != c.want {
			t.Errorf("from %s with %q: %q, want %q", c.from, c.fwd, got, c.want)
		}
	}
	if _, err := newProxies([]string{"nowhere"}); err == nil {
		t.Error("nonsense was taken for a network")
	}
}

package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ptyd/ptyd/internal/lazy"
)

// Checks of single values: each returns the canonical form.

func checkNotEmpty(s string) (string, error) {
	if s == "" {
		return "", errors.New("must not be empty")
	}
	return s, nil
}

// checkPath takes "" (unset) or an absolute path: the daemon's working
// directory is nobody's business.
func checkPath(s string) (string, error) {
	if s != "" && !filepath.IsAbs(s) {
		return "", fmt.Errorf("%q is not an absolute path", s)
	}
	return s, nil
}

func oneOf(allowed ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(allowed, s) {
			return "", fmt.Errorf("%q is not one of %s", s, strings.Join(allowed, ", "))
		}
		return s, nil
	}
}

func checkListen(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", fmt.Errorf("%q is not HOST:PORT", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q: the port is not a number up to 65535", s)
	} else if port != strconv.FormatUint(n, 10) {
		return "", fmt.Errorf("%q: write the port as %d", s, n)
	}
	if strings.ContainsAny(host, "/ \t") {
		return "", fmt.Errorf("%q is not HOST:PORT", s)
	}
	return s, nil
}

var basePathRE = lazy.Regexp(`^(/[A-Za-z0-9._~-]+)+$`)

func checkBasePath(s string) (string, error) {
	s = strings.TrimRight(s, "/")
	if s == "" {
		return "", nil
	}
	if !basePathRE().MatchString(s) || path.Clean(s) != s {
		return "", fmt.Errorf("%q is not a path such as /terminals", s)
	}
	return s, nil
}

func checkPublicURL(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("%q is not an address such as https://term.example.com", s)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return "", fmt.Errorf("%q may hold a scheme, a host, a port and a path, nothing else", s)
	}
	if _, err := checkHost(u.Host); err != nil {
		return "", err
	}
	p, err := checkBasePath(u.Path)
	if err != nil {
		return "", err
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + p, nil
}

var hostRE = lazy.Regexp(`^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$`)

// checkHost takes NAME, NAME:PORT, or an address in either form.
func checkHost(s string) (string, error) {
	s = strings.ToLower(s)
	host, bad := s, fmt.Errorf("%q is not a host name such as term.example.com or box.lan:7373", s)
	if h, port, err := net.SplitHostPort(s); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", bad
		}
		host = h
	} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		host = s[1 : len(s)-1]
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return s, nil
	}
	if !hostRE().MatchString(host) {
		return "", bad
	}
	return s, nil
}

// validate checks what concerns more than one key.
func (c *Config) validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, &Error{Key: key, Where: c.Origin(key), Err: fmt.Errorf(format, args...)})
	}
	if c.TLSCert != "" && c.TLSKey == "" {
		wrong("tls_cert", "needs tls_key")
	}
	if c.TLSKey != "" && c.TLSCert == "" {
		wrong("tls_key", "needs tls_cert")
	}
	if !c.TLS() && !c.Insecure && !IsLoopback(c.Listen) {
		wrong("listen", "%s is reachable from the network: set tls_cert and tls_key, or insecure if something else protects it", c.Listen)
	}
	if c.SessionsPerOwner > c.SessionsTotal {
		// Only a person who set it meant something by it; a lowered total alone is clear.
		if c.Origin("sessions_per_owner") != "default" {
			wrong("sessions_per_owner", "%d is more than sessions_total (%d)", c.SessionsPerOwner, c.SessionsTotal)
		} else {
			c.SessionsPerOwner = c.SessionsTotal
		}
	}
	if c.OutputTotal < c.OutputLimit {
		if c.Origin("output_total") != "default" {
			wrong("output_total", "%d is less than output_limit (%d), what one session may keep", c.OutputTotal, c.OutputLimit)
		} else {
			c.OutputTotal = c.OutputLimit
		}
	}
	return errors.Join(errs...)
}

// IsLoopback reports whether listening on addr can only be reached from this
// machine. A name other than localhost is not trusted to stay one.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkNetwork takes an address or a network in CIDR notation, and returns the
// network.
func checkNetwork(s string) (string, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()).String(), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return "", fmt.Errorf("%q is neither an address such as 127.0.0.1 nor a network such as 10.0.0.0/8", s)
	}
	return p.Masked().String(), nil
}

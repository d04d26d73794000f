package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var units = []struct {
	suffix string
	n      int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, // as systemd and containers write them
}

// ParseSize reads a number of bytes such as "8MiB", "500MB" or "4096".
func ParseSize(s string) (int64, error) {
	num, factor := s, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			num, factor = strings.TrimSpace(rest), u.n
			break
		}
	}
	n, err := strconv.ParseUint(num, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 8MiB, 512M, 500MB or 4096", s)
	}
	if int64(n) > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return int64(n) * factor, nil
}

// FormatSize is the shortest exact form that ParseSize reads.
func FormatSize(n int64) string {
	for _, u := range units[:4] {
		if n >= u.n && n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// ParseDuration reads a time span such as "90d", "1d12h", "3s" or "0".
func ParseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration such as 3s, 24h or 90d", s)
	if s == "0" {
		return 0, nil
	}
	days, rest, found := strings.Cut(s, "d")
	if !found {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, bad
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 31)
	if err != nil || int64(n) > int64(math.MaxInt64/day) {
		return 0, bad
	}
	total := time.Duration(n) * day
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > math.MaxInt64-total {
			return 0, bad
		}
		total += d
	}
	return total, nil
}

// FormatDuration is a form that ParseDuration reads, in days where it fits.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	out := ""
	if d >= day {
		out = strconv.FormatInt(int64(d/day), 10) + "d"
		if d %= day; d == 0 {
			return out
		}
	}
	s := d.String()
	// 24h0m0s says no more than 24h.
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return out + s
}

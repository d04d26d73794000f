package auth

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Failed logins: a handful at once, then one every ten seconds. Enough for
// somebody who mistypes, 8,640 guesses a day for somebody who does not.
const (
	failBurst = 10
	failEvery = 10 * time.Second
)

// maxLimited bounds the keys a limiter holds.
const maxLimited = 4096

// sweepEvery bounds how often a full limiter looks for keys to forget.
const sweepEvery = time.Second

// limiter counts failures per key. An attempt that is under way counts as a
// failure until it is known to be none, so a burst of parallel guesses gets no
// further than a row of single ones; successes cost nothing.
type limiter struct {
	now func() time.Time

	// mu guards all below.
	mu    sync.Mutex
	keys  map[string]*failures
	rest  *failures // shared by the keys that found no room: fails closed
	swept time.Time
}

type failures struct {
	bucket  *rate.Limiter
	pending int
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, keys: make(map[string]*failures), rest: newFailures()}
}

func newFailures() *failures {
	return &failures{bucket: rate.NewLimiter(rate.Every(failEvery), failBurst)}
}

// begin starts an attempt. ok false means too many have failed. Otherwise done
// must be called with the outcome, once.
func (l *limiter) begin(key string) (done func(failed bool), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	f := l.findLocked(key, now)
	if f.bucket.TokensAt(now)-float64(f.pending) < 1 {
		return nil, false
	}
	f.pending++
	return func(failed bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f.pending--
		if failed {
			f.bucket.AllowN(l.now(), 1)
		}
	}, true
}

func (l *limiter) findLocked(key string, now time.Time) *failures {
	if f := l.keys[key]; f != nil {
		return f
	}
	if len(l.keys) >= maxLimited {
		l.sweepLocked(now)
	}
	if len(l.keys) >= maxLimited {
		return l.rest
	}
	f := newFailures()
	l.keys[key] = f
	return f
}

// sweepLocked forgets the keys that have recovered: they are as good as new.
// Keys that are limited are never forgotten, or a flood of other keys would
// free them.
func (l *limiter) sweepLocked(now time.Time) {
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for k, f := range l.keys {
		if f.pending == 0 && f.bucket.TokensAt(now) >= failBurst {
			delete(l.keys, k)
		}
	}
}

// remoteKey is what failures of a remote address count under: the address
// without its port, and of an IPv6 address the /64, of which one host has all.
func remoteKey(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		remote = host
	}
	a, err := netip.ParseAddr(remote)
	if err != nil {
		if len(remote) > 64 {
			remote = remote[:64]
		}
		return remote
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a.String()
	}
	return p.String()
}

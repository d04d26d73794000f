package auth

import (
	"context"
	"sync"
	"time"
)

// recheckTimeout bounds the look at the store that Bind and RedeemTicket take.
const recheckTimeout = 5 * time.Second

// bindings are the open connections by what let them in.
type bindings struct {
	// mu guards set and every binding's timer.
	mu  sync.Mutex
	set map[*binding]struct{}
}

// binding is ended by whoever takes it out of the set: that makes cancel run
// once, and not at all after a release.
type binding struct {
	p      Principal
	cancel func()
	timer  *time.Timer // nil: does not expire
}

// Bind registers what p opened: cancel runs once, on another goroutine or
// before Bind returns, when p's credential is revoked or expires, or when its
// user is disabled or gets another role. release takes it back.
//
// A revocation writes first and then ends what is registered; Bind registers
// first and then reads. So whichever comes second sees the other.
func (s *Service) Bind(p Principal, cancel func()) (release func()) {
	b := &binding{p: p, cancel: cancel}
	s.bindings.add(b, s.now())

	ctx, stop := context.WithTimeout(context.Background(), recheckTimeout)
	defer stop()
	// An answer that cannot be had is a no.
	if now, err := s.again(ctx, p); err != nil || now.Role != p.Role || now.UserID != p.UserID {
		s.bindings.endOne(b)
	}
	return func() { s.bindings.take(b) }
}

func (bs *bindings) add(b *binding, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.set[b] = struct{}{}
	if !b.p.Expires.IsZero() {
		b.timer = time.AfterFunc(b.p.Expires.Sub(now), func() { bs.endOne(b) })
	}
}

// take removes b and reports whether this call did.
func (bs *bindings) take(b *binding) bool {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.takeLocked(b)
}

func (bs *bindings) takeLocked(b *binding) bool {
	if _, in := bs.set[b]; !in {
		return false
	}
	delete(bs.set, b)
	if b.timer != nil {
		b.timer.Stop()
	}
	return true
}

func (bs *bindings) endOne(b *binding) {
	if bs.take(b) {
		b.cancel()
	}
}

// end cancels the bindings whose principal matches.
func (bs *bindings) end(match func(Principal) bool) {
	var ended []*binding
	bs.mu.Lock()
	for b := range bs.set {
		if match(b.p) && bs.takeLocked(b) {
			ended = append(ended, b)
		}
	}
	bs.mu.Unlock()
	for _, b := range ended {
		b.cancel()
	}
}

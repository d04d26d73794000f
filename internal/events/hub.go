package events

import "sync"

// maxPending bounds the distinct changes one subscription holds. A watcher that
// lets more pile up reads everything again anyway.
const maxPending = 256

// TypeAll is the Type of the change that stands for "read everything again".
const TypeAll = "all"

// Change names something to read again.
type Change struct {
	Type  string // "session", "user", "token", …; TypeAll after an overflow
	ID    string
	Owner string // the user it concerns; "" is everybody, Admins only admins
}

// Admins is the Owner of changes that only admins may hear of. It is no user's
// id, so a check by owner lets nobody else see them.
const Admins = "admins"

// Hub hands changes to all subscriptions.
type Hub struct {
	// mu guards subs. Publish takes it for reading, so publishers do not wait
	// for each other.
	mu   sync.RWMutex
	subs map[*Subscription]struct{}
}

// NewHub returns a hub without subscriptions.
func NewHub() *Hub {
	return &Hub{subs: make(map[*Subscription]struct{})}
}

// Publish records c with every subscription. It never blocks on a watcher.
func (h *Hub) Publish(c Change) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.subs {
		s.add(c)
	}
}

// Subscribe returns a subscription that sees every change published from now
// on. It must be closed.
func (h *Hub) Subscribe() *Subscription {
	s := &Subscription{hub: h, ready: make(chan struct{}, 1), seen: make(map[Change]struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[s] = struct{}{}
	return s
}

// Subscription is one watcher's set of changes that it has not taken yet. Its
// methods are safe for concurrent use.
type Subscription struct {
	hub *Hub
	// ready holds a token while pending is not empty and nobody has taken the
	// token. It is filled and emptied under mu, without ever waiting.
	ready chan struct{}

	// mu guards all below.
	mu      sync.Mutex
	pending []Change // in the order of their first publication
	seen    map[Change]struct{}
	all     bool // overflowed: pending is the one TypeAll change
	closed  bool
}

func (s *Subscription) add(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.all {
		return
	}
	if _, dup := s.seen[c]; dup {
		return
	}
	select {
	case s.ready <- struct{}{}:
	default:
	}
	if c.Type == TypeAll || len(s.pending) == maxPending {
		s.all = true
		s.pending = append(s.pending[:0], Change{Type: TypeAll})
		clear(s.seen)
		return
	}
	s.pending = append(s.pending, c)
	s.seen[c] = struct{}{}
}

// C returns the subscription's channel, which stays the same. It is readable as
// long as Take would return something; whoever receives from it calls Take.
func (s *Subscription) C() <-chan struct{} { return s.ready }

// Take returns the changes since the last Take, each once, oldest first, or nil.
func (s *Subscription) Take() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked()
}

func (s *Subscription) takeLocked() []Change {
	select {
	case <-s.ready:
	default:
	}
	taken := s.pending
	s.pending, s.all = nil, false
	clear(s.seen)
	return taken
}

// Close ends the subscription and drops what was not taken. It may be called
// more than once.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	delete(s.hub.subs, s)
	s.hub.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.takeLocked()
}

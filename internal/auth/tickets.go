package auth

import (
	"context"
	"sync"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
)

const (
	// TicketTTL is long enough to open one connection.
	TicketTTL = 30 * time.Second
	// maxUserTickets bounds the tickets one user can hold; the oldest goes.
	maxUserTickets = 64
)

// tickets stand in for a credential where none can be sent: one connection
// each. They live in memory only, for they end sooner than a restart takes.
type tickets struct {
	// mu guards byHash.
	mu     sync.Mutex
	byHash map[string]ticket
}

type ticket struct {
	p       Principal
	expires time.Time
}

// Ticket makes a ticket that lets in once as p, within TicketTTL.
func (s *Service) Ticket(p Principal) string {
	secret := newSecret("")
	now := s.now()
	s.tickets.put(string(hashSecret(secret)), ticket{p: p, expires: now.Add(TicketTTL)}, now)
	return secret
}

// RedeemTicket uses up a ticket and returns the principal it was made for, as
// it is now.
func (s *Service) RedeemTicket(t string) (Principal, error) {
	bad := problem.New(problem.Unauthenticated, "the ticket is not valid: it was used or has expired")
	if len(t) > maxSecretLen {
		return Principal{}, bad
	}
	k, ok := s.tickets.take(string(hashSecret(t)))
	if !ok || !s.now().Before(k.expires) {
		return Principal{}, bad
	}
	ctx, stop := context.WithTimeout(context.Background(), recheckTimeout)
	defer stop()
	return s.again(ctx, k.p)
}

func (ts *tickets) put(hash string, k ticket, now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var (
		mine       int
		oldest     string
		oldestTime time.Time
	)
	for h, t := range ts.byHash {
		if !now.Before(t.expires) {
			delete(ts.byHash, h)
			continue
		}
		if t.p.UserID == k.p.UserID {
			mine++
			if oldest == "" || t.expires.Before(oldestTime) {
				oldest, oldestTime = h, t.expires
			}
		}
	}
	if mine >= maxUserTickets {
		delete(ts.byHash, oldest)
	}
	ts.byHash[hash] = k
}

func (ts *tickets) take(hash string) (ticket, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	k, ok := ts.byHash[hash]
	delete(ts.byHash, hash)
	return k, ok
}

package ptymgr

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/problem"
)

const (
	// sweepBatch is how many sessions one query for old ones returns.
	sweepBatch = 500
	// retainEvery is the time between looks at the memory of ended sessions,
	// and retainPause the least, however many end.
	retainEvery = 5 * time.Second
	retainPause = 100 * time.Millisecond
)

// sweep removes ended sessions: those that ended long enough ago, and the
// oldest where all of them keep too much output. It runs until stop.
func (m *Manager) sweep() {
	ctx, cancel := context.WithCancel(context.Background())
	m.wg.Go(func() { // a removal may wait for a store that does not write
		<-m.stop
		cancel()
	})
	aged := time.Now()
	for {
		after := m.cfg.Load().RemoveAfter
		age := min(max(after/10, 100*time.Millisecond), time.Minute)
		select {
		case <-m.stop:
			return
		case <-m.over:
		case <-time.After(min(age, retainEvery)):
		}
		m.groups.dropStale()
		err := errors.Join(m.retain(ctx), m.trimEnded(ctx))
		m.shelf.trim(shelfMost, shelfTime)
		if after > 0 && time.Since(aged) >= age {
			err = errors.Join(err, m.removeOld(ctx, after, sweepBatch))
			aged = time.Now()
		}
		if err != nil && ctx.Err() == nil {
			m.log.Error("remove ended sessions", zap.Error(err))
		}
		select {
		case <-m.stop:
			return
		case <-time.After(retainPause):
		}
	}
}

// retainSoon lets the sweeper look at the memory of ended sessions. It never waits.
func (m *Manager) retainSoon() {
	select {
	case m.over <- struct{}{}:
	default: // it is about to
	}
}

// removeOld removes all sessions that ended longer ago than after, batch by batch.
func (m *Manager) removeOld(ctx context.Context, after time.Duration, batch int) error {
	for {
		ids, err := m.store.EndedBefore(ctx, time.Now().Add(-after), batch)
		for _, id := range ids {
			err = errors.Join(err, m.sweepAway(ctx, id))
		}
		if err != nil || len(ids) < batch {
			return err
		}
	}
}

// retain removes the sessions that ended first until what the ended ones keep
// is within OutputTotal. The one that ended last stays in any case: whoever
// ran it may still be reading.
func (m *Manager) retain(ctx context.Context) error {
	type kept struct {
		id    string
		ended time.Time
		bytes int64
	}
	var all []kept
	var sum int64
	m.sessions.Range(func(id string, s *Session) bool {
		if isClosed(s.done) {
			k := kept{id: id, ended: s.Info().EndedAt, bytes: s.ring.Kept()}
			all = append(all, k)
			sum += k.bytes
		}
		return true
	})
	most := m.cfg.Load().OutputTotal
	if sum <= most {
		return nil
	}
	slices.SortFunc(all, func(a, b kept) int { return a.ended.Compare(b.ended) })
	var errs error
	for _, k := range all[:len(all)-1] {
		if sum <= most {
			break
		}
		if err := m.sweepAway(ctx, k.id); err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		m.log.Info("removed an ended session: the output of all is more than output_total", zap.String("session", k.id), zap.Int64("bytes", k.bytes))
		sum -= k.bytes
	}
	return errs
}

// trimEnded removes the sessions of each owner that ended first and are more
// than an owner keeps.
func (m *Manager) trimEnded(ctx context.Context) error {
	for {
		most := m.cfg.Load().EndedPerOwner
		gone, err := m.store.TrimEnded(ctx, most, sweepBatch)
		for _, r := range gone {
			if s, ok := m.sessions.Load(r.ID); ok {
				err = errors.Join(err, m.scribe.wait(ctx, s))
			}
			m.unkeep(r.ID, r.Owner)
		}
		if len(gone) > 0 {
			m.log.Info("removed the sessions that ended first: their owners have more than ended_per_owner", zap.Int("count", len(gone)), zap.Int("most", most))
		}
		if err != nil || len(gone) < sweepBatch {
			return err
		}
	}
}

// sweepAway removes a session that somebody else may have removed.
func (m *Manager) sweepAway(ctx context.Context, id string) error {
	if err := m.Remove(ctx, id, false); !problem.Is(err, problem.NotFound) {
		return err
	}
	return nil
}

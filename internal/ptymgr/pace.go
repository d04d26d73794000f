package ptymgr

import "time"

// Pacing. A viewer never blocks a PTY; but where viewers keep up with a flood
// at all, people want every line of it, as in any terminal. So a session whose
// fastest viewer lags by half the ring rests for a moment, as long as that
// viewer takes its bytes at a good speed. One that does not is left behind:
// for paceBan the session runs free and the viewer jumps (RESYNC).
const (
	paceStep = 50 * time.Millisecond // how long a pause may last without progress
	paceMin  = 256 << 10             // bytes of progress within a step that keep the pause going
	paceBan  = 2 * time.Second
)

type pacing struct {
	on     bool
	until  time.Time
	at     uint64 // the fastest viewer's position when the step began
	banned time.Time
}

// pace decides after a read whether the session shall rest.
func (l *loop) pace(r *reading) bool {
	s := r.s
	pos, any := s.fastest()
	if !any || s.ring.Head()-min(pos, s.ring.Head()) < uint64(s.limit)/2 {
		return false
	}
	now := time.Now()
	if now.Before(r.pause.banned) {
		return false
	}
	s.say() // whom it rests for must know what there is
	r.pause = pacing{on: true, until: now.Add(paceStep), at: pos}
	s.paused.Store(true)
	l.timed[r] = struct{}{}
	// A viewer may have moved between the look and the flag.
	s.Progress()
	return true
}

// paceTimer ends a step: with progress the pause goes on, without it ends in a ban.
func (l *loop) paceTimer(r *reading, now time.Time) {
	pos, any := r.s.fastest()
	if any && pos >= r.pause.at+paceMin {
		r.pause.at, r.pause.until = pos, now.Add(paceStep)
		return
	}
	l.resume(r)
	if any {
		r.pause.banned = now.Add(paceBan)
	}
}

func (l *loop) resume(r *reading) {
	if r.pause.on {
		r.pause = pacing{}
		r.s.paused.Store(false)
		l.push(r)
	}
}

// Progress is called by a follower whose position moved: a session that rests
// for it may go on. It costs one atomic load where the session does not rest.
func (s *Session) Progress() {
	if !s.paused.Load() {
		return
	}
	if pos, any := s.fastest(); any && s.ring.Head()-min(pos, s.ring.Head()) > uint64(s.limit)/4 {
		return
	}
	s.m.loop.do(func() { s.m.loop.resume(s.rd) })
}

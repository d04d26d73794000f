package keeper

import "time"

// due names the things that happen at a time. Each has one deadline at most.
type due int

const (
	dueReady   due = iota // a worker must be ready
	dueGone               // a worker that was asked to go must be gone
	dueAborted            // a worker that got SIGABRT must be gone
	dueSign               // a worker must give a sign of life
	dueStart              // the next worker starts
	dueReap               // look again whether the ends of processes can be recorded
	duePing               // tell the service manager that the keeper lives
	dueReexec             // try again to execute the new binary
	dueSweep              // what is left of the sessions is killed
	dueGiveUp             // what could not be killed is left
	dueJob                // the service manager has not answered
	dueCount
)

// deadlines are the times of all of them; zero: none.
type deadlines [dueCount]time.Time

func (d *deadlines) in(what due, after time.Duration) { d[what] = time.Now().Add(after) }

func (d *deadlines) clear(what ...due) {
	for _, w := range what {
		d[w] = time.Time{}
	}
}

// next is how long until the earliest; ok is false where there is none.
func (d *deadlines) next(now time.Time) (wait time.Duration, ok bool) {
	var first time.Time
	for _, t := range d {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if first.IsZero() {
		return 0, false
	}
	return max(0, first.Sub(now)), true
}

// take removes and returns one that is over.
func (d *deadlines) take(now time.Time) (due, bool) {
	for w, t := range d {
		if !t.IsZero() && !t.After(now) {
			d[w] = time.Time{}
			return due(w), true
		}
	}
	return 0, false
}

package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Options says what to measure and how long.
type Options struct {
	Ptyd      string    // the daemon's binary
	Self      string    // the bench binary, which runs itself in other roles
	Tests     []string  // nil: all of them
	Reps      int       // repetitions; 0: as many as usual
	Short     bool      // a quick look: less of everything, more noise
	SelfCheck bool      // measure the baseline against itself: every ratio should be near 1
	Log       io.Writer // progress
}

// TestNames lists the tests in the order in which they run.
func TestNames() []string {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	return names
}

// ParseTests reads a comma-separated list of tests; "" and "all" mean all.
func ParseTests(s string) ([]string, error) {
	if s == "" || s == "all" {
		return TestNames(), nil
	}
	var out []string
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(TestNames(), name) {
			return nil, fmt.Errorf("no test %q; there are %s", name, strings.Join(TestNames(), ", "))
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// sizes is how much of everything one run does.
type sizes struct {
	reps        int
	patience    time.Duration // how long to wait for a calm moment before each pair
	turns       int           // of each server within a repetition of the floods
	oneBytes    uint64        // to a single viewer, in a turn
	tenBytes    uint64        // to each of ten
	rounds      int           // echoes per repetition
	warm        time.Duration // before a stall: the session's memory for output fills up
	hold        time.Duration // how long a viewer reads nothing
	stalledReps int
	idle        int           // sessions
	settle      time.Duration // how long a server gets to come to rest
	idleCPU     time.Duration // and how long it is watched doing nothing
	starts      int
	creates     int     // batches of creations
	crashes     []crash // in the order of their number of sessions
}

func (o Options) sizes() sizes {
	s := sizes{
		reps: 5, patience: 4 * time.Second, turns: 6, oneBytes: 16e6, tenBytes: 6e6, rounds: 400,
		warm: time.Second, hold: 10 * time.Second, stalledReps: 2,
		idle: 1000, settle: 2 * time.Second, idleCPU: 5 * time.Second, starts: 20,
		creates: 10, crashes: []crash{{1, 10, noBar()}, {1000, 5, noBar()}, {3000, 3, atMost(1000)}},
	}
	if o.Short {
		s = sizes{
			reps: 2, patience: 400 * time.Millisecond, turns: 3, oneBytes: 8e6, tenBytes: 3e6, rounds: 100,
			warm: time.Second, hold: 3 * time.Second, stalledReps: 1,
			idle: 200, settle: time.Second, idleCPU: 2 * time.Second, starts: 5,
			creates: 2, crashes: []crash{{1, 3, noBar()}, {50, 2, noBar()}, {150, 1, atMost(1000)}},
		}
	}
	if o.Reps > 0 {
		s.reps = o.Reps
		s.stalledReps = min(s.stalledReps, o.Reps)
	}
	return s
}

//go:build ptydtest

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Enabled tells whether this build has failpoints.
const Enabled = true

// point is one armed failpoint.
type point struct {
	action string
	arg    string
	once   string // a file: whoever creates it acts
	at     int    // the hit that acts, counted from 1; 0: every hit
}

// set is what the environment armed.
type set struct {
	points map[string]point
	offset time.Duration
	times  map[string]time.Duration

	mu   sync.Mutex     // guards hits
	hits map[string]int // how often each armed point was reached
}

// armed is the process's set. A mistake in the environment stops the process:
// a test that arms nothing would pass for the wrong reason.
var armed = sync.OnceValue(func() *set {
	s, err := parse(os.Getenv("PTYD_TEST_FAILPOINTS"), os.Getenv("PTYD_TEST_CLOCK_OFFSET"))
	if err == nil {
		s.times, err = parseTimes(os.Getenv("PTYD_TEST_TIMES"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failpoint:", err)
		os.Exit(2)
	}
	return s
})

// parseTimes reads name=duration pairs.
func parseTimes(text string) (map[string]time.Duration, error) {
	times := map[string]time.Duration{}
	for _, item := range strings.Split(text, ";") {
		if item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		d, err := time.ParseDuration(value)
		if err != nil {
			return nil, fmt.Errorf("parse PTYD_TEST_TIMES: %q: %w", item, err)
		}
		times[name] = d
	}
	return times, nil
}

func parse(points, offset string) (*set, error) {
	s := &set{points: map[string]point{}, hits: map[string]int{}}
	if offset != "" {
		d, err := time.ParseDuration(offset)
		if err != nil {
			return nil, fmt.Errorf("parse PTYD_TEST_CLOCK_OFFSET: %w", err)
		}
		s.offset = d
	}
	for _, item := range strings.Split(points, ";") {
		if item == "" {
			continue
		}
		name, rest, ok := strings.Cut(item, "=")
		if !ok {
			return nil, fmt.Errorf("parse PTYD_TEST_FAILPOINTS: %q has no action", item)
		}
		var p point
		if n, after, ok := strings.Cut(rest, "*"); ok {
			at, err := strconv.Atoi(n)
			if err != nil || at < 1 {
				return nil, fmt.Errorf("parse PTYD_TEST_FAILPOINTS: %q: bad count %q", item, n)
			}
			p.at, rest = at, after
		}
		p.action, p.arg, _ = strings.Cut(rest, ":")
		if file, ok := strings.CutPrefix(rest, "kill@"); ok {
			p.action, p.arg, p.once = "kill", "", file
		}
		switch p.action {
		case "kill", "panic", "enospc", "error":
		case "pause":
			if p.arg == "" {
				return nil, fmt.Errorf("parse PTYD_TEST_FAILPOINTS: %q: pause needs a file", item)
			}
		default:
			return nil, fmt.Errorf("parse PTYD_TEST_FAILPOINTS: %q: unknown action %q", item, p.action)
		}
		s.points[name] = p
	}
	return s, nil
}

// reach counts a hit and returns the point when it is its turn to act.
func (s *set) reach(name string) (point, bool) {
	p, ok := s.points[name]
	if !ok {
		return point{}, false
	}
	s.mu.Lock()
	s.hits[name]++
	n := s.hits[name]
	s.mu.Unlock()
	return p, p.at == 0 || p.at == n
}

// act does what p says. It returns nil where the action is not an error.
func (p point) act(name string) error {
	switch p.action {
	case "kill":
		if p.once != "" {
			f, err := os.OpenFile(p.once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return nil
			}
			_ = f.Close()
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; nothing after this place may run
	case "panic":
		panic("failpoint " + name)
	case "pause":
		pause(p.arg)
	case "enospc":
		return syscall.ENOSPC
	case "error":
		return errors.New(p.arg)
	}
	return nil
}

// pause creates file and returns once it is gone. It polls: the other side is
// another process, and a test build may spend the time.
func pause(file string) {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		panic(fmt.Sprintf("failpoint: create %s: %v", file, err))
	}
	for {
		if _, err := os.Stat(file); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Hit marks a place. It may not return: the armed action may kill the process.
func Hit(name string) { _ = Err(name) }

// Err marks a place where the armed action may make the caller fail.
func Err(name string) error {
	s := armed()
	p, ok := s.reach(name)
	if !ok {
		return nil
	}
	return p.act(name)
}

// Duration is d, or what PTYD_TEST_TIMES says about the name.
func Duration(name string, d time.Duration) time.Duration {
	if t, ok := armed().times[name]; ok {
		return t
	}
	return d
}

// Now is time.Now shifted by PTYD_TEST_CLOCK_OFFSET.
func Now() time.Time { return time.Now().Add(armed().offset) }

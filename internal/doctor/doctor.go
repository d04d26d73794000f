package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/ptyd/ptyd/internal/config"
)

// Level is how a thing is.
type Level string

// The levels. Only Fail makes the whole not well.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	What  string `json:"what"`          // how it is
	Why   string `json:"why,omitempty"` // why that matters; "" when it is well
	Do    string `json:"do,omitempty"`  // what to do about it; "" when it is well
}

// Report is all that was found.
type Report struct {
	OK       bool      `json:"ok"` // nothing fails
	Findings []Finding `json:"findings"`
}

// Status is what a running daemon says about itself that is looked at here.
type Status struct {
	Version  string
	Keeper   int // pid, 0 without one
	Worker   int // pid
	Cgroup   string
	NoCgroup string            // why there is none, or why a session went without
	Missing  map[string]string // controllers
}

// Options says what to look at.
type Options struct {
	StateDir string
	Version  string // of this program
	// Config is what the daemon would start with; ConfigErr why there is none.
	Config    config.Config
	ConfigErr error
	// Status is the running daemon's; StatusErr why there is none.
	Status    *Status
	StatusErr error
}

// checkTime bounds the look at the database.
const checkTime = 5 * time.Second

// Run looks at everything.
func Run(ctx context.Context, o Options) Report {
	all := []Finding{o.configuration(), o.stateDir(), o.daemon()}
	if o.Status != nil {
		all = append(all, o.version(), o.keeper())
	}
	all = append(all, o.store(), o.descriptors(), o.terminals(), o.database(ctx), o.exposure())
	all = append(all, kernel()...)
	all = append(all, o.cgroups()...)
	all = append(all, clock(time.Now()))
	r := Report{OK: true, Findings: all}
	for _, f := range all {
		r.OK = r.OK && f.Level != Fail
	}
	return r
}

func well(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: OK, What: fmt.Sprintf(format, args...)}
}

func (f Finding) at(l Level, why, do string) Finding {
	f.Level, f.Why, f.Do = l, why, do
	return f
}

func (o *Options) configuration() Finding {
	if o.ConfigErr != nil {
		return well("configuration", "it is refused: %v", o.ConfigErr).at(Fail, "the daemon does not start with it", "correct the keys that are named")
	}
	return well("configuration", "it is valid")
}

func (o *Options) daemon() Finding {
	const name = "daemon"
	if o.Status != nil {
		return well(name, "it answers on the socket, as process %d", o.Status.Worker)
	}
	if !exists(o.socket()) {
		return well(name, "none runs with this state directory").at(Warn, "what only a running daemon can tell is not looked at", "start it: ptyd serve; or name another one by --state-dir")
	}
	return well(name, "the socket is there and nobody answers properly: %v", o.StatusErr).at(Fail, "no command and no browser reaches the sessions", "look at the daemon's log; start it where it is not running")
}

func (o *Options) version() Finding {
	const name = "version"
	if o.Status.Version == o.Version {
		return well(name, "daemon and program are %s", o.Version)
	}
	return well(name, "the daemon is %s, this program %s", o.Status.Version, o.Version).
		at(Warn, "the daemon goes on as the release that it was started from", "let the daemon run the new program: ptyd upgrade, or a restart by the service manager")
}

func (o *Options) keeper() Finding {
	const name = "survival"
	if o.Status.Keeper == 0 {
		return well(name, "no keeper: sessions end with the daemon").at(Warn, "a crash or an upgrade ends all sessions", "start it without --no-keeper")
	}
	env, known := environ(o.Status.Keeper)
	switch {
	case !known:
		return well(name, "process %d keeps the sessions over crashes and upgrades of the daemon", o.Status.Keeper)
	case env["NOTIFY_SOCKET"] != "":
		return well(name, "process %d keeps the sessions over crashes and upgrades; a service manager started it and can outlive it", o.Status.Keeper)
	}
	return well(name, "process %d keeps the sessions over crashes and upgrades; started by hand: they end when it does, and at a reboot", o.Status.Keeper)
}

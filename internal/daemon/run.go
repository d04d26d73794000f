package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/config"
)

// RunOptions is what Run needs.
type RunOptions struct {
	// Load reads the configuration, at the start and on every SIGHUP.
	Load      func() (config.Config, error)
	Build     config.Build
	Page      fs.FS
	Stdout    io.Writer
	Stderr    *os.File // for the log
	PrintLink bool     // print a login link, not only the address
	// Signals brings SIGHUP to reload, SIGTERM and SIGINT to end.
	Signals <-chan os.Signal
	Args    []string // of this process, without argv[0]
}

// Run runs a daemon until a signal ends it.
func Run(ctx context.Context, o RunOptions) error {
	began := time.Now()
	cfg, err := o.Load()
	if err != nil {
		return err
	}
	log, level, err := newLog(o.Stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return err
	}
	keeper, err := OpenKeeper(ctx)
	if err != nil {
		return err
	}
	if keeper != nil {
		nameProcess("ptyd-worker")
	}
	d, err := Start(ctx, Options{Config: cfg, Build: o.Build, Page: o.Page, Log: log, Level: &level, Keeper: keeper, Args: o.Args})
	if err != nil {
		return err
	}
	if keeper != nil {
		for _, what := range keeper.store.Discarded() {
			log.Warn("stored descriptors are dropped", zap.String("which", what))
		}
		a := d.mgr.Adopted()
		log.Info("worker took over", zap.Int("generation", keeper.Generation), zap.Int("sessions", a.Sessions), zap.Int("ended", a.Ended),
			zap.Int("lost", a.Lost), zap.Int("dropped", a.Dropped), zap.Int64("bytes_in_flight", a.BytesSaved))
	}
	log.Info("ptyd is ready", zap.String("version", o.Build.Version), zap.Int("pid", os.Getpid()), zap.String("address", d.URL()),
		zap.String("socket", d.socket()), zap.Duration("after", time.Since(began)))
	d.tell("READY=1")
	if keeper == nil || keeper.Generation <= 1 {
		d.announce(ctx, o)
	}
	stay, err := d.loop(o)
	d.tell("STOPPING=1")
	err = errors.Join(err, d.stopOnSignals(o.Signals, stay))
	if err == nil {
		log.Info("ptyd has ended in order")
	}
	_ = log.Sync() // a terminal or a pipe cannot be synced
	return err
}

// announce prints the one line on standard output.
func (d *Daemon) announce(ctx context.Context, o RunOptions) {
	line := "ptyd: listening on " + d.URL()
	if o.PrintLink {
		link, err := d.LoginURL(ctx)
		if err != nil {
			// A daemon without a link is of use to all who can log in otherwise.
			d.log.Error("no login link", zap.Error(err))
		} else {
			line = "ptyd: open " + link
		}
	}
	if _, err := fmt.Fprintln(o.Stdout, line); err != nil {
		// Nobody reads it; the log has the address.
		d.log.Debug("address not printed", zap.Error(err))
	}
}

// loop waits for the signal that ends the daemon, or for its failure. stay says
// that the sessions are left to the next worker: so it is at SIGTERM to a
// worker alone, at its keeper's death where somebody above keeps the
// descriptors, and when it fails.
func (d *Daemon) loop(o RunOptions) (stay bool, err error) {
	for {
		select {
		case err := <-d.failed:
			return d.keeper != nil, err
		case sig := <-o.Signals:
			switch {
			case sig == KeeperDied && d.keeper != nil:
				stay = supervised()
				if stay {
					d.log.Warn("the keeper died: the sessions are left to the service manager")
				} else {
					d.log.Error("the keeper died and nobody else keeps the sessions: they end")
					d.mgr.Abandon("the keeper died, and nobody else kept the session")
				}
				return stay, nil
			case sig != syscall.SIGHUP:
				stay = sig == syscall.SIGTERM && d.keeper != nil
				d.log.Info("ending", zap.Stringer("signal", sig), zap.Bool("sessions_stay", stay))
				return stay, nil
			}
			d.tell(reloading())
			cfg, err := o.Load()
			if err == nil {
				err = d.Reload(&cfg)
			}
			if err != nil {
				d.log.Error("the configuration stays as it was", zap.Error(err))
			}
			d.tell("READY=1")
		}
	}
}

// supervised tells whether a service manager keeps the descriptors that the
// keeper keeps, so that sessions outlive both.
func supervised() bool { return os.Getenv("PTYD_SUPERVISED") != "" }

// KeeperDied is the signal that a worker gets when its keeper has died.
const KeeperDied = syscall.SIGUSR2

// stopOnSignals stops the daemon, or leaves; a second signal hurries it.
func (d *Daemon) stopOnSignals(signals <-chan os.Signal, stay bool) error {
	ctx, hurry := context.WithTimeout(context.Background(), d.stopTime())
	defer hurry()
	done := make(chan error, 1)
	end := d.Stop
	if stay {
		end = d.Leave
	}
	go func() { done <- end(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				continue
			}
			d.log.Warn("ending at once", zap.Stringer("signal", sig))
			hurry()
		}
	}
}

func (d *Daemon) tell(state string) {
	err := error(nil)
	if d.keeper != nil {
		err = d.keeper.store.Notify(strings.Split(state, "\n")...)
	} else {
		err = notify(state)
	}
	if err != nil {
		d.log.Warn("service manager not told", zap.Error(err))
	}
}

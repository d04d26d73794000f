package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/keeper"
)

// watchdogEvery is how long a worker may fail to answer before it is replaced.
const watchdogEvery = 20 * time.Second

// KeepOptions is what Keep needs.
type KeepOptions struct {
	Load    func() (config.Config, error)
	Args    []string // of the worker, without argv[0]
	Stderr  *os.File
	Build   config.Build
	Confirm func(ctx context.Context) bool // nil: nobody is asked before sessions end
}

// Keep claims the state directory and runs the keeper, which runs the worker.
// It returns the exit status.
func Keep(ctx context.Context, o KeepOptions) (int, error) {
	// One goroutine does all: threads for more would only lie there.
	runtime.GOMAXPROCS(1)
	cfg, err := o.Load()
	if err != nil {
		return 0, err
	}
	log, _, err := newLog(o.Stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find the own program: %w", err)
	}
	file, resumed := keeper.Resumed()
	if !resumed {
		if err := prepareStateDir(cfg.StateDir); err != nil {
			return 0, err
		}
		l, err := takeLock(ctx, cfg.StateDir, filepath.Join(cfg.StateDir, "lock"), lockWait)
		if err != nil {
			return 0, err
		}
		file = l.f
	}
	// Whoever is refused reads the pid there; it must not outlive us.
	defer func() { _ = file.Truncate(0) }()
	log.Debug("keeper", zap.Int("pid", os.Getpid()), zap.Bool("resumed", resumed), zap.String("version", o.Build.Version))
	return keeper.Run(ctx, keeper.Options{
		Binary: self, Args: o.Args, StateDir: cfg.StateDir, Lock: file, Log: log.Named("keeper"),
		WatchdogEvery: watchdogEvery, Confirm: o.Confirm,
	}), nil
}

package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/keeper"
)

// watchdogEvery is how long a worker may fail to answer before it is replaced.
const watchdogEvery = 20 * time.Second

// KeepOptions is what Keep needs.
type KeepOptions struct {
	Load   func() (config.Config, error)
	Args   []string // of the worker, without argv[0]
	Stderr *os.File
	Build  config.Build
	Stay   bool // sessions go on when the keeper's terminal closes
	// Confirm asks whether so many sessions shall end; nil: nobody is asked.
	Confirm func(ctx context.Context, sessions int) bool
}

// Keep claims the state directory and runs the keeper, which runs the worker.
// It returns the exit status.
func Keep(ctx context.Context, o KeepOptions) (int, error) {
	// One goroutine does all: threads for more would only lie there.
	runtime.GOMAXPROCS(1)
	nameProcess("ptyd-keeper")
	file, resumed := keeper.Resumed()
	if resumed {
		failpoint.Hit("daemon.keep.resumed")
	}
	cfg, err := o.Load()
	if err != nil && !resumed {
		return 0, err
	}
	if err != nil {
		// The sessions hang on this process: what stands in the configuration
		// by now must not end it. The worker reads it for itself.
		cfg = config.Default()
	}
	log, _, logErr := newLog(o.Stderr, cfg.LogLevel, cfg.LogFormat)
	if logErr != nil && !resumed {
		return 0, logErr
	}
	if logErr != nil {
		log = zap.NewNop()
	}
	if err != nil {
		log.Error("the keeper can't read the configuration and goes on without it", zap.Error(err))
	}
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
	if file != nil { // nil after a re-execution that went wrong, which Run tells
		// Whoever is refused reads the pid there; it must not outlive us.
		defer func() { _ = file.Truncate(0) }()
	}
	self, err := ownPath()
	if err != nil && !resumed { // a resumed keeper knows it by what its former self wrote down
		return 0, err
	}
	log.Debug("keeper", zap.Int("pid", os.Getpid()), zap.Bool("resumed", resumed), zap.String("version", o.Build.Version))
	return keeper.Run(ctx, keeper.Options{
		Version: o.Build.Version, Binary: self, Args: o.Args, StateDir: cfg.StateDir, Lock: file, Log: log.Named("keeper"),
		WatchdogEvery: failpoint.Duration("daemon.watchdog", watchdogEvery), FDStoreMax: unitFDStore(log), Stay: o.Stay, Confirm: o.Confirm,
	}), nil
}

// ownPath is the path by which this program was started, where that leads to
// it: a symbolic link stays one, so that an upgrade follows it to wherever a
// package manager has turned it by then.
func ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the own program: %w", err)
	}
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return self, nil
	}
	asked, err := exec.LookPath(os.Args[0])
	if err != nil {
		return self, nil
	}
	if asked, err = filepath.Abs(asked); err != nil {
		return self, nil
	}
	if st, err := os.Stat(asked); err != nil || !os.SameFile(st, own) {
		return self, nil
	}
	return asked, nil
}

// unitFDStore is the unit's FileDescriptorStoreMax, as the unit hands it over
// for service managers that do not tell it themselves; 0: not told.
func unitFDStore(log *zap.Logger) int {
	text, ok := os.LookupEnv("PTYD_FDSTORE")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		log.Error("PTYD_FDSTORE is not a number of descriptors and is ignored", zap.String("value", text))
		return 0
	}
	return n
}

// nameProcess sets the name that ps and top show beside the command line, at
// most 15 bytes: a program executed by /proc/self/exe would be called "exe".
func nameProcess(name string) {
	// Not prctl, which names the calling thread.
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // without /proc it has no name
}

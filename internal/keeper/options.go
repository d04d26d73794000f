package keeper

import (
	"context"
	"os"
	"time"

	"go.uber.org/zap"
)

// Options say what a keeper runs and how.
type Options struct {
	// Binary is the path of the worker's executable, as it shall stand in
	// `ps`. While it is the keeper's own image the two are always of one
	// version: when the file is replaced, a worker that crashes comes back as
	// the old image, until an upgrade is asked for.
	Binary string
	// Args are the worker's arguments without argv[0], which is "ptyd".
	Args []string
	// Env is what the worker's environment is made from; nil: the own one.
	// The variables of the protocol are replaced.
	Env []string
	// Version is what the status says of this image.
	Version string
	// Self is the command line that executes the keeper anew after an upgrade;
	// nil: the own one.
	Self []string
	// StateDir is where the socket for the worker's notices is.
	StateDir string
	// Lock is the state directory's lock, held. The worker inherits it. After
	// a re-execution it is the one that Resumed gave.
	Lock *os.File
	// Log must not block for long: the keeper writes to it itself.
	Log *zap.Logger
	// WatchdogEvery is how long a worker may be silent; 0: for ever.
	WatchdogEvery time.Duration
	// FDStoreMax is the service manager's FileDescriptorStoreMax, where the
	// manager does not tell it by $FDSTORE itself (systemd before 254); 0: not
	// known. It bounds the stored descriptors, and only with a bound known does
	// the keeper count on the manager to keep them when it goes.
	FDStoreMax int
	// Stay keeps the sessions when the keeper's terminal closes. It is implied
	// where the keeper was started with SIGHUP ignored (nohup).
	Stay bool
	// Confirm asks a person whether the running sessions, so many, shall end;
	// nil: nobody is asked. It must return soon after its context ended.
	Confirm func(ctx context.Context, sessions int) bool

	times *times                // nil: defaultTimes; tests shorten them
	unit  func() (string, bool) // nil: unitName
}

// times are the keeper's delays and bounds.
type times struct {
	start      time.Duration // from fork to READY
	trial      time.Duration // the same, for a new binary
	startMost  time.Duration // the same, when the worker asks for more
	stop       time.Duration // from SIGTERM to SIGKILL
	end        time.Duration // from SIGINT to SIGKILL: the worker ends all sessions
	abort      time.Duration // from SIGABRT, which makes a hung worker tell where, to SIGKILL
	backoffMin time.Duration // before a worker that died unready is started again
	backoffMax time.Duration
	full       time.Duration // how often a full record of ends is looked at again
	job        time.Duration // for the service manager's answer
	sweep      time.Duration // from SIGTERM to SIGKILL for what is left at the end
	sweepMost  time.Duration // after which even that is given up
	flush      time.Duration // for the service manager to take the last descriptors
}

var defaultTimes = times{
	start: 30 * time.Second, trial: 30 * time.Second, startMost: 10 * time.Minute,
	stop: 30 * time.Second, end: 60 * time.Second, abort: 2 * time.Second,
	backoffMin: 100 * time.Millisecond, backoffMax: 5 * time.Second,
	full: 50 * time.Millisecond, job: 2 * time.Second,
	sweep: 3 * time.Second, sweepMost: 10 * time.Second,
	flush: 2 * time.Second,
}

package keeper

import (
	"context"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// stop does what SIGINT and SIGTERM mean.
func (k *keeper) stop(why string) {
	switch {
	case k.goal != goalServe:
		k.hurry()
	case k.managed():
		if k.deciding == nil {
			k.askManager()
		}
	case k.deciding != nil: // nobody types yes who sends it twice
		k.deciding()
		k.end(why + " twice")
	case k.o.Confirm != nil && k.store.running() > 0:
		k.askPerson(why)
	default:
		k.end(why)
	}
}

// hangUp tells a closed terminal from a request to read the configuration.
func (k *keeper) hangUp() {
	if k.tty && !ttyThere() {
		k.tty = false
		if k.stay {
			k.log.Info("the terminal closed; sessions go on")
		} else if k.goal == goalServe {
			k.end("the terminal closed")
		}
		return
	}
	// Before it is ready a worker has no handler, and reads the configuration anyway.
	if k.w != nil && k.w.ready && k.w.asked == askedNothing {
		k.signal(unix.SIGHUP)
	}
}

// ttyThere tells whether the process has a controlling terminal.
func ttyThere() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// askPerson ends the sessions if the person at the terminal says so.
func (k *keeper) askPerson(why string) {
	ctx, cancel := context.WithCancel(k.ctx)
	k.deciding = cancel
	sessions := k.store.running()
	k.wg.Go(func() {
		defer cancel()
		yes := k.o.Confirm(ctx, sessions)
		k.call(func() {
			if k.goal != goalServe {
				return // a second signal was faster
			}
			k.deciding = nil
			if yes {
				k.end(why)
			} else {
				k.log.Info("the keeper was not to end", zap.String("asked by", why))
			}
		})
	})
}

// leave goes and leaves the sessions: their descriptors are in the service
// manager's store, and it starts the next keeper.
func (k *keeper) leave(why string) {
	k.log.Info("the keeper goes, sessions stay", zap.String("why", why))
	k.goal = goalLeave
	k.beginStop()
	if k.w == nil {
		k.done = true
		return
	}
	k.ask(askedGo, unix.SIGTERM, k.t.stop)
}

// end has the worker end all sessions in order.
func (k *keeper) end(why string) {
	k.log.Info("the keeper ends all sessions and goes", zap.String("why", why))
	k.goal = goalEnd
	k.beginStop()
	if k.w == nil {
		k.sweep()
		return
	}
	k.ask(askedEnd, unix.SIGINT, k.t.end)
}

func (k *keeper) beginStop() {
	k.due.clear(dueStart, dueReexec, dueJob)
	k.deciding = nil
	k.up.send(notifyproto.Encode("STOPPING=1"))
}

// hurry is a further signal after the one that set the goal.
func (k *keeper) hurry() {
	k.hurried++
	switch {
	case k.sweeping:
		k.due.in(dueSweep, 0)
	case k.w == nil:
	case k.goal == goalEnd && k.hurried == 1:
		k.signal(unix.SIGINT) // the worker gives no more grace
	default:
		k.w.killed = "hurried"
		k.signal(unix.SIGKILL)
	}
}

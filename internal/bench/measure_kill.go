package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/bench/procfs"
)

// crash is one row of measureKill: how often the worker of how many sessions is killed.
type crash struct {
	sessions, kills int
	bar             bar
}

// measureKill kills the worker again and again, with more and more sessions,
// and takes the time until a viewer that comes again types a key and sees it:
// all sessions are adopted by then.
func measureKill(ctx context.Context, r *runner) error {
	if r.SelfCheck {
		r.leaveOut("kill", "Worker killed", "the baseline's sessions end with it")
		return nil
	}
	t := &ptydTarget{binary: r.Ptyd}
	return r.started(ctx, t, func(ctx context.Context) error {
		e, err := r.echoer(ctx, t)
		if err != nil {
			return err
		}
		v := &victim{t: t, id: e.id}
		e.close()
		for _, c := range r.size.crashes {
			title := "Worker killed, 1 session: ms to the first byte after"
			if c.sessions > 1 {
				title = fmt.Sprintf("— %d sessions", c.sessions)
			}
			if why := procfs.Room(c.sessions); why != "" {
				r.leaveOut("kill", title, why)
				continue
			}
			if err := v.grow(ctx, c.sessions); err != nil {
				return err
			}
			var ms []float64
			for range c.kills {
				if err := pause(ctx, r.size.settle); err != nil {
					return err
				}
				if err := r.calm(ctx); err != nil {
					return err
				}
				took, err := v.kill(ctx)
				if err != nil {
					return err
				}
				ms = append(ms, float64(took)/float64(time.Millisecond))
				fmt.Fprint(r.Log, ".")
			}
			r.addAlone("kill", title, ms, c.bar)
		}
		return nil
	})
}

// victim is a daemon whose worker is killed.
type victim struct {
	t        *ptydTarget
	id       string // of the session that echoes
	sessions int    // beside it, idle
}

// grow has the daemon run n sessions in all.
func (v *victim) grow(ctx context.Context, n int) error {
	more := n - 1 - v.sessions
	v.sessions += max(more, 0)
	return each(max(more, 0), func(int) error {
		_, err := v.t.create(ctx, idler)
		return err
	})
}

// kill kills the worker and returns how long it takes until a byte is served.
func (v *victim) kill(ctx context.Context) (took time.Duration, err error) {
	before, err := v.t.worker(ctx)
	if err != nil {
		return 0, err
	}
	pidfd, err := unix.PidfdOpen(before.PID, 0)
	if err != nil {
		return 0, fmt.Errorf("open the worker, process %d: %w", before.PID, err)
	}
	defer unix.Close(pidfd)
	begin := time.Now()
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil {
		return 0, fmt.Errorf("kill the worker: %w", err)
	}
	// A process that was killed may still answer, until it is seen to have ended.
	if err := awaitEnd(pidfd); err != nil {
		return 0, err
	}
	if err := v.key(ctx); err != nil {
		return 0, err
	}
	took = time.Since(begin)
	after, err := v.t.worker(ctx)
	if err == nil && (after.PID == before.PID || after.Adopted != v.sessions+1) {
		err = fmt.Errorf("process %d adopted %d sessions of process %d, which had %d", after.PID, after.Adopted, before.PID, v.sessions+1)
	}
	return took, err
}

// key comes as a viewer, types, and reads until what was typed comes back. The
// daemon's address is kept open, so the first connection is served.
func (v *victim) key(ctx context.Context) error {
	w, err := v.t.view(ctx, v.id, 0)
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.input([]byte("k")); err != nil {
		return err
	}
	// What is kept of the output comes before it, and no more than was typed.
	for {
		_, p, err := w.next()
		if err != nil {
			return err
		}
		if len(p) > 0 && p[len(p)-1] == 'k' {
			return nil
		}
	}
}

// awaitEnd waits for the end of the process behind pidfd.
func awaitEnd(pidfd int) error {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(startLimit/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait for the worker's end: %w", err)
		case n == 0:
			return errors.New("the worker does not end")
		}
		return nil
	}
}

package keeper

import (
	"context"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// upward passes notices on to the service manager above, in order. A manager
// that is busy (it reads nothing while it reloads) makes its sender wait, so a
// goroutine sends; the keeper never does. Nil is a keeper without a manager.
type upward struct {
	conn *notifyproto.Conn
	log  *zap.Logger
	wake chan struct{}
	done chan struct{}

	mu     sync.Mutex // guards queue, sent, closed
	queue  []notice
	busy   bool // one that left the queue is being sent
	closed bool
}

// notice is a datagram to send; its descriptors are closed afterwards.
type notice struct {
	text []byte
	fds  []int
}

func dialUp(path string, log *zap.Logger) (*upward, error) {
	conn, err := notifyproto.Dial(path)
	if err != nil {
		return nil, err
	}
	u := &upward{conn: conn, log: log, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go u.run()
	return u, nil
}

// send queues a notice with copies of fds.
func (u *upward) send(text []byte, fds ...int) {
	if u == nil {
		return
	}
	var own []int
	for _, fd := range fds {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			u.log.Error("a descriptor is not kept by the service manager", zap.Error(err))
			continue
		}
		own = append(own, n)
	}
	u.put(notice{text: text, fds: own})
}

// put queues a notice and takes its descriptors.
func (u *upward) put(n notice) {
	u.mu.Lock()
	closed := u.closed
	if !closed {
		u.queue = append(u.queue, n)
	}
	u.mu.Unlock()
	if closed {
		n.close()
		return
	}
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (n notice) close() {
	for _, fd := range n.fds {
		_ = unix.Close(fd)
	}
}

func (u *upward) run() {
	defer close(u.done)
	for {
		u.mu.Lock()
		u.busy = len(u.queue) > 0
		closed := u.closed
		var n notice
		if u.busy {
			n, u.queue = u.queue[0], u.queue[1:]
		}
		u.mu.Unlock()
		switch {
		case n.text != nil:
			if err := u.conn.Send(n.text, n.fds...); err != nil && !closed {
				u.log.Warn("the service manager takes no notice", zap.Error(err))
			}
			n.close()
		case closed:
			return
		default:
			<-u.wake
		}
	}
}

// pending tells whether something waits to be sent.
func (u *upward) pending() bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.busy || len(u.queue) > 0
}

// flush returns when the manager has taken all notices.
func (u *upward) flush(ctx context.Context) {
	if u == nil {
		return
	}
	r, w, err := pipe()
	if err != nil {
		u.log.Warn("the service manager's receipt can't be asked for", zap.Error(err))
		return
	}
	defer r.Close()
	u.put(notice{text: notifyproto.Encode("BARRIER=1"), fds: []int{w}})
	if err := untilEOF(ctx, r); err != nil {
		u.log.Warn("the service manager has not taken all notices", zap.Error(err))
	}
}

// close ends the goroutine; what was not sent is dropped.
func (u *upward) close() {
	if u == nil {
		return
	}
	u.mu.Lock()
	u.closed = true
	rest := u.queue
	u.queue = nil
	u.mu.Unlock()
	for _, n := range rest {
		n.close()
	}
	_ = u.conn.Close()
	select {
	case u.wake <- struct{}{}:
	default:
	}
	<-u.done
}

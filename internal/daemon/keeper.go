package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/fdstore"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// Keeper is this worker's line to the process that keeps its descriptors.
type Keeper struct {
	fdstore.Env
	store    *fdstore.Store
	watchdog time.Duration // 0: nobody watches
}

// OpenKeeper takes over what the keeper holds. It waits for a worker that is
// still at work. nil without a keeper.
func OpenKeeper(ctx context.Context) (*Keeper, error) {
	env, ok := fdstore.FromEnv()
	if !ok {
		return nil, nil
	}
	st, err := fdstore.Open(ctx, env)
	if err != nil {
		return nil, err
	}
	k := &Keeper{Env: env, store: st}
	if us, err := strconv.Atoi(os.Getenv("WATCHDOG_USEC")); err == nil && us > 0 {
		k.watchdog = time.Duration(us) * time.Microsecond
	}
	return k, nil
}

// vault is where sessions' descriptors are kept.
func (d *Daemon) vault() (ptymgr.Vault, error) {
	if d.keeper != nil {
		return vault{d.keeper.store}, nil
	}
	v, err := ptymgr.NewDirect()
	if err != nil {
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	d.onClose(func() error { v.Close(); return nil })
	return v, nil
}

// listener takes the stored listener of that name, where it listens on want,
// or opens one by fresh and stores it.
func (k *Keeper) listener(name, want string, fresh func() (net.Listener, error)) (net.Listener, error) {
	if k == nil {
		return fresh()
	}
	l, kept, err := k.store.Listener(name, fresh)
	if err != nil || !kept || sameAddress(l.Addr(), want) {
		return keepFile(l), err
	}
	// The configuration names another address by now.
	if err := errors.Join(l.Close(), k.store.DropListener(name)); err != nil {
		return nil, err
	}
	l, _, err = k.store.Listener(name, fresh)
	return keepFile(l), err
}

// keepFile leaves a socket's file in place when the listener is closed: the
// next worker has the same socket.
func keepFile(l net.Listener) net.Listener {
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	return l
}

// sameAddress reports whether a stored listener is the one that is wanted. Port
// 0 means any, and the one that was picked stays.
func sameAddress(have net.Addr, want string) bool {
	a, ok := have.(*net.TCPAddr)
	if !ok {
		_, err := os.Lstat(want) // a socket whose file is gone serves nobody
		return have.String() == want && err == nil
	}
	w, err := net.ResolveTCPAddr("tcp", want)
	if err != nil {
		return false
	}
	return (w.Port == 0 || w.Port == a.Port) && (w.IP.Equal(a.IP) || (len(w.IP) == 0 || w.IP.IsUnspecified()) && a.IP.IsUnspecified())
}

// feed tells the keeper that this worker lives, as long as healthy says so.
func (k *Keeper) feed(ctx context.Context, healthy func(context.Context) error, log *zap.Logger) {
	if k.watchdog == 0 {
		return
	}
	t := time.NewTicker(k.watchdog / 3)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		c, cancel := context.WithTimeout(ctx, k.watchdog/3)
		err := healthy(c)
		cancel()
		if err == nil {
			err = k.store.Notify("WATCHDOG=1")
		}
		if err != nil && ctx.Err() == nil {
			log.Error("not healthy", zap.Error(err))
		}
	}
}

// healthy asks the reading thread for an answer.
func (d *Daemon) healthy(ctx context.Context) error { return d.mgr.Ping(ctx) }

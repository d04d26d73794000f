package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/api"
	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/cgroup"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/screen"
	"github.com/ptyd/ptyd/internal/store"
	"github.com/ptyd/ptyd/internal/ws"
)

// Options configures a Daemon.
type Options struct {
	Config config.Config
	Build  config.Build
	Page   fs.FS // the built page; nil when there is none
	Log    *zap.Logger
	Level  *zap.AtomicLevel // turned on a reload; nil: fixed
	Keeper *Keeper          // nil: sessions end with this process
	Args   []string         // of this process, without argv[0]: what another binary's worker would get
}

// Daemon is a running ptyd.
type Daemon struct {
	log      *zap.Logger
	level    *zap.AtomicLevel
	stateDir string
	ownerUID int

	// mu guards cfg.
	mu  sync.Mutex
	cfg config.Config

	cgroups   *cgroup.Tree // nil: sessions have none
	noCgroups string       // why

	keeper  *Keeper
	store   *store.Shared
	auth    *auth.Service
	mgr     *ptymgr.Manager
	ws      *ws.Server
	screens *screen.Cache
	api     *api.Server
	cert    *certificate // nil without TLS

	servers  []*http.Server
	serving  sync.WaitGroup // the servers and the housekeeper
	failed   chan error     // a server that ended by itself; room for all
	endWaits context.CancelFunc
	endHouse context.CancelFunc
	ready    atomic.Bool

	build     config.Build
	args      []string
	upgrading atomic.Bool // another binary is being looked at

	// undo closes what was opened, the last first; after Start it is for Stop.
	undo []func() error
}

// Start starts a daemon. When it returns without an error, requests are served.
func Start(ctx context.Context, o Options) (*Daemon, error) {
	d := &Daemon{
		log: o.Log, level: o.Level, keeper: o.Keeper, cfg: o.Config, stateDir: o.Config.StateDir, ownerUID: os.Geteuid(),
		build: o.Build, args: o.Args,
		failed: make(chan error, 2),
	}
	if err := d.claim(ctx); err != nil {
		return nil, errors.Join(err, d.closeAll())
	}
	// The database takes longest, and needs nothing of the rest.
	var opening sync.WaitGroup
	var st *store.Shared
	var stErr error
	opening.Go(func() {
		st, stErr = store.OpenShared(ctx, store.Options{DSN: filepath.Join(d.stateDir, "ptyd.db"), Log: d.log})
	})
	unixL, tcpL, err := d.listen(ctx)
	opening.Wait()
	if stErr == nil {
		d.store = st
		d.onClose(st.Close)
	}
	if err = errors.Join(err, stErr); err == nil {
		err = d.assemble(ctx, o, tcpL.Addr().String())
	}
	if err != nil {
		return nil, errors.Join(err, d.closeAll())
	}
	d.serve(unixL, tcpL)
	return d, nil
}

// claim takes the state directory.
func (d *Daemon) claim(ctx context.Context) error {
	if err := prepareStateDir(d.stateDir); err != nil {
		return err
	}
	if d.keeper != nil {
		return nil // it holds the lock, and this process with it
	}
	l, err := takeLock(ctx, d.stateDir, filepath.Join(d.stateDir, "lock"), lockWait)
	if err == nil {
		d.onClose(l.release)
	}
	return err
}

// listen opens the listeners. From here on clients wait instead of being
// refused.
func (d *Daemon) listen(ctx context.Context) (unixL, tcpL net.Listener, err error) {
	if d.cfg.TLS() {
		d.cert = &certificate{cert: d.cfg.TLSCert, key: d.cfg.TLSKey}
		if err := d.cert.load(); err != nil {
			return nil, nil, err
		}
	}
	if unixL, err = d.keeper.listener("lu", d.socket(), func() (net.Listener, error) { return listenUnix(ctx, d.socket()) }); err != nil {
		return nil, nil, err
	}
	d.onClose(ignoreClosed(unixL.Close))
	if tcpL, err = d.keeper.listener("lt0", d.cfg.Listen, func() (net.Listener, error) { return listenTCP(ctx, d.cfg.Listen) }); err != nil {
		return nil, nil, err
	}
	d.onClose(ignoreClosed(tcpL.Close))
	return unixL, tcpL, nil
}

// assemble makes the parts from the bottom up. addr is where TCP listens.
func (d *Daemon) assemble(ctx context.Context, o Options, addr string) (err error) {
	hub := events.NewHub()
	d.auth, err = auth.New(auth.Options{
		Store: d.store, Now: failpoint.Now, LinkTTL: d.cfg.LinkTTL, WebTTL: d.cfg.WebTTL, Log: d.log, OwnerUID: d.ownerUID, Hub: hub,
	})
	if err != nil {
		return err
	}
	if err := d.auth.EnsureOwner(ctx); err != nil {
		return fmt.Errorf("make the first admin: %w", err)
	}
	d.openCgroups()
	vault, err := d.vault()
	if err != nil {
		return err
	}
	if d.mgr, err = ptymgr.New(d.sessionConfig(&d.cfg), d.store, vault, hub, d.log); err != nil {
		return err
	}
	d.onClose(func() error { return d.mgr.Shutdown(context.Background()) })
	d.ws = ws.NewServer(ws.Options{
		Manager: d.mgr, Auth: d.auth, Hub: hub, Log: d.log, Build: o.Build.Version, PingEvery: d.cfg.PingInterval,
	})
	var metrics *api.Metrics
	if d.cfg.Metrics {
		metrics = api.NewMetrics(o.Build, d.gauges)
	}
	d.screens = screen.New(d.mgr, d.log)
	d.api, err = api.New(api.Options{
		Manager: d.mgr, Screens: d.screens, Auth: d.auth, Audit: d.store, WS: socketAdapter{d.ws}, Daemon: d, Metrics: metrics, Log: d.log, Build: o.Build,
		Addr: addr, TLS: d.cfg.TLS(), Socket: d.socket(), BasePath: d.cfg.BasePath, PublicURL: d.cfg.PublicURL,
		AllowedHosts: d.cfg.AllowedHosts, TrustedProxies: d.cfg.TrustedProxies, OwnerUID: d.ownerUID, StateDir: d.stateDir, Page: o.Page,
	})
	return err
}

// serve starts the goroutines.
func (d *Daemon) serve(unixL, tcpL net.Listener) {
	waits, endWaits := context.WithCancel(context.Background())
	house, endHouse := context.WithCancel(context.Background())
	d.endWaits, d.endHouse = endWaits, endHouse
	base := func(net.Listener) context.Context { return waits }
	run := func(l net.Listener, srv *http.Server, serve func(net.Listener) error) {
		srv.BaseContext = base
		d.servers = append(d.servers, srv)
		d.serving.Go(func() {
			if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
				d.failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	onUnix := d.api.HTTPServer()
	onUnix.ConnContext = withPeer
	run(unixL, onUnix, onUnix.Serve)
	onTCP := d.api.HTTPServer()
	serveTCP := onTCP.Serve
	if d.cert != nil {
		onTCP.TLSConfig = d.cert.config()
		serveTCP = func(l net.Listener) error { return onTCP.ServeTLS(l, "", "") }
	}
	run(tcpL, onTCP, serveTCP)
	d.serving.Go(func() { d.housekeep(house) })
	if d.keeper != nil {
		d.serving.Go(func() { d.keeper.feed(house, d.healthy, d.log) })
	}
	d.ready.Store(true)
}

// Stop ends the daemon in order: no new requests, goodbye to who is connected,
// the sessions by TERM, grace and KILL, then the store. When ctx ends it waits
// for nobody any more.
func (d *Daemon) Stop(ctx context.Context) error {
	err := d.end(ctx, func() error { return d.mgr.Shutdown(ctx) })
	if d.keeper != nil { // a listener that is stored leaves its file in place
		if e := os.Remove(d.socket()); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Leave ends this process's part and leaves the sessions, with their listeners,
// to the next worker.
func (d *Daemon) Leave(ctx context.Context) error {
	return d.end(ctx, d.mgr.Leave)
}

func (d *Daemon) end(ctx context.Context, sessions func() error) error {
	d.ready.Store(false)
	// Closes the listeners at once, then waits for the requests in hand.
	var draining sync.WaitGroup
	for _, srv := range d.servers {
		draining.Go(func() { _ = srv.Shutdown(ctx) }) // what is left is cut below
	}
	err := d.ws.Shutdown(ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = nil // hurried, as asked
	}
	d.endWaits() // requests that only wait end now
	errs := []error{err, sessions()}
	draining.Wait()
	for _, srv := range d.servers {
		_ = srv.Close()
	}
	d.endHouse()
	d.serving.Wait()
	return errors.Join(append(errs, d.closeAll())...)
}

// Failed tells when a listener broke.
func (d *Daemon) Failed() <-chan error { return d.failed }

// URL is the daemon's address for people on this machine.
func (d *Daemon) URL() string { return d.api.LocalURL() + "/" }

// LoginURL makes a link that logs the owner in, once.
func (d *Daemon) LoginURL(ctx context.Context) (string, error) {
	owner, err := d.auth.Peer(ctx, d.ownerUID)
	if err != nil {
		return "", err
	}
	secret, _, err := d.auth.CreateLink(ctx, owner, "")
	if err != nil {
		return "", fmt.Errorf("make a login link: %w", err)
	}
	return d.api.LoginURL(nil, secret), nil
}

// Reload takes over what can change while the daemon runs.
func (d *Daemon) Reload(c *config.Config) error {
	d.mu.Lock()
	live, restart := config.Diff(&d.cfg, c)
	d.cfg.TakeLive(c)
	now := d.cfg
	d.mu.Unlock()
	d.mgr.Reconfigure(d.sessionConfig(&now))
	if d.level != nil && slices.Contains(live, "log_level") {
		if err := d.level.UnmarshalText([]byte(now.LogLevel)); err != nil {
			return err
		}
	}
	if len(restart) > 0 {
		d.log.Warn("these settings wait for a restart", zap.Strings("keys", restart))
	}
	d.log.Info("configuration read again", zap.Strings("changed", live))
	if d.cert != nil {
		return d.cert.load()
	}
	return nil
}

func (d *Daemon) config() config.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg
}

func (d *Daemon) socket() string { return filepath.Join(d.stateDir, "ptyd.sock") }

func (d *Daemon) onClose(f func() error) { d.undo = append(d.undo, f) }

func (d *Daemon) closeAll() error {
	var errs []error
	for _, f := range slices.Backward(d.undo) {
		errs = append(errs, f())
	}
	d.undo = nil
	return errors.Join(errs...)
}

// ignoreClosed is for a listener that its server has closed already.
func ignoreClosed(f func() error) func() error {
	return func() error {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// stopTime is how long an orderly end may take: the sessions' grace, and time
// to write down how they ended.
func (d *Daemon) stopTime() time.Duration {
	c := d.config()
	return c.Grace + 10*time.Second
}

package ws

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/wire"
)

const (
	helloWait = 10 * time.Second
	// maxChannels is how many sessions one connection may watch at once.
	maxChannels = 256
	// maxHello is the most bytes of a HELLO, and maxGreeting how many connections
	// may be without one: nobody has said yet who they are.
	maxHello    = 8 << 10
	maxGreeting = 128
	// maxControl bounds the control frames that wait for a connection, in bytes.
	maxControl = 1 << 20
)

// Options of a Server.
type Options struct {
	Manager   *ptymgr.Manager
	Auth      *auth.Service
	Hub       *events.Hub
	Log       *zap.Logger
	Build     string
	PingEvery time.Duration // 0 is 20 s
}

// Identity is what the HTTP layer knows of the caller. Host and Origin were
// checked by it.
type Identity struct {
	Principal   *auth.Principal // by bearer token or socket peer
	Cookie      string          // when set and Principal is nil: HELLO must bring the key
	AllowTicket bool            // HELLO may bring a ticket instead
}

// Server serves connections.
type Server struct {
	o   Options
	up  websocket.Upgrader
	log *zap.Logger

	mu    sync.Mutex // guards conns and shut, and wg.Add
	conns map[*conn]struct{}
	shut  bool
	wg    sync.WaitGroup

	resyncs   atomic.Uint64
	skipped   atomic.Uint64
	writeErrs atomic.Uint64
	greeting  atomic.Int64 // connections that have not said HELLO
	inline    atomic.Uint64
	queued    atomic.Uint64
}

// NewServer returns a Server; it starts nothing by itself.
func NewServer(o Options) *Server {
	if o.PingEvery == 0 {
		o.PingEvery = 20 * time.Second
	}
	return &Server{
		o: o, log: o.Log.Named("ws"), conns: map[*conn]struct{}{},
		up: websocket.Upgrader{
			ReadBufferSize:  1024,
			WriteBufferSize: 1024,
			WriteBufferPool: &sync.Pool{},
			Subprotocols:    []string{wire.Subprotocol},
			CheckOrigin:     func(*http.Request) bool { return true }, // checked before Serve
		},
	}
}

// Serve upgrades the request and returns; the connection lives on.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, who Identity) {
	ok := false
	for _, p := range websocket.Subprotocols(r) {
		ok = ok || p == wire.Subprotocol
	}
	if !ok {
		http.Error(w, "the WebSocket subprotocol must be "+wire.Subprotocol, http.StatusBadRequest)
		return
	}
	if s.greeting.Add(1) > maxGreeting {
		s.greeting.Add(-1)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many connections are about to begin, try again in a moment", http.StatusServiceUnavailable)
		return
	}
	c, err := s.up.Upgrade(w, r, nil)
	if err != nil {
		s.greeting.Add(-1)
		s.log.Debug("upgrade", zap.Error(err)) // the answer is written
		return
	}
	s.start(c, who)
}

func (s *Server) start(ws *websocket.Conn, who Identity) {
	c := newConn(s, ws, who)
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		s.greeting.Add(-1)
		ws.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.wg.Add(2)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		c.readLoop()
	}()
	go func() {
		defer s.wg.Done()
		c.writeLoop()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
}

// Stats are counts for the metrics.
type Stats struct {
	Connections  int
	Resyncs      uint64 // viewers that jumped
	SkippedBytes uint64 // bytes that jumps left out
	WriteErrors  uint64
	InlineWrites uint64 // messages written by the reading thread
	QueuedWrites uint64 // messages written by a connection's own goroutine
}

// Stats counts.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.conns)
	s.mu.Unlock()
	return Stats{Connections: n, Resyncs: s.resyncs.Load(), SkippedBytes: s.skipped.Load(), WriteErrors: s.writeErrs.Load(),
		InlineWrites: s.inline.Load(), QueuedWrites: s.queued.Load()}
}

// Shutdown says goodbye to all connections and waits until they are gone; when
// ctx ends it cuts those that do not go.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.shut = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.goodbye(wire.CloseShutdown, "the daemon is stopping")
	}
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range conns {
		c.nc.Close()
	}
	<-done
	return ctx.Err()
}

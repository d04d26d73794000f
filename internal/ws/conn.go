package ws

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/wire"
)

// conn is one connection.
type conn struct {
	srv *Server
	ws  *websocket.Conn
	nc  net.Conn
	raw syscall.RawConn // nil where output must go through nc (TLS)
	who Identity
	in  inliner // used by whoever holds the token

	// Set by the reading goroutine before anything is attached.
	p      auth.Principal
	client ptymgr.ClientID

	alive atomic.Int64 // when the peer last showed progress, Unix nanoseconds
	ended atomic.Bool  // goodbye was called: nothing more is taken from the peer

	mu      sync.Mutex // guards all below
	state   outState
	again   bool   // somebody wants the writing goroutine to look
	rest    []byte // the end of a message that an inline write began
	control []byte // encoded frames
	pongs   []byte // encoded WebSocket control frames
	chans   []*channel
	// detached are channels that we ended and whose frames may still arrive.
	detached map[uint16]struct{}
	sub      *events.Subscription
	bye      *wire.Bye // say this, then close
	gone     bool      // the reading goroutine has ended, or must

	wake     chan struct{}
	subReady chan struct{} // tells the writing goroutine that sub is set
	ackTimer *time.Timer   // sends INPUT_ACKs that no output carried
}

type outState uint8

const (
	idle outState = iota
	writing
)

func newConn(s *Server, ws *websocket.Conn, who Identity) *conn {
	c := &conn{srv: s, ws: ws, nc: ws.NetConn(), who: who, wake: make(chan struct{}, 1), subReady: make(chan struct{}, 1)}
	switch nc := c.nc.(type) {
	case *net.TCPConn:
		c.raw, _ = nc.SyscallConn()
	case *net.UnixConn:
		c.raw, _ = nc.SyscallConn()
	}
	c.in.init()
	c.ackTimer = time.AfterFunc(time.Hour, c.poke)
	c.ackTimer.Stop()
	c.touch()
	return c
}

func (c *conn) touch() { c.alive.Store(time.Now().UnixNano()) }

// refusal ends the connection with a code and a reason.
type refusal struct {
	code   wire.CloseCode
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(code wire.CloseCode, format string, args ...any) error {
	return &refusal{code: code, reason: fmt.Sprintf(format, args...)}
}

// readLoop reads until the peer or we are done, then takes everything down.
func (c *conn) readLoop() {
	c.ws.SetPingHandler(func(data string) error { c.pong(data); return nil })
	c.ws.SetPongHandler(func(string) error { return nil })
	c.ws.SetCloseHandler(func(int, string) error { return nil })
	err := c.read()
	var r *refusal
	var bad *wire.Error
	switch {
	case errors.As(err, &r):
		c.goodbye(r.code, r.reason)
	case errors.As(err, &bad):
		c.goodbye(wire.CloseBadFrame, bad.Error())
	default: // the peer has gone
		c.mu.Lock()
		c.gone = true
		c.mu.Unlock()
		c.poke()
	}
	c.detachAll()
}

func (c *conn) read() error {
	_ = c.ws.SetReadDeadline(time.Now().Add(helloWait))
	release, err := c.hello()
	c.srv.greeting.Add(-1)
	if err != nil {
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return refuse(wire.CloseHelloTimeout, "no HELLO within %v", helloWait)
		}
		return err
	}
	defer release()
	_ = c.ws.SetReadDeadline(time.Time{})
	var buf bytes.Buffer
	for {
		msg, err := c.message(&buf, wire.MaxMessage)
		if err != nil {
			return err
		}
		c.touch()
		if len(msg) == 0 {
			return refuse(wire.CloseBadFrame, "a message without a frame")
		}
		for len(msg) > 0 {
			var f wire.Frame
			if f, msg, err = wire.Decode(msg); err != nil {
				return err
			}
			if c.ended.Load() {
				return errors.New("the connection has ended")
			}
			if err := c.act(f); err != nil {
				return err
			}
		}
		if buf.Cap() > 64<<10 {
			buf = bytes.Buffer{} // one big paste need not be paid for ever after
		}
	}
}

// message reads one message of at most limit bytes. The limit is not gorilla's,
// which would write a close frame of its own past the token.
func (c *conn) message(buf *bytes.Buffer, limit int) ([]byte, error) {
	t, r, err := c.ws.NextReader()
	if err != nil {
		return nil, err
	}
	if t != websocket.BinaryMessage {
		return nil, refuse(wire.CloseBadFrame, "messages must be binary")
	}
	buf.Reset()
	_, err = buf.ReadFrom(io.LimitReader(r, int64(limit)+1))
	if buf.Len() > limit {
		return nil, refuse(wire.CloseBadFrame, "a message of more than %d bytes", limit)
	}
	return buf.Bytes(), err
}

// hello takes the client's HELLO, settles who it is, and answers. release
// unbinds the credential.
func (c *conn) hello() (release func(), err error) {
	var buf bytes.Buffer
	msg, err := c.message(&buf, maxHello)
	if err != nil {
		return nil, err
	}
	f, rest, err := wire.Decode(msg)
	if err != nil {
		return nil, err
	}
	if f.Type != wire.TypeHello || f.Channel != 0 || len(rest) != 0 {
		return nil, refuse(wire.CloseBadFrame, "the first frame must be HELLO, alone and on channel 0")
	}
	h, err := wire.Parse[wire.Hello](f)
	if err != nil {
		return nil, err
	}
	if h.Min > wire.Version || h.Max < wire.Version || h.Min > h.Max {
		return nil, refuse(wire.CloseVersion, "this daemon speaks version %d, the client %d to %d: update the older of the two", wire.Version, h.Min, h.Max)
	}
	id, err := hex.DecodeString(h.ClientID)
	if err != nil || len(id) != len(c.client) {
		return nil, refuse(wire.CloseBadFrame, "client_id must be %d hexadecimal digits", 2*len(c.client))
	}
	copy(c.client[:], id)
	ctx, cancel := context.WithTimeout(context.Background(), helloWait)
	defer cancel()
	switch {
	case c.who.Principal != nil:
		c.p = *c.who.Principal
	case c.who.Cookie != "" && h.Key != "":
		c.p, err = c.srv.o.Auth.Cookie(ctx, c.who.Cookie, h.Key)
	case c.who.AllowTicket && h.Ticket != "":
		c.p, err = c.srv.o.Auth.RedeemTicket(h.Ticket)
	default:
		err = problem.New(problem.Unauthenticated, "log in first")
	}
	if err != nil {
		if problem.Is(err, problem.Unauthenticated) {
			return nil, refuse(wire.CloseUnauthenticated, "not logged in, or the login has ended")
		}
		return nil, err
	}
	release = c.srv.o.Auth.Bind(c.p, func() { c.goodbye(wire.CloseUnauthenticated, "the login or token was revoked or has expired") })
	sh := wire.ServerHello{Version: wire.Version, Build: c.srv.o.Build, MaxFrame: wire.MaxPayload, Capabilities: []string{},
		User: c.p.UserName, Role: string(c.p.Role), PingMS: int(c.srv.o.PingEvery / time.Millisecond)}
	if slices.Contains(h.Capabilities, "events") && auth.Allowed(c.p.Role, auth.EventsWatch) {
		sh.Capabilities = append(sh.Capabilities, "events")
		sub := c.srv.o.Hub.Subscribe()
		c.mu.Lock()
		c.sub = sub
		c.mu.Unlock()
		c.subReady <- struct{}{}
	}
	c.send(wire.Control(wire.TypeHello, 0, 0, sh))
	return release, nil
}

// act does what one frame asks.
func (c *conn) act(f wire.Frame) error {
	if !f.Type.Known() {
		return nil // optional, or Decode had refused it
	}
	if f.Channel == 0 {
		switch f.Type {
		case wire.TypePing:
			if len(f.Payload) > wire.MaxPing {
				return refuse(wire.CloseBadFrame, "PING of more than %d bytes", wire.MaxPing)
			}
			c.send(wire.Frame{Type: wire.TypePong, Offset: f.Offset, Payload: f.Payload})
			return nil
		case wire.TypePong:
			return nil
		}
		return refuse(wire.CloseBadFrame, "%v does not belong on channel 0", f.Type)
	}
	if f.Type == wire.TypeAttach {
		return c.attach(f)
	}
	ch := c.channel(f.Channel)
	if ch == nil {
		if f.Type == wire.TypeAck || f.Type == wire.TypeInput || f.Type == wire.TypeView || f.Type == wire.TypeClaim || f.Type == wire.TypeDetach || f.Type == wire.TypeSignal {
			if c.wasDetached(f.Channel) {
				return nil // it crossed our DETACHED
			}
		}
		return refuse(wire.CloseBadFrame, "%v on channel %d, which is not attached", f.Type, f.Channel)
	}
	return ch.act(f)
}

func (c *conn) channel(id uint16) *channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.chans {
		if ch.id == id {
			return ch
		}
	}
	return nil
}

func (c *conn) markDetached(id uint16) {
	c.mu.Lock()
	if c.detached == nil {
		c.detached = map[uint16]struct{}{}
	}
	c.detached[id] = struct{}{}
	c.mu.Unlock()
}

func (c *conn) wasDetached(id uint16) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.detached[id]
	return ok
}

// send queues a control frame. A peer that lets a megabyte of them pile up is cut.
func (c *conn) send(f wire.Frame) {
	c.mu.Lock()
	c.control = wire.Append(c.control, f)
	over := len(c.control) > maxControl
	wake := c.wantLocked()
	c.mu.Unlock()
	if over {
		c.nc.Close()
	}
	if wake {
		c.poke()
	}
}

// wantLocked asks for the writing goroutine; the caller pokes after unlocking.
func (c *conn) wantLocked() bool {
	if c.again {
		return false
	}
	c.again = true
	return c.state == idle // a holder of the token pokes when done
}

func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// goodbyeWait is how long a peer may take to take what ends the connection.
const goodbyeWait = time.Second

// goodbye ends the connection in order: GOODBYE, the close frame, the end. From
// now on nothing that the peer sends is acted upon, also where it reads nothing
// and the writing goroutine is stuck for it.
func (c *conn) goodbye(code wire.CloseCode, reason string) {
	if len(reason) > 100 { // a close frame holds 123 bytes of reason
		reason = reason[:100]
	}
	c.mu.Lock()
	if c.bye == nil {
		c.bye = &wire.Bye{Code: code, Reason: reason, Retry: code.Retry()}
	}
	c.mu.Unlock()
	c.ended.Store(true)
	_ = c.nc.SetReadDeadline(time.Now())
	_ = c.nc.SetWriteDeadline(time.Now().Add(goodbyeWait))
	c.poke()
}

func (c *conn) detachAll() {
	c.mu.Lock()
	chans := c.chans
	c.chans = nil
	c.mu.Unlock()
	for _, ch := range chans {
		ch.leave()
	}
}

func (c *conn) logger() *zap.Logger { return c.srv.log.With(zap.String("user", c.p.UserName)) }

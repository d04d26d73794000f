package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/ptyd/ptyd/internal/wire"
)

// dialing says how a connection is made.
type dialing struct {
	TCP      bool
	Token    string
	Header   http.Header
	Proto    string      // default ptyd.v1; "none" sends no subprotocol
	Hello    *wire.Hello // default: a plain one
	NoHello  bool        // leave the HELLO to the test
	RcvBuf   int         // receive buffer of the socket, for viewers that stall
	ClientID string
}

// conn is one WebSocket connection. Writes are serialised; one goroutine reads.
type conn struct {
	ws  *websocket.Conn
	raw net.Conn

	mu  sync.Mutex // guards writes to ws
	buf []byte     // encoding buffer, guarded by mu
	msg []byte     // rest of the message being decoded; the reader's own
	srv wire.ServerHello
	// limit ends every wait of this connection: the daemon's pings keep an idle
	// one open for ever.
	limit time.Time
}

// closed is what the peer said when the connection ended.
type closed struct {
	Code   int
	Reason string
}

func (e *closed) Error() string { return fmt.Sprintf("closed with %d %s", e.Code, e.Reason) }

// newClientID returns 32 hexadecimal digits.
func newClientID(r interface{ Uint64() uint64 }) string {
	return fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
}

// plainHello is the HELLO of a client of this version.
func plainHello(clientID string) wire.Hello {
	return wire.Hello{Min: 1, Max: 1, ClientID: clientID, Build: "e2e", MaxFrame: wire.MaxPayload}
}

// dial connects and says HELLO. The HTTP response is returned when the upgrade
// was refused.
func (d *Daemon) dial(o dialing) (*conn, *http.Response, error) {
	c := &conn{limit: time.Now().Add(5 * time.Minute)}
	wd := websocket.Dialer{
		HandshakeTimeout: 10 * time.Second,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nd := net.Dialer{}
			if !o.TCP {
				network, addr = "unix", d.Socket()
			}
			nc, err := nd.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			if o.RcvBuf > 0 {
				if b, ok := nc.(interface{ SetReadBuffer(int) error }); ok {
					_ = b.SetReadBuffer(o.RcvBuf)
				}
			}
			c.raw = nc
			return nc, nil
		},
	}
	switch o.Proto {
	case "none":
	case "":
		wd.Subprotocols = []string{wire.Subprotocol}
	default:
		wd.Subprotocols = []string{o.Proto}
	}
	h := http.Header{}
	for k, v := range o.Header {
		h[k] = v
	}
	if o.Token != "" {
		h.Set("Authorization", "Bearer "+o.Token)
	}
	url := "ws://ptyd/v1/ws"
	if o.TCP {
		url = "ws" + strings.TrimPrefix(d.URL, "http") + "/v1/ws"
	}
	ws, resp, err := wd.Dial(url, h)
	if err != nil {
		return nil, resp, err
	}
	c.ws = ws
	ws.SetReadLimit(4 << 20)
	if o.NoHello {
		return c, resp, nil
	}
	hello := o.Hello
	if hello == nil {
		id := o.ClientID
		if id == "" {
			id = hex.EncodeToString([]byte(fmt.Sprintf("%016d", time.Now().UnixNano()))[:16])
		}
		p := plainHello(id)
		hello = &p
	}
	if err := c.send(wire.Control(wire.TypeHello, 0, 0, hello)); err != nil {
		c.close()
		return nil, resp, err
	}
	f, err := c.next()
	if err != nil {
		c.close()
		return nil, resp, err
	}
	if f.Type != wire.TypeHello {
		c.close()
		return nil, resp, fmt.Errorf("the first frame is %v: %s", f.Type, f.Payload)
	}
	if c.srv, err = wire.Parse[wire.ServerHello](f); err != nil {
		return nil, resp, err
	}
	return c, resp, nil
}

// mustDial connects or fails the test; the test's end closes the connection.
func (d *Daemon) mustDial(o dialing) *conn {
	d.t.Helper()
	c, resp, err := d.dial(o)
	if err != nil {
		status := ""
		if resp != nil {
			status = resp.Status
		}
		d.t.Fatalf("connect: %v %s\n%s", err, status, tailOf(d.Log(), 4<<10))
	}
	d.t.Cleanup(c.close)
	return c
}

// close cuts the connection as a dying client does.
func (c *conn) close() { _ = c.raw.Close() }

// send writes frames as one message.
func (c *conn) send(fs ...wire.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = c.buf[:0]
	for _, f := range fs {
		c.buf = wire.Append(c.buf, f)
	}
	return c.writeLocked(websocket.BinaryMessage, c.buf)
}

// sendRaw writes any message.
func (c *conn) sendRaw(kind int, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writeLocked(kind, b)
}

func (c *conn) writeLocked(kind int, b []byte) error {
	_ = c.ws.SetWriteDeadline(time.Now().Add(30 * time.Second))
	return c.ws.WriteMessage(kind, b)
}

// next returns the next frame. Its payload holds until the call after. The end
// of the connection by a close message is a *closed.
func (c *conn) next() (wire.Frame, error) {
	for len(c.msg) == 0 {
		_ = c.ws.SetReadDeadline(c.limit)
		kind, b, err := c.ws.ReadMessage()
		if err != nil {
			var ce *websocket.CloseError
			if errors.As(err, &ce) {
				return wire.Frame{}, &closed{ce.Code, ce.Text}
			}
			return wire.Frame{}, err
		}
		if kind != websocket.BinaryMessage {
			return wire.Frame{}, fmt.Errorf("a message of kind %d", kind)
		}
		c.msg = b
	}
	f, rest, err := wire.Decode(c.msg)
	if err != nil {
		return f, fmt.Errorf("the daemon sent: %w", err)
	}
	c.msg = rest
	if f.Type == wire.TypePing {
		if err := c.send(wire.Frame{Type: wire.TypePong, Offset: f.Offset, Payload: f.Payload}); err != nil {
			return f, err
		}
		return c.next()
	}
	return f, nil
}

// until reads on until a frame of the type comes, and returns it.
func (c *conn) until(t testing.TB, want wire.Type) wire.Frame {
	t.Helper()
	for {
		f, err := c.next()
		if err != nil {
			t.Fatalf("waiting for %v: %v", want, err)
		}
		if f.Type == want {
			return f
		}
	}
}

// end reads on until the connection ends and returns the code it was ended
// with, from GOODBYE or else from the close message.
func (c *conn) end(t testing.TB) (wire.CloseCode, string) {
	t.Helper()
	c.limit = time.Now().Add(20 * time.Second)
	var bye *wire.Goodbye
	for {
		f, err := c.next()
		if err == nil {
			if f.Type == wire.TypeGoodbye {
				g, perr := wire.Parse[wire.Goodbye](f)
				if perr != nil {
					t.Fatal(perr)
				}
				bye = &g
			}
			continue
		}
		var ce *closed
		if errors.As(err, &ce) {
			if bye != nil && int(bye.Code) != ce.Code {
				t.Errorf("GOODBYE says %d, the close message %d", bye.Code, ce.Code)
			}
			return wire.CloseCode(ce.Code), ce.Reason
		}
		if bye != nil {
			return bye.Code, bye.Reason
		}
		t.Fatalf("the connection ended without a code: %v", err)
	}
}

// attach attaches channel ch and returns ATTACHED.
func (c *conn) attach(t testing.TB, ch uint16, a wire.Attach) wire.Attached {
	t.Helper()
	if err := c.send(wire.Control(wire.TypeAttach, ch, 0, a)); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := c.next()
		if err != nil {
			t.Fatalf("attach %s: %v", a.Session, err)
		}
		switch {
		case f.Channel == ch && f.Type == wire.TypeAttached:
			v, err := wire.Parse[wire.Attached](f)
			if err != nil {
				t.Fatal(err)
			}
			return v
		case f.Channel == ch && f.Type == wire.TypeDetached:
			t.Fatalf("attach %s: %s", a.Session, f.Payload)
		}
	}
}

// detached reads on until channel ch is detached and returns why.
func (c *conn) detached(t testing.TB, ch uint16) wire.Detached {
	t.Helper()
	for {
		f := c.until(t, wire.TypeDetached)
		if f.Channel != ch {
			continue
		}
		v, err := wire.Parse[wire.Detached](f)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

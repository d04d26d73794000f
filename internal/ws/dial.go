package ws

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

// DialOptions say where to connect and as whom.
type DialOptions struct {
	URL    string // ws:// or wss:// URL of /v1/ws; with Socket its host is only a name
	Socket string // path of a Unix socket; "" for TCP
	Token  string // bearer token; "" on the Unix socket for the peer's own rights
	Hello  wire.Hello
	TLS    *tls.Config
}

// Client is the dialler's end of a connection. Send may be called by any
// goroutine, Next by one.
type Client struct {
	ws    *websocket.Conn
	hello wire.ServerHello
	rest  []byte
	buf   []byte

	mu  sync.Mutex // guards out, and the order of writes
	out []byte
}

// GoodbyeError is what Next returns when the server ended the connection with a reason.
type GoodbyeError struct{ wire.Goodbye }

func (e *GoodbyeError) Error() string {
	return fmt.Sprintf("the daemon ended the connection: %s (%d)", e.Reason, e.Code)
}

// writeWait bounds one write; a daemon that reads nothing for so long is gone.
const writeWait = time.Minute

// Dial connects, says HELLO and waits for the server's. An answer of the HTTP
// layer comes back as a *problem.Error where it is one that Dial can name.
func Dial(ctx context.Context, o DialOptions) (*Client, error) {
	d := websocket.Dialer{
		Subprotocols: []string{wire.Subprotocol}, TLSClientConfig: o.TLS, HandshakeTimeout: helloWait,
		ReadBufferSize: 32 << 10, WriteBufferSize: 4 << 10,
	}
	if o.Socket != "" {
		d.NetDialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var nd net.Dialer
			return nd.DialContext(ctx, "unix", o.Socket)
		}
	}
	h := http.Header{}
	if o.Token != "" {
		h.Set("Authorization", "Bearer "+o.Token)
	}
	c, resp, err := d.DialContext(ctx, o.URL, h)
	if err != nil {
		if resp != nil {
			switch resp.StatusCode {
			case http.StatusUnauthorized:
				return nil, problem.New(problem.Unauthenticated, "the daemon refused the credentials").WithHint("check PTYD_TOKEN or --token-file")
			case http.StatusForbidden:
				return nil, problem.New(problem.Forbidden, "the daemon refused the connection")
			}
			return nil, fmt.Errorf("connect to %s: %s", o.URL, resp.Status)
		}
		return nil, fmt.Errorf("connect: %w", err)
	}
	cl := &Client{ws: c}
	if err := cl.greet(ctx, o.Hello); err != nil {
		c.Close()
		return nil, err
	}
	return cl, nil
}

func (c *Client) greet(ctx context.Context, h wire.Hello) error {
	if h.Max == 0 {
		h.Min, h.Max = wire.Version, wire.Version
	}
	deadline := time.Now().Add(helloWait)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = c.ws.SetReadDeadline(deadline)
	if err := c.Send(wire.Control(wire.TypeHello, 0, 0, h)); err != nil {
		return err
	}
	f, err := c.Next()
	if err != nil {
		return err
	}
	if f.Type != wire.TypeHello {
		return fmt.Errorf("the daemon began with %v instead of HELLO", f.Type)
	}
	if c.hello, err = wire.Parse[wire.ServerHello](f); err != nil {
		return err
	}
	return c.ws.SetReadDeadline(time.Time{})
}

// Hello is the server's HELLO.
func (c *Client) Hello() wire.ServerHello { return c.hello }

// Send writes one frame as one message.
func (c *Client) Send(f wire.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = wire.Append(c.out[:0], f)
	_ = c.ws.SetWriteDeadline(time.Now().Add(writeWait))
	return c.ws.WriteMessage(websocket.BinaryMessage, c.out)
}

// Next returns the next frame; its payload is valid until the next call. PINGs
// are answered here. When the server says GOODBYE the error is a *GoodbyeError;
// when the connection just ends it is another.
func (c *Client) Next() (wire.Frame, error) {
	for {
		if len(c.rest) == 0 {
			t, r, err := c.ws.NextReader()
			if err != nil {
				return wire.Frame{}, err
			}
			if t != websocket.BinaryMessage {
				return wire.Frame{}, errors.New("the daemon sent a text message")
			}
			if c.rest, err = c.readAll(r); err != nil {
				return wire.Frame{}, err
			}
			continue
		}
		f, rest, err := wire.Decode(c.rest)
		if err != nil {
			return wire.Frame{}, err
		}
		c.rest = rest
		switch {
		case !f.Type.Known():
		case f.Type == wire.TypePing:
			if err := c.Send(wire.Frame{Type: wire.TypePong, Offset: f.Offset, Payload: f.Payload}); err != nil {
				return wire.Frame{}, err
			}
		case f.Type == wire.TypeGoodbye:
			g, err := wire.Parse[wire.Goodbye](f)
			if err != nil {
				return wire.Frame{}, err
			}
			return wire.Frame{}, &GoodbyeError{g}
		default:
			return f, nil
		}
	}
}

func (c *Client) readAll(r io.Reader) ([]byte, error) {
	b := c.buf[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, make([]byte, max(4096, cap(b)))...)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			c.buf = b
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Close ends the connection at once.
func (c *Client) Close() error { return c.ws.NetConn().Close() }

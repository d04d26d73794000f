package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gorilla/websocket"

	"github.com/ptyd/ptyd/internal/bench/workload"
)

// viewer is one watcher of one session.
type viewer interface {
	// next waits for output and tells where in the session's stream it begins.
	// The bytes are valid until the next call.
	next() (offset uint64, p []byte, err error)
	// skipped is how many bytes the server declared this viewer never gets.
	skipped() uint64
	// input types p.
	input(p []byte) error
	close()
}

// socket reads whole WebSocket messages into one buffer that it uses again, so
// that the measuring side costs little.
type socket struct {
	c   *websocket.Conn
	buf []byte
}

// dial opens a WebSocket that ctx ends.
func dial(ctx context.Context, url string, header http.Header, subprotocols ...string) (*socket, error) {
	d := websocket.Dialer{ReadBufferSize: 64 << 10, Subprotocols: subprotocols, NetDialContext: (&net.Dialer{}).DialContext}
	c, resp, err := d.DialContext(ctx, url, header)
	if err != nil {
		if resp != nil {
			b, _ := io.ReadAll(io.LimitReader(resp.Body, 400))
			return nil, fmt.Errorf("dial %s: %w: %s: %s", url, err, resp.Status, b)
		}
		return nil, fmt.Errorf("dial %s: %w", url, err)
	}
	s := &socket{c: c, buf: make([]byte, 0, 64<<10)}
	context.AfterFunc(ctx, s.close)
	return s, nil
}

func (s *socket) message() ([]byte, error) {
	_, r, err := s.c.NextReader()
	if err != nil {
		return nil, err
	}
	b := s.buf[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			s.buf = b
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// close ends the connection at once, also under a goroutine that reads it.
func (s *socket) close() { s.c.NetConn().Close() }

// awaitReady reads a new session's output up to the workload's first words.
func awaitReady(v viewer) error {
	got := ""
	for len(got) < len(workload.Ready) {
		_, p, err := v.next()
		if err != nil {
			return fmt.Errorf("waiting for the workload: %w", err)
		}
		got += string(p)
	}
	if got != workload.Ready {
		return fmt.Errorf("the workload said %.40q, not %q", got, workload.Ready)
	}
	return nil
}

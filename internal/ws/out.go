package ws

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/wire"
)

// The first byte of a WebSocket frame (RFC 6455, 5.2): FIN and the opcode.
const (
	wsBinary = 0x80 | 0x2
	wsClose  = 0x80 | 0x8
	wsPong   = 0x80 | 0xa
	// wsHeaderMax is the longest header of an unmasked frame.
	wsHeaderMax = 10
)

// wsHeader writes the header of an unmasked frame of n bytes so that it ends at
// the end of h, which has wsHeaderMax bytes, and returns where it begins.
func wsHeader(h []byte, op byte, n int) int {
	switch {
	case n < 126:
		h[8], h[9] = op, byte(n)
		return 8
	case n < 1<<16:
		h[6], h[7] = op, 126
		binary.BigEndian.PutUint16(h[8:], uint16(n))
		return 6
	}
	h[0], h[1] = op, 127
	binary.BigEndian.PutUint64(h[2:], uint64(n))
	return 0
}

func appendWS(dst []byte, op byte, payload []byte) []byte {
	var h [wsHeaderMax]byte
	return append(append(dst, h[wsHeader(h[:], op, len(payload)):]...), payload...)
}

func (c *conn) pong(data string) {
	c.mu.Lock()
	if len(c.pongs) < 4096 { // a flood of pings gets fewer pongs
		c.pongs = appendWS(c.pongs, wsPong, []byte(data))
	}
	wake := c.wantLocked()
	c.mu.Unlock()
	if wake {
		c.poke()
	}
}

// turnSize is how much output one message gathers when viewers are behind.
const turnSize = 64 << 10

// writeLoop writes until the connection ends; it closes the socket, which ends
// the reading goroutine too.
func (c *conn) writeLoop() {
	err := c.write()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.srv.writeErrs.Add(1)
		c.logger().Debug("write to viewer", zap.Error(err))
	}
	c.nc.Close()
	c.ackTimer.Stop()
	c.mu.Lock()
	c.state = writing // for ever: nobody writes inline any more
	sub := c.sub
	c.mu.Unlock()
	c.detachAll()
	if sub != nil {
		sub.Close()
	}
}

func (c *conn) write() error {
	ping := time.NewTicker(c.srv.o.PingEvery)
	defer ping.Stop()
	var events <-chan struct{}
	for {
		for {
			more, err := c.turn()
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
		c.mu.Lock()
		bye, gone := c.bye, c.gone
		c.mu.Unlock()
		if bye != nil {
			return c.farewell(*bye)
		}
		if gone {
			return nil
		}
		select {
		case <-c.wake:
		case <-c.subReady:
			c.mu.Lock()
			events = c.sub.C()
			c.mu.Unlock()
		case <-events:
			for _, e := range c.sub.Take() {
				if e.Owner == "" || c.p.CanSee(e.Owner) {
					c.send(wire.Control(wire.TypeEvent, 0, 0, wire.Event{Type: e.Type, ID: e.ID}))
				}
			}
		case <-ping.C:
			quiet := time.Since(time.Unix(0, c.alive.Load()))
			if quiet > 3*c.srv.o.PingEvery {
				return c.farewell(wire.Bye{Code: wire.CloseDead, Reason: "no sign of life", Retry: true})
			}
			c.send(wire.Frame{Type: wire.TypePing})
		}
	}
}

// turn takes the token and writes what there is, at most about turnSize bytes
// of output. more tells whether another turn may find something.
func (c *conn) turn() (more bool, err error) {
	c.mu.Lock()
	if c.state != idle {
		// An inline write is under way: it pokes when it is done.
		c.again = true
		c.mu.Unlock()
		return false, nil
	}
	c.state = writing
	c.again = false
	rest, control, pongs, chans := c.rest, c.control, c.pongs, c.chans
	c.rest, c.control, c.pongs = nil, nil, nil
	c.mu.Unlock()

	m := messages.Get().(*message)
	m.reset()
	m.frames(control)
	moved := c.fill(m, chans)
	out := m.finish(rest, pongs)
	if len(out) > 0 {
		err = c.writeAll(out)
		c.srv.queued.Add(1)
	}
	messages.Put(m)
	for _, ch := range moved {
		ch.s.Progress()
	}

	c.mu.Lock()
	c.state = idle
	more = c.again || len(out) > 0
	c.mu.Unlock()
	return more, err
}

// fill gathers output of the channels, beginning with another one each turn.
func (c *conn) fill(m *message, chans []*channel) (moved []*channel) {
	if len(chans) == 0 {
		return nil
	}
	c.in.next++
	for i := range chans {
		ch := chans[(c.in.next+i)%len(chans)]
		if ch.fill(m) {
			moved = append(moved, ch)
		}
		if m.full() {
			break
		}
	}
	return moved
}

// writeAll writes p. The deadline counts anew whenever a byte went out.
func (c *conn) writeAll(p []byte) error {
	defer func() { _ = c.nc.SetWriteDeadline(time.Time{}) }()
	for len(p) > 0 {
		_ = c.nc.SetWriteDeadline(time.Now().Add(3 * c.srv.o.PingEvery))
		if c.ended.Load() { // looked at after the deadline is set: goodbye does it the other way round
			_ = c.nc.SetWriteDeadline(time.Now().Add(goodbyeWait))
		}
		n, err := c.nc.Write(p)
		p = p[n:]
		if n > 0 {
			c.touch()
		}
		if err != nil && (n == 0 || c.ended.Load() || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	return nil
}

// farewell says why, and closes. The peer has a second to take it.
func (c *conn) farewell(b wire.Bye) error {
	c.mu.Lock()
	for c.state != idle {
		// An inline write is under way; it does not block and pokes when done.
		c.again = true
		c.mu.Unlock()
		<-c.wake
		c.mu.Lock()
	}
	c.state = writing
	out := c.rest
	control := c.control
	c.mu.Unlock()
	if len(control) > 0 {
		out = appendWS(out, wsBinary, control)
	}
	out = appendWS(out, wsBinary, wire.Append(nil, wire.Control(wire.TypeGoodbye, 0, 0, b)))
	out = appendWS(out, wsClose, append(binary.BigEndian.AppendUint16(nil, uint16(b.Code)), b.Reason...))
	_ = c.nc.SetWriteDeadline(time.Now().Add(goodbyeWait))
	_, err := c.nc.Write(out)
	return err
}

package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/ptyd/ptyd/internal/wire"
)

// ackEvery is how often a client acknowledges, in bytes of output: what the
// protocol asks of every client.
const ackEvery = 32 << 10

// channel is the one channel of a measuring connection.
const channel = 1

// ptydViewer speaks ptyd.v1 with one session on one connection.
type ptydViewer struct {
	*socket
	rest   []byte // frames of the last message that were not looked at yet
	expect uint64 // where the next OUTPUT must begin
	acked  uint64
	skips  uint64

	mu    sync.Mutex // guards out, typed and writing to the socket
	out   []byte
	typed uint64 // bytes of input so far
}

func dialPtyd(ctx context.Context, addr, token, id string) (viewer, error) {
	s, err := dial(ctx, "ws://"+addr+"/v1/ws", http.Header{"Authorization": {"Bearer " + token}}, wire.Subprotocol)
	if err != nil {
		return nil, err
	}
	v := &ptydViewer{socket: s}
	if err := v.attach(id); err != nil {
		s.close()
		return nil, fmt.Errorf("attach %s: %w", id, err)
	}
	return v, nil
}

func (v *ptydViewer) attach(id string) error {
	var client [16]byte
	rand.Read(client[:])
	hello := wire.Hello{Min: wire.Version, Max: wire.Version, ClientID: hex.EncodeToString(client[:]), Build: "ptyd-bench", MaxFrame: wire.MaxPayload}
	attach := wire.Attach{Session: id, Cols: 80, Rows: 24, Visible: true, Kind: wire.KindInteractive}
	if err := v.send(wire.Control(wire.TypeHello, 0, 0, hello)); err != nil {
		return err
	}
	if err := v.send(wire.Control(wire.TypeAttach, channel, 0, attach)); err != nil {
		return err
	}
	for {
		f, err := v.frame()
		if err != nil {
			return err
		}
		if f.Type == wire.TypeAttached {
			v.expect, v.acked = f.Offset, f.Offset
			return nil
		}
		if err := v.control(f); err != nil {
			return err
		}
	}
}

// frame returns the next frame. A measuring client knows every type it can get.
func (v *ptydViewer) frame() (wire.Frame, error) {
	if len(v.rest) == 0 {
		msg, err := v.message()
		if err != nil {
			return wire.Frame{}, err
		}
		v.rest = msg
	}
	f, rest, err := wire.Decode(v.rest)
	v.rest = rest
	return f, err
}

func (v *ptydViewer) next() (uint64, []byte, error) {
	for {
		f, err := v.frame()
		if err != nil {
			return 0, nil, err
		}
		if f.Type != wire.TypeOutput {
			if err := v.control(f); err != nil {
				return 0, nil, err
			}
			continue
		}
		if f.Offset != v.expect {
			return 0, nil, fmt.Errorf("output at %d, expected %d, and no skip was declared", f.Offset, v.expect)
		}
		v.expect += uint64(len(f.Payload))
		if v.expect-v.acked >= ackEvery {
			if err := v.ack(); err != nil {
				return 0, nil, err
			}
		}
		return f.Offset, f.Payload, nil
	}
}

// control does what a client must do about a frame that is not output.
func (v *ptydViewer) control(f wire.Frame) error {
	switch f.Type {
	case wire.TypePing:
		return v.send(wire.Frame{Type: wire.TypePong, Offset: f.Offset, Payload: f.Payload})
	case wire.TypeResync:
		a, err := wire.Parse[wire.Attached](f)
		if err != nil {
			return err
		}
		if v.expect+a.Skipped != f.Offset {
			return fmt.Errorf("resync to %d declares %d bytes skipped, expected %d", f.Offset, a.Skipped, f.Offset-v.expect)
		}
		v.skips += a.Skipped
		v.expect = f.Offset
	case wire.TypeSnapshot:
		if f.Flags&wire.FlagEnd != 0 { // a whole snapshot is acknowledged by the place where it leads
			return v.ack()
		}
	case wire.TypeDetached, wire.TypeGoodbye:
		b, err := wire.Parse[wire.Bye](f)
		if err != nil {
			return err
		}
		return fmt.Errorf("the server ended it: %d %s", b.Code, b.Reason)
	case wire.TypeExit:
		return fmt.Errorf("the workload ended: %s", f.Payload)
	}
	return nil
}

func (v *ptydViewer) ack() error {
	v.acked = v.expect
	return v.send(wire.Frame{Type: wire.TypeAck, Channel: channel, Offset: v.acked})
}

func (v *ptydViewer) skipped() uint64 { return v.skips }

func (v *ptydViewer) input(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.typed
	v.typed += uint64(len(p))
	return v.sendLocked(wire.Frame{Type: wire.TypeInput, Channel: channel, Offset: at, Payload: p})
}

func (v *ptydViewer) send(f wire.Frame) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sendLocked(f)
}

// sendLocked writes under mu, which exists for nothing else: a gorilla
// connection takes one writer at a time.
func (v *ptydViewer) sendLocked(f wire.Frame) error {
	v.out = wire.Append(v.out[:0], f)
	return v.c.WriteMessage(websocket.BinaryMessage, v.out)
}

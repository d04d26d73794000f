package ws

import (
	"sync"

	"github.com/ptyd/ptyd/internal/wire"
)

// message is one WebSocket message under construction, with room in front for
// its header.
type message struct {
	b []byte
}

// messages keeps buffers for turns; an idle connection holds none.
var messages = sync.Pool{New: func() any { return &message{b: make([]byte, 0, wsHeaderMax+turnSize+4096)} }}

func (m *message) reset() { m.b = m.b[:wsHeaderMax] }

// frames adds frames that are encoded already.
func (m *message) frames(p []byte) { m.b = append(m.b, p...) }

// frame adds one frame.
func (m *message) frame(f wire.Frame) { m.b = wire.Append(m.b, f) }

// room is how many payload bytes another frame of output may have.
func (m *message) room() int {
	return min(wsHeaderMax+turnSize-len(m.b)-wire.HeaderSize, wire.MaxPayload)
}

func (m *message) full() bool { return m.room() < 2048 }

// output adds an OUTPUT frame of at most n bytes that read fills; it returns
// how many there were.
func (m *message) output(ch uint16, off uint64, n int, read func([]byte) (int, error)) (int, error) {
	at := len(m.b)
	if need := at + wire.HeaderSize + n; need > cap(m.b) {
		b := make([]byte, at, need+4096)
		copy(b, m.b)
		m.b = b
	}
	m.b = m.b[:at+wire.HeaderSize+n]
	k, err := read(m.b[at+wire.HeaderSize:])
	if err != nil || k == 0 {
		m.b = m.b[:at]
		return 0, err
	}
	m.b = m.b[:at+wire.HeaderSize+k]
	wire.PutHeader(m.b[at:], wire.TypeOutput, 0, ch, k, off)
	return k, nil
}

// finish returns what to write: the rest of an earlier message, WebSocket
// control frames, and this message, where there is something in it.
func (m *message) finish(rest, pongs []byte) []byte {
	var out []byte
	n := len(m.b) - wsHeaderMax
	if n > 0 {
		out = m.b[wsHeader(m.b[:wsHeaderMax], wsBinary, n):]
	}
	if len(rest) == 0 && len(pongs) == 0 {
		return out
	}
	return append(append(rest, pongs...), out...)
}

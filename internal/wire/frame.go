package wire

import (
	"encoding/binary"
	"fmt"
)

const (
	// HeaderSize is the length of a frame's header in bytes.
	HeaderSize = 16
	// MaxPayload is the most payload bytes one frame may carry.
	MaxPayload = 64 << 10
	// MaxMessage bounds one WebSocket message: frames are gathered up to it.
	MaxMessage = 256 << 10
	// MaxPing is the most payload bytes of a PING.
	MaxPing = 64
	// Version is the protocol version that this build speaks.
	Version = 1
	// Subprotocol is the value of Sec-WebSocket-Protocol.
	Subprotocol = "ptyd.v1"
)

// Type is a frame's type. The numbers are frozen.
type Type uint8

// The frame types; DESIGN.md tells who sends which and what they mean.
const (
	TypeHello    Type = 0x01
	TypeAttach   Type = 0x02
	TypeAttached Type = 0x03
	TypeDetach   Type = 0x04
	TypeDetached Type = 0x05
	TypeView     Type = 0x06
	TypeClaim    Type = 0x07
	TypeSignal   Type = 0x08
	TypeSize     Type = 0x09
	TypeExit     Type = 0x0A
	TypeEvent    Type = 0x0B
	TypePing     Type = 0x0C
	TypePong     Type = 0x0D
	TypeGoodbye  Type = 0x0E
	TypeViewers  Type = 0x0F

	TypeOutput   Type = 0x20
	TypeInput    Type = 0x21
	TypeInputAck Type = 0x22
	TypeAck      Type = 0x23
	TypeSnapshot Type = 0x24
	TypeResync   Type = 0x25
)

var typeNames = map[Type]string{
	TypeHello: "HELLO", TypeAttach: "ATTACH", TypeAttached: "ATTACHED", TypeDetach: "DETACH",
	TypeDetached: "DETACHED", TypeView: "VIEW", TypeClaim: "CLAIM", TypeSignal: "SIGNAL",
	TypeSize: "SIZE", TypeExit: "EXIT", TypeEvent: "EVENT", TypePing: "PING", TypePong: "PONG",
	TypeGoodbye: "GOODBYE", TypeViewers: "VIEWERS", TypeOutput: "OUTPUT", TypeInput: "INPUT",
	TypeInputAck: "INPUT_ACK", TypeAck: "ACK", TypeSnapshot: "SNAPSHOT", TypeResync: "RESYNC",
}

// Known reports whether t is a type of this version.
func (t Type) Known() bool { _, ok := typeNames[t]; return ok }

func (t Type) String() string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return fmt.Sprintf("type 0x%02x", uint8(t))
}

// Flags is a frame's second byte.
type Flags uint8

const (
	// FlagOptional lets a receiver that does not know the type skip the frame.
	FlagOptional Flags = 1 << 0
	// FlagEnd marks the last chunk of a SNAPSHOT.
	FlagEnd Flags = 1 << 1

	knownFlags = FlagOptional | FlagEnd
)

// Frame is one decoded frame. Payload of a decoded frame points into the
// message it was decoded from.
type Frame struct {
	Type    Type
	Flags   Flags
	Channel uint16
	Offset  uint64
	Payload []byte
}

// Error tells why a message was refused; the connection ends with CloseBadFrame.
type Error struct{ Reason string }

func (e *Error) Error() string { return "bad frame: " + e.Reason }

func bad(format string, args ...any) error { return &Error{Reason: fmt.Sprintf(format, args...)} }

// PutHeader writes the header of a frame with n payload bytes into h, which
// must hold HeaderSize bytes. n must be at most MaxPayload.
func PutHeader(h []byte, t Type, fl Flags, channel uint16, n int, offset uint64) {
	_ = h[HeaderSize-1]
	h[0] = byte(t)
	h[1] = byte(fl)
	binary.BigEndian.PutUint16(h[2:], channel)
	binary.BigEndian.PutUint32(h[4:], uint32(n))
	binary.BigEndian.PutUint64(h[8:], offset)
}

// Append appends f's encoding to dst. It panics when the payload is longer
// than MaxPayload: that is an error of the caller, never of the peer.
func Append(dst []byte, f Frame) []byte {
	if len(f.Payload) > MaxPayload {
		panic(fmt.Sprintf("wire: %v frame with %d payload bytes", f.Type, len(f.Payload)))
	}
	var h [HeaderSize]byte
	PutHeader(h[:], f.Type, f.Flags, f.Channel, len(f.Payload), f.Offset)
	dst = append(dst, h[:]...)
	return append(dst, f.Payload...)
}

// Decode takes the first frame off msg. Frames of unknown type that carry
// FlagOptional are returned like others: the caller skips what !Type.Known().
// The error, if any, is an *Error.
func Decode(msg []byte) (f Frame, rest []byte, err error) {
	if len(msg) < HeaderSize {
		return f, nil, bad("%d bytes are shorter than a header", len(msg))
	}
	f.Type = Type(msg[0])
	f.Flags = Flags(msg[1])
	f.Channel = binary.BigEndian.Uint16(msg[2:])
	n := binary.BigEndian.Uint32(msg[4:])
	f.Offset = binary.BigEndian.Uint64(msg[8:])
	if f.Flags&^knownFlags != 0 {
		return f, nil, bad("unknown flags 0x%02x", uint8(f.Flags))
	}
	if n > MaxPayload {
		return f, nil, bad("%v frame of %d bytes, at most %d are allowed", f.Type, n, MaxPayload)
	}
	if uint64(len(msg)-HeaderSize) < uint64(n) {
		return f, nil, bad("%v frame of %d bytes is cut short at %d", f.Type, n, len(msg)-HeaderSize)
	}
	if !f.Type.Known() && f.Flags&FlagOptional == 0 {
		return f, nil, bad("unknown %v", f.Type)
	}
	end := HeaderSize + int(n)
	f.Payload = msg[HeaderSize:end:end]
	return f, msg[end:], nil
}

package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Epoch names one run of a session's process: random, never reused. In JSON it
// is 16 hexadecimal digits, because JavaScript's numbers hold only 53 bits.
type Epoch uint64

// MarshalText implements encoding.TextMarshaler.
func (e Epoch) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(e)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Epoch) UnmarshalText(b []byte) error {
	if len(b) != 16 {
		return fmt.Errorf("epoch: want 16 hexadecimal digits, got %d characters", len(b))
	}
	v, err := strconv.ParseUint(string(b), 16, 64)
	*e = Epoch(v)
	return err
}

func (e Epoch) String() string { return fmt.Sprintf("%016x", uint64(e)) }

// Hello is the client's HELLO.
type Hello struct {
	Min          int      `json:"min"`
	Max          int      `json:"max"`
	ClientID     string   `json:"client_id"` // 32 hexadecimal digits, kept across reconnects
	Capabilities []string `json:"capabilities,omitempty"`
	Build        string   `json:"build,omitempty"`
	MaxFrame     int      `json:"max_frame,omitempty"`
	Key          string   `json:"key,omitempty"`    // the origin's own key, with a cookie
	Ticket       string   `json:"ticket,omitempty"` // single use, instead of other credentials
}

// ServerHello is the server's HELLO.
type ServerHello struct {
	Version      int      `json:"version"`
	Build        string   `json:"build"`
	MaxFrame     int      `json:"max_frame"`
	Capabilities []string `json:"capabilities"`
	User         string   `json:"user"`
	Role         string   `json:"role"`
	PingMS       int      `json:"ping_ms"`
}

// Kind is what a viewer is for; it decides its window and whether it may own the size.
type Kind string

// The kinds of viewers.
const (
	KindInteractive Kind = "interactive"
	KindPreview     Kind = "preview"
	KindAgent       Kind = "agent"
)

// Attach is the payload of ATTACH.
type Attach struct {
	Session     string  `json:"session"`
	Epoch       *Epoch  `json:"epoch,omitempty"`
	HaveOffset  *uint64 `json:"have_offset,omitempty"`
	Cols        int     `json:"cols,omitempty"`
	Rows        int     `json:"rows,omitempty"`
	Visible     bool    `json:"visible"`
	Kind        Kind    `json:"kind,omitempty"`
	ReadOnly    bool    `json:"read_only,omitempty"`
	InputOffset uint64  `json:"input_offset,omitempty"`
	Tail        *uint64 `json:"tail,omitempty"`
}

// Mode tells how a viewer's stream begins.
type Mode string

// The modes of ATTACHED and RESYNC.
const (
	ModeDelta    Mode = "delta"
	ModeSnapshot Mode = "snapshot"
)

// FormatTail is the snapshot format of a daemon without a screen emulator: the
// payload resets, and the stream goes on from a safe point of the kept output.
const FormatTail = "vt-tail.1"

// Attached is the payload of ATTACHED and RESYNC.
type Attached struct {
	Session       string `json:"session"`
	Epoch         Epoch  `json:"epoch"`
	Mode          Mode   `json:"mode"`
	Offset        uint64 `json:"offset"`
	Head          uint64 `json:"head"` // what the session had written when it was attached
	Cols          int    `json:"cols"`
	Rows          int    `json:"rows"`
	State         string `json:"state"`
	Owner         string `json:"owner"` // of the size: a viewer's name, "" when nobody owns it
	You           bool   `json:"you"`
	ReadOnly      bool   `json:"read_only"`
	TruncatedFrom uint64 `json:"truncated_from"`
	Skipped       uint64 `json:"skipped,omitempty"`
	InputOffset   int64  `json:"input_offset"`
	Window        int    `json:"window"`
	Name          string `json:"name"`
	Format        string `json:"format,omitempty"`
}

// View is the payload of VIEW.
type View struct {
	Cols    int  `json:"cols"`
	Rows    int  `json:"rows"`
	Visible bool `json:"visible"`
}

// Signal is the payload of SIGNAL.
type Signal struct {
	Signal string `json:"signal"`
}

// Size is the payload of SIZE.
type Size struct {
	Cols  int    `json:"cols"`
	Rows  int    `json:"rows"`
	Owner string `json:"owner"`
	You   bool   `json:"you"`
}

// Exit is the payload of EXIT. Code and Signal are null when unknown.
type Exit struct {
	Code   *int    `json:"code"`
	Signal *string `json:"signal"`
	State  string  `json:"state"`
}

// Event is the payload of EVENT: something changed, read it again.
type Event struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Bye is the payload of DETACHED and GOODBYE.
type Bye struct {
	Code   CloseCode `json:"code"`
	Reason string    `json:"reason"`
	Retry  bool      `json:"retry"`
}

// Detached is the payload of DETACHED.
type Detached = Bye

// Goodbye is the payload of GOODBYE.
type Goodbye = Bye

// Viewers is the payload of VIEWERS.
type Viewers struct {
	Count int `json:"count"`
}

// CloseCode says why a channel or a connection ended.
type CloseCode int

// The close codes; Retry tells whether coming back makes sense.
const (
	CloseNormal          CloseCode = 1000
	CloseBadFrame        CloseCode = 4400
	CloseUnauthenticated CloseCode = 4401
	CloseForbidden       CloseCode = 4403
	CloseNoSession       CloseCode = 4404
	CloseVersion         CloseCode = 4406
	CloseHelloTimeout    CloseCode = 4408
	CloseBadAck          CloseCode = 4409
	CloseBadInput        CloseCode = 4410
	CloseRemoved         CloseCode = 4411
	CloseTooMany         CloseCode = 4412
	CloseShutdown        CloseCode = 4420
	CloseDead            CloseCode = 4421
	CloseSlowHandshake   CloseCode = 4422
)

// Retry reports whether a client should come back after c.
func (c CloseCode) Retry() bool {
	switch c {
	case CloseHelloTimeout, CloseTooMany, CloseShutdown, CloseDead, CloseSlowHandshake:
		return true
	}
	return false
}

// Control makes a control frame with v as its JSON payload.
func Control(t Type, channel uint16, offset uint64, v any) Frame {
	b, err := json.Marshal(v)
	if err != nil { // the payloads are this package's own structs: they always encode
		panic(fmt.Sprintf("wire: encode %v: %v", t, err))
	}
	return Frame{Type: t, Channel: channel, Offset: offset, Payload: b}
}

// Parse decodes the JSON payload of a control frame. The error is an *Error.
func Parse[T any](f Frame) (v T, err error) {
	if e := json.Unmarshal(f.Payload, &v); e != nil {
		return v, bad("%v payload: %v", f.Type, e)
	}
	return v, nil
}

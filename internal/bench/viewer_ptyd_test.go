package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/ptyd/ptyd/internal/wire"
)

// fakeDaemon answers HELLO and ATTACH, then hands the connection to script.
func fakeDaemon(t *testing.T, script func(c *websocket.Conn)) string {
	t.Helper()
	up := websocket.Upgrader{Subprotocols: []string{wire.Subprotocol}}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/ws" || r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		if f := receive(t, c); f.Type != wire.TypeHello {
			t.Errorf("first frame: %v", f.Type)
		}
		if f := receive(t, c); f.Type != wire.TypeAttach || f.Channel != channel {
			t.Errorf("second frame: %v on %d", f.Type, f.Channel)
		}
		transmit(c,
			wire.Control(wire.TypeHello, 0, 0, wire.ServerHello{Version: wire.Version}),
			wire.Control(wire.TypeAttached, channel, 0, wire.Attached{Mode: wire.ModeSnapshot}),
			wire.Frame{Type: wire.TypeSnapshot, Flags: wire.FlagEnd, Channel: channel, Payload: []byte("\x1bc")})
		script(c)
		for { // until the viewer is gone
			if _, _, err := c.NextReader(); err != nil {
				return
			}
		}
	}))
	t.Cleanup(ts.Close)
	return strings.TrimPrefix(ts.URL, "http://")
}

// transmit sends frames as one message.
func transmit(c *websocket.Conn, frames ...wire.Frame) {
	var b []byte
	for _, f := range frames {
		b = wire.Append(b, f)
	}
	c.WriteMessage(websocket.BinaryMessage, b)
}

func receive(t *testing.T, c *websocket.Conn) wire.Frame {
	_, b, err := c.ReadMessage()
	if err != nil {
		t.Errorf("the viewer sent nothing: %v", err)
		return wire.Frame{}
	}
	f, rest, err := wire.Decode(b)
	if err != nil || len(rest) > 0 {
		t.Errorf("the viewer sent %q: %v", b, err)
	}
	return f
}

func output(at uint64, p string) wire.Frame {
	return wire.Frame{Type: wire.TypeOutput, Channel: channel, Offset: at, Payload: []byte(p)}
}

func watch(t *testing.T, addr string) *ptydViewer {
	t.Helper()
	v, err := dialPtyd(t.Context(), addr, "secret", "s_1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.close)
	return v.(*ptydViewer)
}

func TestPtydViewerReadsAcknowledgesAndAnswers(t *testing.T) {
	half := strings.Repeat("x", ackEvery/2)
	addr := fakeDaemon(t, func(c *websocket.Conn) {
		if f := receive(t, c); f.Type != wire.TypeAck || f.Offset != 0 {
			t.Errorf("after the snapshot: %v %d", f.Type, f.Offset)
		}
		transmit(c, output(0, half), wire.Frame{Type: wire.TypePing, Offset: 9, Payload: []byte("p")}, output(uint64(len(half)), half))
		if f := receive(t, c); f.Type != wire.TypePong || f.Offset != 9 || string(f.Payload) != "p" {
			t.Errorf("answer to the ping: %v %d %q", f.Type, f.Offset, f.Payload)
		}
		if f := receive(t, c); f.Type != wire.TypeAck || f.Offset != ackEvery {
			t.Errorf("acknowledgement: %v %d", f.Type, f.Offset)
		}
		for want := uint64(0); want <= 2; want += 2 {
			if f := receive(t, c); f.Type != wire.TypeInput || f.Offset != want {
				t.Errorf("input: %v %d, want %d", f.Type, f.Offset, want)
			}
		}
		transmit(c, output(ackEvery, "end"))
	})
	v := watch(t, addr)
	for _, want := range []uint64{0, uint64(len(half))} {
		if at, p, err := v.next(); err != nil || at != want || len(p) != len(half) {
			t.Fatalf("output at %d of %d bytes, %v", at, len(p), err)
		}
	}
	for range 2 {
		if err := v.input([]byte("ab")); err != nil {
			t.Fatal(err)
		}
	}
	if at, p, err := v.next(); err != nil || at != ackEvery || string(p) != "end" {
		t.Errorf("output %q at %d, %v", p, at, err)
	}
	if v.skipped() != 0 {
		t.Errorf("skipped %d", v.skipped())
	}
}

func TestPtydViewerCountsDeclaredSkips(t *testing.T) {
	addr := fakeDaemon(t, func(c *websocket.Conn) {
		transmit(c, output(0, "abc"),
			wire.Control(wire.TypeResync, channel, 1003, wire.Attached{Offset: 1003, Skipped: 1000}),
			output(1003, "def"))
	})
	v := watch(t, addr)
	for _, want := range []uint64{0, 1003} {
		if at, _, err := v.next(); err != nil || at != want {
			t.Errorf("output at %d, %v; want %d", at, err, want)
		}
	}
	if v.skipped() != 1000 {
		t.Errorf("skipped %d", v.skipped())
	}
}

func TestPtydViewerRefusesFaults(t *testing.T) {
	for name, c := range map[string]struct {
		frame wire.Frame
		want  string
	}{
		"silent gap":  {output(5, "x"), "no skip was declared"},
		"false count": {wire.Control(wire.TypeResync, channel, 50, wire.Attached{Skipped: 40}), "declares 40"},
		"detached":    {wire.Control(wire.TypeDetached, channel, 0, wire.Bye{Code: wire.CloseBadAck, Reason: "ack"}), "4409 ack"},
		"goodbye":     {wire.Control(wire.TypeGoodbye, 0, 0, wire.Bye{Code: wire.CloseShutdown}), "4420"},
		"exit":        {wire.Control(wire.TypeExit, channel, 0, wire.Exit{State: "exited"}), "workload ended"},
	} {
		v := watch(t, fakeDaemon(t, func(conn *websocket.Conn) { transmit(conn, c.frame) }))
		if _, _, err := v.next(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestPtydViewerShowsARefusedUpgrade(t *testing.T) {
	addr := fakeDaemon(t, func(*websocket.Conn) {})
	if _, err := dialPtyd(t.Context(), addr, "wrong", "s_1"); err == nil || !strings.Contains(err.Error(), "who are you") {
		t.Errorf("%v", err)
	}
}

package e2e

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/ptyd/ptyd/internal/wire"
)

// header makes a frame's header with any length, true or not.
func header(typ wire.Type, flags byte, ch uint16, n uint32, off uint64) []byte {
	h := make([]byte, wire.HeaderSize)
	h[0], h[1] = byte(typ), flags
	binary.BigEndian.PutUint16(h[2:], ch)
	binary.BigEndian.PutUint32(h[4:], n)
	binary.BigEndian.PutUint64(h[8:], off)
	return h
}

// Each violation ends this connection with its code, and only this one.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", "echo up; cat")
	d.waitText(s.ID, "up")
	witness := d.mustDial(dialing{})
	witness.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24})

	big := append(header(wire.TypeInput, 0, 1, wire.MaxPayload+1, 0), make([]byte, wire.MaxPayload+1)...)
	hello := wire.Append(nil, wire.Control(wire.TypeHello, 0, 0, plainHello(strings.Repeat("ab", 16))))
	long := wire.Append(nil, wire.Frame{Type: wire.TypePing, Payload: make([]byte, wire.MaxPing+1)})
	for _, c := range []struct {
		name string
		kind int
		msg  []byte
		want wire.CloseCode
	}{
		{"empty message", websocket.BinaryMessage, nil, wire.CloseBadFrame},
		{"short header", websocket.BinaryMessage, make([]byte, 15), wire.CloseBadFrame},
		{"truncated payload", websocket.BinaryMessage, header(wire.TypeInput, 0, 1, 10, 0), wire.CloseBadFrame},
		{"oversized payload", websocket.BinaryMessage, big, wire.CloseBadFrame},
		{"length of 4 GiB", websocket.BinaryMessage, header(wire.TypeInput, 0, 1, 0xffffffff, 0), wire.CloseBadFrame},
		{"unknown type", websocket.BinaryMessage, header(0x7f, 0, 0, 0, 0), wire.CloseBadFrame},
		{"unknown flag", websocket.BinaryMessage, header(wire.TypePing, 0x80, 0, 0, 0), wire.CloseBadFrame},
		{"channel that is not attached", websocket.BinaryMessage, header(wire.TypeInput, 0, 9, 0, 0), wire.CloseBadFrame},
		{"frame of the server", websocket.BinaryMessage, header(wire.TypeOutput, 0, 1, 0, 0), wire.CloseBadFrame},
		{"JSON that is none", websocket.BinaryMessage, append(header(wire.TypeView, 0, 1, 1, 0), '{'), wire.CloseBadFrame},
		{"ATTACH of a channel in use", websocket.BinaryMessage, wire.Append(nil, wire.Control(wire.TypeAttach, 1, 0, wire.Attach{Session: s.ID})), wire.CloseBadFrame},
		{"ATTACH of channel 0", websocket.BinaryMessage, wire.Append(nil, wire.Control(wire.TypeAttach, 0, 0, wire.Attach{Session: s.ID})), wire.CloseBadFrame},
		{"second HELLO", websocket.BinaryMessage, hello, wire.CloseBadFrame},
		{"PING too long", websocket.BinaryMessage, long, wire.CloseBadFrame},
		{"text message", websocket.TextMessage, []byte(`{"type":"input","data":"x"}`), wire.CloseBadFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := d.mustDial(dialing{})
			x.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24})
			if err := x.sendRaw(c.kind, c.msg); err != nil {
				t.Fatal(err)
			}
			code, reason := x.end(t)
			if code != c.want || reason == "" {
				t.Errorf("ended with %d %q, want %d and a reason", code, reason, c.want)
			}
		})
	}

	t.Run("message beyond the limit", func(t *testing.T) {
		x := d.mustDial(dialing{})
		var msg []byte
		for len(msg) <= wire.MaxMessage {
			msg = wire.Append(msg, wire.Frame{Type: wire.TypePing, Flags: wire.FlagOptional, Payload: make([]byte, wire.MaxPing)})
		}
		// The daemon may hang up before all of it is written.
		_ = x.sendRaw(websocket.BinaryMessage, append(msg, make([]byte, 4<<20)...))
		for {
			if _, err := x.next(); err != nil {
				break
			}
		}
	})

	t.Run("unknown type that may be skipped", func(t *testing.T) {
		x := d.mustDial(dialing{})
		msg := append(header(0x7f, byte(wire.FlagOptional), 0, 3, 0), "abc"...)
		msg = wire.Append(msg, wire.Frame{Type: wire.TypePing, Payload: []byte("still here")})
		if err := x.sendRaw(websocket.BinaryMessage, msg); err != nil {
			t.Fatal(err)
		}
		if f := x.until(t, wire.TypePong); string(f.Payload) != "still here" {
			t.Errorf("PONG holds %q", f.Payload)
		}
	})

	// The witness saw nothing of all this.
	if err := witness.send(wire.Frame{Type: wire.TypeInput, Channel: 1, Payload: []byte("witness\n")}); err != nil {
		t.Fatal(err)
	}
	if f := witness.until(t, wire.TypeInputAck); f.Offset != 8 {
		t.Errorf("INPUT_ACK %d", f.Offset)
	}
	d.waitText(s.ID, "witness")
}

// Violations inside a channel end the channel; the connection stays.
func TestHostileChannels(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", "echo up; cat")
	d.waitText(s.ID, "up")
	future := d.session(s.ID).Offset + 1<<40
	x := d.mustDial(dialing{})
	ch := uint16(0)
	for _, c := range []struct {
		name string
		att  wire.Attach
		send []wire.Frame
		want wire.CloseCode
	}{
		{"ACK of the future", wire.Attach{Session: s.ID}, []wire.Frame{{Type: wire.TypeAck, Offset: future}}, wire.CloseBadAck},
		{"ACK of the last offset there is", wire.Attach{Session: s.ID}, []wire.Frame{{Type: wire.TypeAck, Offset: ^uint64(0)}}, wire.CloseBadAck},
		{"INPUT gap", wire.Attach{Session: s.ID}, []wire.Frame{{Type: wire.TypeInput, Offset: 5, Payload: []byte("x")}}, wire.CloseBadInput},
		{"INPUT beyond all numbers", wire.Attach{Session: s.ID}, []wire.Frame{{Type: wire.TypeInput, Offset: ^uint64(0), Payload: []byte("xyz")}}, wire.CloseBadInput},
		{"INPUT, read-only", wire.Attach{Session: s.ID, ReadOnly: true}, []wire.Frame{{Type: wire.TypeInput, Payload: []byte("read-only-typed\n")}}, wire.CloseForbidden},
		{"CLAIM, read-only", wire.Attach{Session: s.ID, ReadOnly: true}, []wire.Frame{{Type: wire.TypeClaim}}, wire.CloseForbidden},
		{"SIGNAL, read-only", wire.Attach{Session: s.ID, ReadOnly: true}, []wire.Frame{wire.Control(wire.TypeSignal, 0, 0, wire.Signal{Signal: "KILL"})}, wire.CloseForbidden},
		{"no such session", wire.Attach{Session: "s_nothing"}, nil, wire.CloseNoSession},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch++
			c.att.Cols, c.att.Rows, c.att.Visible = 80, 24, true
			frames := []wire.Frame{wire.Control(wire.TypeAttach, ch, 0, c.att)}
			for _, f := range c.send {
				f.Channel = ch
				frames = append(frames, f)
			}
			if err := x.send(frames...); err != nil {
				t.Fatal(err)
			}
			got := x.detached(t, ch)
			if got.Code != c.want || got.Reason == "" || got.Retry != c.want.Retry() {
				t.Errorf("DETACHED %+v, want %d, a reason, retry %v", got, c.want, c.want.Retry())
			}
		})
	}
	if out := string(d.output(s.ID, 0)); strings.Contains(out, "read-only-typed") {
		t.Error("a read-only channel typed")
	}
	if got := d.session(s.ID); got.State != "running" {
		t.Errorf("the session is %s", got.State)
	}
	// The same connection still works, and channel numbers are free again.
	x.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24})
	if err := x.send(wire.Frame{Type: wire.TypeInput, Channel: 1, Payload: []byte("alive\n")}); err != nil {
		t.Fatal(err)
	}
	d.waitText(s.ID, "alive")
}

// The handshake has a limit in time, wants a version and the subprotocol.
func TestHello(t *testing.T) {
	t.Parallel()
	d := start(t)
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		x := d.mustDial(dialing{NoHello: true})
		begin := time.Now()
		code, _ := x.end(t)
		if took := time.Since(begin); code != wire.CloseHelloTimeout || took < 5*time.Second || took > 20*time.Second {
			t.Errorf("ended with %d after %v, want %d after 10 s", code, took, wire.CloseHelloTimeout)
		}
	})
	t.Run("something else first", func(t *testing.T) {
		t.Parallel()
		x := d.mustDial(dialing{NoHello: true})
		if err := x.send(wire.Frame{Type: wire.TypePing}); err != nil {
			t.Fatal(err)
		}
		if code, _ := x.end(t); code != wire.CloseBadFrame {
			t.Errorf("ended with %d, want %d", code, wire.CloseBadFrame)
		}
	})
	t.Run("future version", func(t *testing.T) {
		t.Parallel()
		x := d.mustDial(dialing{NoHello: true})
		h := plainHello(strings.Repeat("0", 32))
		h.Min, h.Max = 7, 9
		if err := x.send(wire.Control(wire.TypeHello, 0, 0, h)); err != nil {
			t.Fatal(err)
		}
		if code, reason := x.end(t); code != wire.CloseVersion || reason == "" {
			t.Errorf("ended with %d %q, want %d", code, reason, wire.CloseVersion)
		}
	})
	t.Run("client_id that is none", func(t *testing.T) {
		t.Parallel()
		x := d.mustDial(dialing{NoHello: true})
		if err := x.send(wire.Control(wire.TypeHello, 0, 0, plainHello("me"))); err != nil {
			t.Fatal(err)
		}
		if code, _ := x.end(t); code != wire.CloseBadFrame {
			t.Errorf("ended with %d, want %d", code, wire.CloseBadFrame)
		}
	})
	for _, proto := range []string{"none", "ptyd.v9"} {
		t.Run("subprotocol "+proto, func(t *testing.T) {
			t.Parallel()
			c, resp, err := d.dial(dialing{Proto: proto})
			if err == nil {
				c.close()
				t.Fatal("the upgrade went through")
			}
			if resp == nil || resp.StatusCode != 400 && resp.StatusCode != 426 {
				t.Errorf("refused with %v, %v", resp, err)
			}
		})
	}
}

// Thousands of acknowledgements, repeated and useless, do no harm.
func TestAckStorm(t *testing.T) {
	t.Parallel()
	d := start(t)
	n := uint64(4 << 20)
	s := d.child("flood", *seed, n)
	storm := d.mustDial(dialing{})
	a := storm.attach(t, 1, wire.Attach{Session: s.ID, Visible: true, Cols: 80, Rows: 24})
	at := a.Offset
	sc := streamCheck{seed: *seed}
	sent := 0
	for done := false; !done; {
		f, err := storm.next()
		if err != nil {
			t.Fatalf("at offset %d after %d ACKs: %v", at, sent, err)
		}
		switch f.Type {
		case wire.TypeOutput:
			if f.Offset != at {
				t.Fatalf("OUTPUT at %d, expected %d", f.Offset, at)
			}
			if err := sc.check(f.Offset, f.Payload); err != nil {
				t.Fatal(err)
			}
			at += uint64(len(f.Payload))
			acks := make([]wire.Frame, 0, 51)
			for i := range uint64(50) { // old ones, equal ones
				acks = append(acks, wire.Frame{Type: wire.TypeAck, Channel: 1, Offset: at - at*i/50})
			}
			if err := storm.send(append(acks, wire.Frame{Type: wire.TypeAck, Channel: 1, Offset: at})...); err != nil {
				t.Fatal(err)
			}
			sent += len(acks) + 1
		case wire.TypeResync, wire.TypeDetached:
			t.Fatalf("%v %s at %d", f.Type, f.Payload, at)
		case wire.TypeExit:
			done = true
		}
	}
	if at != n || sent < 2000 {
		t.Errorf("%d bytes of %d, %d ACKs", at, n, sent)
	}
}

// Many channels on one connection: up to the limit they work, beyond it they
// are refused, and the others go on.
func TestChannelLimit(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.run("bash", "-c", "echo up; cat")
	x := d.mustDial(dialing{})
	for ch := uint16(1); ch <= 256; ch++ {
		x.attach(t, ch, wire.Attach{Session: s.ID, Visible: true, Kind: wire.KindPreview, Cols: 80, Rows: 24})
	}
	if err := x.send(wire.Control(wire.TypeAttach, 257, 0, wire.Attach{Session: s.ID, Cols: 80, Rows: 24})); err != nil {
		t.Fatal(err)
	}
	if got := x.detached(t, 257); got.Code != wire.CloseTooMany || !got.Retry {
		t.Errorf("channel 257: %+v", got)
	}
	if err := x.send(wire.Frame{Type: wire.TypeDetach, Channel: 256}); err != nil {
		t.Fatal(err)
	}
	x.detached(t, 256)
	x.attach(t, 256, wire.Attach{Session: s.ID, Kind: wire.KindPreview})
	if n := d.session(s.ID).Viewers; n != 256 {
		t.Errorf("%d viewers, want 256", n)
	}
	if err := x.send(wire.Frame{Type: wire.TypeInput, Channel: 256, Payload: []byte(fmt.Sprintln("to all"))}); err != nil {
		t.Fatal(err)
	}
	d.waitText(s.ID, "to all")
}

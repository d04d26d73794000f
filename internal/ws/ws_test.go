package ws_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/store"
	"github.com/ptyd/ptyd/internal/wire"
	"github.com/ptyd/ptyd/internal/ws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a manager and a server behind a Unix socket.
type rig struct {
	m    *ptymgr.Manager
	srv  *ws.Server
	st   *store.Store
	sock string
	user auth.User
}

func newRig(t *testing.T, cfg ptymgr.Config, role auth.Role) *rig {
	t.Helper()
	log := zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	dir := t.TempDir()
	st, err := store.Open(t.Context(), store.Options{DSN: filepath.Join(dir, "ptyd.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	u := auth.User{ID: "u_test", Name: "test", Role: auth.Admin, CreatedAt: time.Now()}
	if err := st.InsertUser(t.Context(), u, ""); err != nil {
		t.Fatal(err)
	}
	hub := events.NewHub()
	v, err := ptymgr.NewDirect()
	if err != nil {
		t.Fatal(err)
	}
	m, err := ptymgr.New(cfg, st, v, hub, log)
	if err != nil {
		t.Fatal(err)
	}
	as, err := auth.New(auth.Options{Store: st, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{m: m, st: st, sock: filepath.Join(dir, "s"), user: u}
	r.srv = ws.NewServer(ws.Options{Manager: m, Auth: as, Hub: hub, Log: log, Build: "test"})
	p := auth.Principal{UserID: u.ID, UserName: u.Name, Role: role, Via: "socket"}
	ln, err := net.Listen("unix", r.sock)
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.srv.Serve(w, q, ws.Identity{Principal: &p}) })}
	go func() { _ = hs.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for _, err := range []error{r.srv.Shutdown(ctx), hs.Close(), m.Shutdown(ctx), st.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		v.Close()
	})
	return r
}

func (r *rig) run(t *testing.T, script string) *ptymgr.Session {
	t.Helper()
	i, _, err := r.m.Create(t.Context(), ptymgr.Spec{Argv: []string{"bash", "--norc", "-c", script}, Owner: r.user.ID, Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return r.m.Session(i.ID)
}

// started runs a script that waits for a line before it begins.
func (r *rig) started(t *testing.T, script string) *ptymgr.Session {
	t.Helper()
	s := r.run(t, prelude+script)
	res, err := r.m.Wait(t.Context(), s.ID(), ptymgr.Conditions{Text: regexp.MustCompile("go\r\n")})
	if err != nil || res.Matched != "text" {
		t.Fatal(res, err)
	}
	return s
}

func newID() string { b := make([]byte, 16); _, _ = rand.Read(b); return hex.EncodeToString(b) }

func (r *rig) dial(t *testing.T, id string) *ws.Client {
	t.Helper()
	c, err := ws.Dial(t.Context(), ws.DialOptions{URL: "ws://ptyd/v1/ws", Socket: r.sock, Hello: wire.Hello{ClientID: id, Capabilities: []string{"events"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func attach(t *testing.T, c *ws.Client, ch uint16, a wire.Attach) wire.Attached {
	t.Helper()
	if err := c.Send(wire.Control(wire.TypeAttach, ch, 0, a)); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.TypeAttached && f.Channel == ch {
			at, err := wire.Parse[wire.Attached](f)
			if err != nil || at.Offset != f.Offset {
				t.Fatalf("%+v %v", at, err)
			}
			return at
		}
		if f.Type == wire.TypeDetached {
			t.Fatalf("detached: %s", f.Payload)
		}
	}
}

// ledger checks one viewer's stream: every byte at its offset, every gap said.
type ledger struct {
	next    uint64
	skipped uint64
	bytes   uint64
	check   func(off uint64, p []byte) error
}

func (l *ledger) take(f wire.Frame) error {
	switch f.Type {
	case wire.TypeOutput:
		if f.Offset != l.next {
			return fmt.Errorf("output at %d, want %d", f.Offset, l.next)
		}
		if err := l.check(f.Offset, f.Payload); err != nil {
			return err
		}
		l.next += uint64(len(f.Payload))
		l.bytes += uint64(len(f.Payload))
	case wire.TypeResync:
		a, err := wire.Parse[wire.Attached](f)
		if err != nil {
			return err
		}
		if a.Offset < l.next || a.Skipped != a.Offset-l.next {
			return fmt.Errorf("resync from %d to %d says %d skipped", l.next, a.Offset, a.Skipped)
		}
		l.skipped += a.Skipped
		l.next = a.Offset
	}
	return nil
}

// prelude begins every script: the lines that follow it begin at offset 4.
const prelude = "stty -echo; echo go; read x; "

// lines checks the output of `seq -f %07g`, nine bytes a line with CR LF, after
// the prelude.
func lines(off uint64, p []byte) error {
	if off < 4 {
		n := min(4-off, uint64(len(p)))
		off, p = off+n, p[n:]
	}
	for off -= min(4, off); len(p) > 0; {
		want := fmt.Sprintf("%07d\r\n", off/9+1)[off%9:]
		n := min(len(want), len(p))
		if string(p[:n]) != want[:n] {
			return fmt.Errorf("at %d: %q, want %q", off, p[:n], want[:n])
		}
		off, p = off+uint64(n), p[n:]
	}
	return nil
}

// Viewers of every temper on one flood: each sees exactly the stream, with
// every gap declared, and the fast ones are not held by the others.
func TestLedger(t *testing.T) {
	r := newRig(t, ptymgr.Config{OutputLimit: 256 << 10, Grace: time.Second}, auth.Admin)
	// Bursts: long enough to overrun the slow, with pauses in which all catch up.
	s := r.started(t, "for ((k=0;k<150;k++)); do seq -f %07g $((k*1000+1)) $((k*1000+1000)); done; exit 7")
	var wg sync.WaitGroup
	var resyncs, reconnects atomic.Int64
	seed := mrand.Uint64()
	t.Logf("seed %d", seed)
	viewer := func(k int, temper string) {
		rnd := mrand.New(mrand.NewPCG(seed, uint64(k)))
		id := newID()
		l := &ledger{check: lines}
		var epoch *wire.Epoch
	connect:
		for {
			c := r.dial(t, id)
			a := wire.Attach{Session: s.ID(), Visible: true, Epoch: epoch}
			if epoch != nil {
				a.HaveOffset = &l.next
			}
			at := attach(t, c, 5, a)
			if epoch != nil && at.Mode == wire.ModeSnapshot {
				l.skipped += at.Offset - min(l.next, at.Offset)
				resyncs.Add(1)
			}
			l.next = at.Offset
			epoch = &at.Epoch
			acked := l.next
			for n := 0; ; n++ {
				f, err := c.Next()
				if err != nil {
					t.Errorf("viewer %d (%s): %v", k, temper, err)
					return
				}
				if f.Type == wire.TypeResync {
					resyncs.Add(1)
				}
				if err := l.take(f); err != nil {
					t.Errorf("viewer %d (%s): %v", k, temper, err)
					return
				}
				if f.Type == wire.TypeExit {
					e, _ := wire.Parse[wire.Exit](f)
					if e.Code == nil || *e.Code != 7 || f.Offset != l.next || l.bytes+l.skipped != f.Offset {
						t.Errorf("viewer %d (%s): exit %s at %d, has %d and skipped %d", k, temper, f.Payload, f.Offset, l.bytes, l.skipped)
					}
					c.Close()
					return
				}
				switch temper {
				case "slow":
					if rnd.IntN(3) == 0 {
						time.Sleep(time.Millisecond) // it is what a slow viewer does
					}
				case "stalling":
					if rnd.IntN(20) == 0 {
						time.Sleep(20 * time.Millisecond)
					}
				case "flapping":
					if rnd.IntN(10) == 0 {
						c.Close()
						reconnects.Add(1)
						continue connect
					}
				}
				if l.next-acked >= 32<<10 || rnd.IntN(8) == 0 {
					acked = l.next
					if err := c.Send(wire.Frame{Type: wire.TypeAck, Channel: 5, Offset: acked}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		}
	}
	for k, temper := range []string{"fast", "fast", "slow", "stalling", "flapping", "flapping"} {
		wg.Go(func() { viewer(k, temper) })
	}
	for s.Info().Viewers < 5 {
		time.Sleep(time.Millisecond)
	}
	if err := r.m.Input(t.Context(), s.ID(), []byte("\r")); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	st := r.srv.Stats()
	t.Logf("%d resyncs, %d reconnects, %d inline and %d queued writes", resyncs.Load(), reconnects.Load(), st.InlineWrites, st.QueuedWrites)
	if reconnects.Load() == 0 || st.QueuedWrites == 0 {
		t.Error("the interesting cases did not happen")
	}
}

// One viewer that keeps up is served inline, byte for byte.
func TestInlineExact(t *testing.T) {
	r := newRig(t, ptymgr.Config{Grace: time.Second}, auth.Admin)
	s := r.started(t, "for ((k=1;k<=3000;k++)); do printf '%07d\\n' $k; done")
	c := r.dial(t, newID())
	l := &ledger{check: lines}
	l.next = attach(t, c, 1, wire.Attach{Session: s.ID(), Visible: true}).Offset
	if err := c.Send(wire.Frame{Type: wire.TypeInput, Channel: 1, Payload: []byte("\r")}); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.take(f); err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.TypeExit {
			break
		}
		if f.Type == wire.TypeOutput {
			_ = c.Send(wire.Frame{Type: wire.TypeAck, Channel: 1, Offset: l.next})
		}
	}
	if n := r.srv.Stats().InlineWrites; n == 0 {
		t.Error("nothing was written inline: the case did not happen")
	}
}

// Keystrokes across cut connections: the program gets each exactly once.
func TestInputAcrossReconnects(t *testing.T) {
	r := newRig(t, ptymgr.Config{Grace: time.Second}, auth.Admin)
	const total = 20000
	s := r.run(t, fmt.Sprintf("stty raw -echo; echo ready; head -c %d | od -An -v -tx1; echo; echo END", total))
	// Before that it would be a terminal that takes some bytes as signals.
	if res, err := r.m.Wait(t.Context(), s.ID(), ptymgr.Conditions{Text: regexp.MustCompile("ready")}); err != nil || res.Matched != "text" {
		t.Fatal(res, err)
	}
	id := newID()
	rnd := mrand.New(mrand.NewPCG(11, 12))
	want := make([]byte, total)
	for i := range want {
		want[i] = byte(rnd.IntN(256))
	}
	var acked, reconnects uint64
	var out []byte
	var have uint64
	var epoch *wire.Epoch
	for acked < total || !bytes.Contains(out, []byte("END")) {
		c := r.dial(t, id)
		a := wire.Attach{Session: s.ID(), Visible: true, InputOffset: acked, Epoch: epoch}
		if epoch != nil {
			a.HaveOffset = &have
		}
		at := attach(t, c, 2, a)
		epoch, have = &at.Epoch, at.Offset
		if at.InputOffset < int64(acked) {
			t.Fatalf("the daemon has %d, it had acknowledged %d", at.InputOffset, acked)
		}
		acked = uint64(at.InputOffset)
		sent := acked
		frames := 2 + rnd.IntN(40)
		for range frames {
			for sent < total && sent-acked < 4000 {
				n := min(1+rnd.IntN(300), total-int(sent))
				if err := c.Send(wire.Frame{Type: wire.TypeInput, Channel: 2, Offset: sent, Payload: want[sent : sent+uint64(n)]}); err != nil {
					t.Fatal(err)
				}
				sent += uint64(n)
			}
			f, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			switch f.Type {
			case wire.TypeInputAck:
				acked = f.Offset
			case wire.TypeOutput:
				out = append(out, f.Payload...)
				have = f.Offset + uint64(len(f.Payload))
				_ = c.Send(wire.Frame{Type: wire.TypeAck, Channel: 2, Offset: have})
			}
			if bytes.Contains(out, []byte("END")) {
				break
			}
		}
		c.Close()
		reconnects++
	}
	_, dump, _ := strings.Cut(string(out), "ready")
	dump, _, _ = strings.Cut(dump, "END")
	got, err := hex.DecodeString(strings.Join(strings.Fields(dump), ""))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes arrived, want %d (%v)", len(got), len(want), err)
	}
	t.Logf("%d connections", reconnects)
}

func TestHostileFrames(t *testing.T) {
	r := newRig(t, ptymgr.Config{Grace: time.Second}, auth.Admin)
	s := r.run(t, "cat")
	att := func(a wire.Attach) wire.Frame { a.Session = s.ID(); return wire.Control(wire.TypeAttach, 1, 0, a) }
	for name, c := range map[string]struct {
		frames []wire.Frame
		bye    wire.CloseCode // of the connection, or of the channel
	}{
		"unknown channel":   {[]wire.Frame{{Type: wire.TypeInput, Channel: 9, Payload: []byte("x")}}, wire.CloseBadFrame},
		"server's frame":    {[]wire.Frame{att(wire.Attach{}), {Type: wire.TypeOutput, Channel: 1}}, wire.CloseBadFrame},
		"attach twice":      {[]wire.Frame{att(wire.Attach{}), att(wire.Attach{})}, wire.CloseBadFrame},
		"attach on 0":       {[]wire.Frame{wire.Control(wire.TypeAttach, 0, 0, wire.Attach{})}, wire.CloseBadFrame},
		"attach garbage":    {[]wire.Frame{{Type: wire.TypeAttach, Channel: 1, Payload: []byte("{")}}, wire.CloseBadFrame},
		"attach kind":       {[]wire.Frame{att(wire.Attach{Kind: "boss"})}, wire.CloseBadFrame},
		"attach size":       {[]wire.Frame{att(wire.Attach{Cols: 65535, Rows: 65535})}, wire.CloseBadFrame},
		"no such session":   {[]wire.Frame{wire.Control(wire.TypeAttach, 1, 0, wire.Attach{Session: "nope"})}, wire.CloseNoSession},
		"ack of the future": {[]wire.Frame{att(wire.Attach{}), {Type: wire.TypeAck, Channel: 1, Offset: 1 << 60}}, wire.CloseBadAck},
		"input gap":         {[]wire.Frame{att(wire.Attach{}), {Type: wire.TypeInput, Channel: 1, Offset: 7, Payload: []byte("x")}}, wire.CloseBadInput},
		"input, read-only":  {[]wire.Frame{att(wire.Attach{ReadOnly: true}), {Type: wire.TypeInput, Channel: 1, Payload: []byte("x")}}, wire.CloseForbidden},
		"claim, read-only":  {[]wire.Frame{att(wire.Attach{ReadOnly: true}), {Type: wire.TypeClaim, Channel: 1}}, wire.CloseForbidden},
		"signal, read-only": {[]wire.Frame{att(wire.Attach{ReadOnly: true}), wire.Control(wire.TypeSignal, 1, 0, wire.Signal{Signal: "KILL"})}, wire.CloseForbidden},
		"view of no size":   {[]wire.Frame{att(wire.Attach{}), wire.Control(wire.TypeView, 1, 0, wire.View{Visible: true})}, wire.CloseBadFrame},
		"big ping":          {[]wire.Frame{{Type: wire.TypePing, Payload: make([]byte, 65)}}, wire.CloseBadFrame},
		"second hello":      {[]wire.Frame{wire.Control(wire.TypeHello, 0, 0, wire.Hello{Min: 1, Max: 1, ClientID: newID()})}, wire.CloseBadFrame},
		"detach of nothing": {[]wire.Frame{{Type: wire.TypeDetach, Channel: 3}}, wire.CloseBadFrame},
	} {
		t.Run(name, func(t *testing.T) {
			cl := r.dial(t, newID())
			for _, f := range c.frames {
				if err := cl.Send(f); err != nil {
					t.Fatal(err)
				}
			}
			for {
				f, err := cl.Next()
				var bye *ws.GoodbyeError
				switch {
				case errors.As(err, &bye):
					if bye.Code != c.bye || bye.Reason == "" || bye.Retry != bye.Code.Retry() {
						t.Errorf("%+v, want code %d", bye, c.bye)
					}
					return
				case err != nil:
					t.Fatal(err)
				case f.Type == wire.TypeDetached:
					d, err := wire.Parse[wire.Detached](f)
					if err != nil || d.Code != c.bye || d.Reason == "" {
						t.Errorf("%+v %v, want code %d", d, err, c.bye)
					}
					return
				}
			}
		})
	}
	// The session has seen nothing of it.
	if i := s.Info(); i.State != ptymgr.Running || i.Viewers != 0 {
		// Connections end on their own goroutines: give them the time.
		deadline := time.Now().Add(10 * time.Second)
		for s.Info().Viewers != 0 && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		if i := s.Info(); i.State != ptymgr.Running || i.Viewers != 0 {
			t.Errorf("%+v", i)
		}
	}
}

// A viewer that acknowledges nothing gets its window and no more, and costs the
// daemon nothing beyond it; when it wakes up it is told what it missed.
func TestWindow(t *testing.T) {
	r := newRig(t, ptymgr.Config{OutputLimit: 256 << 10, Grace: time.Second}, auth.Admin)
	s := r.started(t, "seq -f %07g 1 200000; sleep 60")
	c := r.dial(t, newID())
	at := attach(t, c, 1, wire.Attach{Session: s.ID(), Visible: true})
	l := &ledger{check: func(uint64, []byte) error { return nil }, next: at.Offset}
	if err := r.m.Input(t.Context(), s.ID(), []byte("\r")); err != nil {
		t.Fatal(err)
	}
	res, err := r.m.Wait(t.Context(), s.ID(), ptymgr.Conditions{Idle: 300 * time.Millisecond})
	if err != nil || res.Matched != "idle" {
		t.Fatal(res, err)
	}
	var acked uint64
	for l.next < s.Ring().Head() {
		f, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.take(f); err != nil {
			t.Fatal(err)
		}
		switch flight := l.bytes - acked; {
		case flight > uint64(at.Window):
			t.Fatalf("%d bytes without an acknowledgement, the window is %d", flight, at.Window)
		case flight == uint64(at.Window): // now nothing comes until it is said
			acked = l.bytes
			if err := c.Send(wire.Frame{Type: wire.TypeAck, Channel: 1, Offset: l.next}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l.skipped == 0 || l.bytes+l.skipped != l.next-at.Offset {
		t.Errorf("%d delivered and %d declared skipped of %d", l.bytes, l.skipped, l.next)
	}
}

func TestEventsAndShutdown(t *testing.T) {
	r := newRig(t, ptymgr.Config{Grace: time.Second}, auth.Admin)
	c := r.dial(t, newID())
	s := r.run(t, "sleep 60")
	for {
		f, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.TypeEvent {
			e, err := wire.Parse[wire.Event](f)
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == "session" && e.ID == s.ID() {
				break
			}
		}
	}
	done := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Next(); err != nil {
				done <- err
				return
			}
		}
	}()
	if err := r.srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var bye *ws.GoodbyeError
	if err := <-done; !errors.As(err, &bye) || bye.Code != wire.CloseShutdown || !bye.Retry {
		t.Errorf("%v", err)
	}
}

// A peer that reads nothing cannot go on typing after the goodbye.
func TestGoodbyeStopsInput(t *testing.T) {
	r := newRig(t, ptymgr.Config{OutputLimit: 256 << 10, Grace: time.Second}, auth.Admin)
	flood := r.run(t, "yes")
	c := r.dial(t, newID())
	for ch := uint16(1); ch <= 8; ch++ { // more than any socket buffer, unread
		if err := c.Send(wire.Control(wire.TypeAttach, ch, 0, wire.Attach{Session: flood.ID()})); err != nil {
			t.Fatal(err)
		}
	}
	s := r.started(t, "cat")
	if err := c.Send(wire.Control(wire.TypeAttach, 9, 0, wire.Attach{Session: s.ID()})); err != nil {
		t.Fatal(err)
	}
	for s.Info().Viewers == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if err := r.srv.Shutdown(ctx); err != nil {
		t.Fatal("the connection does not end:", err)
	}
	before := s.Ring().Head()
	_ = c.Send(wire.Frame{Type: wire.TypeInput, Channel: 9, Payload: []byte("late\r")})
	if res, err := r.m.Wait(t.Context(), s.ID(), ptymgr.Conditions{Idle: 200 * time.Millisecond}); err != nil || res.Matched != "idle" || s.Ring().Head() != before {
		t.Errorf("typed after the goodbye: %+v %v, %d bytes", res, err, s.Ring().Head()-before)
	}
}

// An admin's own session of a name comes before that of another user.
func TestOwnNameFirst(t *testing.T) {
	r := newRig(t, ptymgr.Config{Grace: time.Second}, auth.Admin)
	mine, _, err := r.m.Create(t.Context(), ptymgr.Spec{Argv: []string{"sleep", "60"}, Owner: r.user.ID, Name: "work"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.st.InsertUser(t.Context(), auth.User{ID: "u_other", Name: "other", Role: auth.Operator, CreatedAt: time.Now()}, ""); err != nil {
		t.Fatal(err)
	}
	theirs, _, err := r.m.Create(t.Context(), ptymgr.Spec{Argv: []string{"sleep", "60"}, Owner: "u_other", Name: "work"})
	if err != nil {
		t.Fatal(err)
	}
	c := r.dial(t, newID())
	if at := attach(t, c, 1, wire.Attach{Session: "work"}); at.Session != mine.ID {
		t.Errorf("attached to %s, mine is %s", at.Session, mine.ID)
	}
	if at := attach(t, c, 2, wire.Attach{Session: theirs.ID}); at.Session != theirs.ID {
		t.Errorf("by id: %s", at.Session)
	}
}

// Nobody who has not said who they are can take more than a little.
func TestBeforeHello(t *testing.T) {
	r := newRig(t, ptymgr.Config{Grace: time.Second}, auth.Admin)
	d := websocket.Dialer{Subprotocols: []string{wire.Subprotocol}, NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var nd net.Dialer
		return nd.DialContext(ctx, "unix", r.sock)
	}}
	var silent []*websocket.Conn
	refused := 0
	for range 140 {
		c, resp, err := d.DialContext(t.Context(), "ws://ptyd/v1/ws", nil)
		if err == nil {
			silent = append(silent, c)
			continue
		}
		if resp == nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Fatal(resp, err)
		}
		refused++
	}
	if len(silent) != 128 || refused != 12 {
		t.Errorf("%d connections without HELLO, %d refused", len(silent), refused)
	}
	// One that says too much is told so, in the protocol's words.
	if err := silent[0].WriteMessage(websocket.BinaryMessage, make([]byte, 9<<10)); err != nil {
		t.Fatal(err)
	}
	_, msg, err := silent[0].ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := wire.Decode(msg)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := wire.Parse[wire.Goodbye](f); f.Type != wire.TypeGoodbye || err != nil || g.Code != wire.CloseBadFrame {
		t.Errorf("%v %s %v", f.Type, f.Payload, err)
	}
	for _, c := range silent {
		c.Close()
	}
	// Their places are free again.
	deadline := time.Now().Add(10 * time.Second)
	for {
		c, err := ws.Dial(t.Context(), ws.DialOptions{URL: "ws://ptyd/v1/ws", Socket: r.sock, Hello: wire.Hello{ClientID: newID()}})
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

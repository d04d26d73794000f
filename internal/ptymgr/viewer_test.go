package ptymgr_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// follower takes everything, as a viewer without a socket.
type follower struct {
	s       *ptymgr.Session
	pos     atomic.Uint64
	changed chan struct{}
	stuck   bool // never moves
}

func newFollower(s *ptymgr.Session) *follower {
	return &follower{s: s, changed: make(chan struct{}, 1)}
}

func (f *follower) Output(start uint64, a, b []byte, _ bool) {
	if !f.stuck {
		f.pos.Store(start + uint64(len(a)+len(b)))
	}
	f.Changed()
}

func (f *follower) Changed() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *follower) Position() uint64 { return f.pos.Load() }

func (f *follower) until(t *testing.T, cond func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-f.changed:
		case <-deadline:
			t.Fatal("did not happen within 20 s")
		}
	}
}

// Repeated and overlapping input arrives once; a gap and too much are refused.
func TestInputExactlyOnce(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "stty raw -echo; echo ready; head -c 20000 | od -An -v -tx1")
	text(t, m, i.ID, "ready")
	s := m.Session(i.ID)
	id := ptymgr.ClientID{1}
	var acked atomic.Uint64
	more := make(chan struct{}, 1)
	ack := func(n uint64) {
		acked.Store(n)
		select {
		case more <- struct{}{}:
		default:
		}
	}
	if at := s.Client(id, 0, ack); at != 0 {
		t.Fatalf("a new client stands at %d", at)
	}
	want := make([]byte, 20000)
	rnd := rand.New(rand.NewPCG(3, 4))
	for k := range want {
		want[k] = byte(rnd.IntN(256))
	}
	for off := 0; off < len(want); {
		n := min(1+rnd.IntN(700), len(want)-off)
		from := max(0, off-rnd.IntN(300)) // some of it again
		if err := s.WriteInput(id, uint64(from), want[from:off+n]); err != nil {
			t.Fatal(err)
		}
		off += n
		if rnd.IntN(20) == 0 {
			if at := s.Client(id, acked.Load(), ack); at != int64(off) { // a reconnect
				t.Fatalf("after a reconnect the client stands at %d, want %d", at, off)
			}
		}
	}
	for acked.Load() < uint64(len(want)) {
		<-more
	}
	exited(t, m, i.ID)
	_, dump, _ := strings.Cut(output(t, m, i.ID), "ready")
	got, err := hex.DecodeString(regexp.MustCompile(`\s`).ReplaceAllString(dump, ""))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("the program got %d bytes that differ from the %d typed", len(got), len(want))
	}
}

func TestInputRefused(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "stty raw -echo; echo ready; sleep 60")
	text(t, m, i.ID, "ready")
	s := m.Session(i.ID)
	id := ptymgr.ClientID{2}
	if err := s.WriteInput(id, 0, []byte("x")); err == nil {
		t.Error("an unknown client was accepted")
	}
	s.Client(id, 0, nil)
	if err := s.WriteInput(id, 5, []byte("x")); err == nil {
		t.Error("a gap was accepted")
	}
	// Nobody reads: the terminal fills up, then the window does.
	var off uint64
	var err error
	for range 200 {
		if err = s.WriteInput(id, off, make([]byte, 1000)); err != nil {
			break
		}
		off += 1000
	}
	if err == nil {
		t.Error("input without bound was accepted")
	}
	if at := s.Client(ptymgr.ClientID{9}, 77, nil); at != -1 {
		t.Errorf("a client that counted before is known at %d", at)
	}
	if err := m.Input(t.Context(), i.ID, make([]byte, 70000)); !problem.Is(err, problem.TooLarge) {
		t.Errorf("70,000 bytes at once: %v", err)
	}
}

// Many small pieces to a program that does not read: bounded in all, merged, and
// no other session waits for them when it reads again.
func TestTinyInputHoldsNobodyUp(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "stty raw -echo; echo ready; kill -STOP $$; head -c 200000 >/dev/null; sleep 60")
	other := create(t, m, "cat")
	text(t, m, i.ID, "ready")
	s, o := m.Session(i.ID), m.Session(other.ID)
	var in uint64
	var full *ptymgr.InputError
clients:
	for k := range 8 {
		id := ptymgr.ClientID{byte(k + 1)}
		s.Client(id, 0, nil)
		for off := range uint64(ptymgr.MaxUnacked) {
			if err := s.WriteInput(id, off, []byte("x")); errors.As(err, &full) {
				break clients
			} else if err != nil {
				t.Fatal(err)
			}
			in++
		}
	}
	if full == nil || !full.Full || in < 200000 || in > 300000 {
		t.Fatalf("%d bytes were taken, then %+v", in, full)
	}
	if err := m.Signal(t.Context(), i.ID, "CONT"); err != nil {
		t.Fatal(err)
	}
	o.Client(ptymgr.ClientID{99}, 0, nil)
	for k := range 50 {
		if err := o.WriteInput(ptymgr.ClientID{99}, uint64(2*k), []byte("y\n")); err != nil {
			t.Fatal(err)
		}
	}
	text(t, m, other.ID, `(y\r\n){50}`)
	r := wait(t, m, i.ID, ptymgr.Conditions{Idle: 300 * time.Millisecond})
	if r.Matched != "idle" {
		t.Error(r)
	}
}

// What the terminal did not take at once goes on when its reader reads.
func TestStalledInputGoesOn(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "stty raw -echo; echo ready; read -rs -n1 -t 0.3 -u 1; sleep 0.3; head -c 60000 | md5sum; exit 0")
	text(t, m, i.ID, "ready")
	if err := m.Input(t.Context(), i.ID, bytes.Repeat([]byte("z"), 60001)); err != nil {
		t.Fatal(err)
	}
	text(t, m, i.ID, "[0-9a-f]{32}")
}

func TestLongLineInCanonicalMode(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "echo ready; read -r x; echo got ${#x}")
	text(t, m, i.ID, "ready")
	if err := m.Input(t.Context(), i.ID, []byte(strings.Repeat("a", 5000)+"\n")); !problem.Is(err, problem.TooLarge) {
		t.Errorf("a line that the terminal would cut: %v", err)
	}
	if err := m.Input(t.Context(), i.ID, []byte(strings.Repeat("a", 4000)+"\n")); err != nil {
		t.Error(err)
	}
	text(t, m, i.ID, "got 4000")
}

// In canonical mode Backspace erases a whole character.
func TestBackspaceErasesCharacters(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "echo ready; read -r x; printf 'got [%s]\\n' \"$x\"")
	text(t, m, i.ID, "ready")
	if err := m.Input(t.Context(), i.ID, []byte("xä\x7fy\n")); err != nil {
		t.Fatal(err)
	}
	text(t, m, i.ID, `got \[xy\]`)
}

func TestSignals(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "trap 'echo INT' INT; trap 'echo USR1' USR1; trap 'echo WINCH' WINCH; echo ready; while :; do sleep 0.05; done")
	text(t, m, i.ID, "ready")
	for _, s := range []string{"INT", "sigusr1"} {
		if err := m.Signal(t.Context(), i.ID, s); err != nil {
			t.Fatal(err)
		}
		text(t, m, i.ID, strings.ToUpper(strings.TrimPrefix(s, "sig")))
	}
	if err := m.Resize(t.Context(), i.ID, 100, 30); err != nil {
		t.Fatal(err)
	}
	text(t, m, i.ID, "WINCH")
	for _, s := range []string{"", "NOPE", "0", "99", "SIGSIGINT"} {
		if err := m.Signal(t.Context(), i.ID, s); !problem.Is(err, problem.InvalidArgument) {
			t.Errorf("signal %q: %v", s, err)
		}
	}
	if err := m.Signal(t.Context(), i.ID, "9"); err != nil {
		t.Fatal(err)
	}
	if e := exited(t, m, i.ID); e.Signal != "SIGKILL" {
		t.Errorf("%+v", e)
	}
	if err := m.Signal(t.Context(), i.ID, "INT"); !problem.Is(err, problem.SessionEnded) {
		t.Errorf("signal an ended one: %v", err)
	}
}

func TestSizeFollowsTheViewerInUse(t *testing.T) {
	m := manager(t)
	i := create(t, m, "sleep", "60")
	s := m.Session(i.ID)
	attach := func(name string, sizes, visible bool, cols, rows uint16) *ptymgr.Viewer {
		v, err := s.Attach(newFollower(s), ptymgr.ViewerOptions{Name: name, Sizes: sizes, Visible: visible, Cols: cols, Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	want := func(step string, cols, rows uint16, owner *ptymgr.Viewer) {
		t.Helper()
		if i := s.Info(); i.Cols != cols || i.Rows != rows {
			t.Errorf("%s: %d×%d, want %d×%d", step, i.Cols, i.Rows, cols, rows)
		}
		if owner != nil && !owner.SizeAt(1<<62).You {
			t.Errorf("%s: another viewer holds the size", step)
		}
	}
	want("start", 80, 24, nil)
	preview := attach("preview", false, true, 20, 10)
	want("a preview never claims", 80, 24, nil)
	preview.Claim()
	want("a preview never claims, even when asked", 80, 24, nil)
	a := attach("a", true, true, 100, 30)
	want("the first interactive viewer", 100, 30, a)
	phone := attach("phone", true, true, 40, 20)
	want("a second one only looks", 100, 30, a)
	phone.Use()
	want("it types", 40, 20, phone)
	a.Use()
	want("the first types again", 100, 30, a)
	if err := a.SetView(120, 40, true); err != nil {
		t.Fatal(err)
	}
	want("the owner's window grows", 120, 40, a)
	if err := phone.SetView(50, 25, true); err != nil {
		t.Fatal(err)
	}
	want("another's window does not matter", 120, 40, a)
	if err := a.SetView(0, 0, false); err != nil {
		t.Fatal(err)
	}
	want("the owner hides", 50, 25, phone)
	if err := a.SetView(0, 0, true); err == nil {
		t.Error("a visible window of no size was accepted")
	}
	if err := a.SetView(120, 40, true); err != nil {
		t.Fatal(err)
	}
	want("coming back does not take it", 50, 25, phone)
	phone.Detach()
	want("the owner leaves", 120, 40, a)
	a.Detach()
	want("nobody watches: it stays", 120, 40, nil)
	if _, err := s.Attach(newFollower(s), ptymgr.ViewerOptions{Sizes: true, Cols: 0, Rows: 5}); err == nil {
		t.Error("0×5 was accepted")
	}
	for _, c := range [][2]uint16{{0, 0}, {1001, 24}, {80, 65535}} {
		if err := m.Resize(t.Context(), i.ID, c[0], c[1]); !problem.Is(err, problem.InvalidArgument) {
			t.Errorf("resize to %v: %v", c, err)
		}
	}
}

// A viewer that takes nothing does not hold the program, nor another viewer.
func TestStuckViewerBlocksNobody(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "echo ready; read x; head -c 6000000 /dev/zero | tr '\\0' x; exit 0")
	text(t, m, i.ID, "ready")
	s := m.Session(i.ID)
	stuck := newFollower(s)
	stuck.stuck = true
	v, err := s.Attach(stuck, ptymgr.ViewerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Detach()
	if err := m.Input(t.Context(), i.ID, []byte("\n")); err != nil {
		t.Fatal(err)
	}
	exited(t, m, i.ID)
	if p := s.Ring().Oldest(); p == 0 {
		t.Error("the ring never wrapped: the interesting case did not happen")
	}
}

// Attaching, leaving, resizing and typing from many sides while output runs and
// the session ends at a random moment.
func TestViewersComeAndGo(t *testing.T) {
	m := manager(t)
	i := sh(t, m, "for ((k=0;k<3000;k++)); do echo line $k; done; exit 9")
	s := m.Session(i.ID)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(5, uint64(w)))
			id := ptymgr.ClientID{byte(w)}
			for k := range 40 {
				v, err := s.Attach(newFollower(s), ptymgr.ViewerOptions{Name: fmt.Sprint(w), Sizes: true, Visible: true, Cols: 80, Rows: 24})
				if err != nil {
					t.Error(err)
					return
				}
				s.Client(id, 0, nil)
				_ = v.SetView(uint16(20+rnd.IntN(200)), uint16(5+rnd.IntN(50)), rnd.IntN(3) > 0)
				v.Use()
				_ = s.WriteInput(id, uint64(k), []byte{'\n'})
				v.SizeAt(s.Ring().Head())
				v.Detach()
				v.Detach()
			}
		})
	}
	wg.Wait()
	if e := exited(t, m, i.ID); e.ExitCode == nil || *e.ExitCode != 9 || e.Viewers != 0 {
		t.Errorf("%+v", e)
	}
}

func TestKeys(t *testing.T) {
	for in, want := range map[string]string{
		"Enter": "\r", "C-c": "\x03", "Up": "\x1b[A", "M-x": "\x1bx", "C-M-a": "\x1b\x01", "S-Tab": "\x1b[Z", "F5": "\x1b[15~",
		"C-Right": "\x1b[1;5C", "S-Up": "\x1b[1;2A", "M-PageUp": "\x1b[5;3~", "a": "a", "é": "é", "Space": " ", "C-Space": "\x00",
		"C-[": "\x1b", "C-?": "\x7f", "M-Enter": "\x1b\r", "-": "-", "C--": "",
	} {
		got, err := ptymgr.EncodeKeys([]string{in})
		if want == "" {
			if err == nil {
				t.Errorf("%s gave %q", in, got)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "Nope", "X-a", "C-é", "C-", "ab", "\xff"} {
		if got, err := ptymgr.EncodeKeys([]string{bad}); err == nil {
			t.Errorf("%q gave %q", bad, got)
		}
	}
}

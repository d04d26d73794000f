package tty

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStream is a stream whose events the test gives.
type fakeStream struct {
	events chan client.Event
	end    error // once events is closed

	mu    sync.Mutex // guards what follows
	acked []client.Event
	typed bytes.Buffer
	sizes [][2]int
	cond  *sync.Cond
	left  int
}

func newFakeStream() *fakeStream {
	f := &fakeStream{events: make(chan client.Event, 100), end: io.EOF}
	f.cond = sync.NewCond(&f.mu)
	return f
}

func (f *fakeStream) Next(ctx context.Context) (client.Event, error) {
	select {
	case e, ok := <-f.events:
		if !ok {
			return e, f.end
		}
		return e, nil
	case <-ctx.Done():
		return client.Event{}, context.Cause(ctx)
	}
}

func (f *fakeStream) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	f.cond.Broadcast()
}

func (f *fakeStream) Ack(e client.Event) { f.change(func() { f.acked = append(f.acked, e) }) }

func (f *fakeStream) Write(_ context.Context, p []byte) error {
	f.change(func() { f.typed.Write(p) })
	return nil
}

func (f *fakeStream) Drain(context.Context) int { return f.left }

func (f *fakeStream) Resize(cols, rows int) {
	f.change(func() { f.sizes = append(f.sizes, [2]int{cols, rows}) })
}

// await waits until ok holds.
func (f *fakeStream) await(ok func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !ok() {
		f.cond.Wait()
	}
}

func (f *fakeStream) output(at uint64, s string) {
	f.events <- client.Event{Kind: client.EventOutput, Offset: at, Data: []byte(s)}
}

func (f *fakeStream) exit(code int) {
	f.events <- client.Event{Kind: client.EventExit, Exit: wire.Exit{Code: &code, State: "exited"}}
	close(f.events)
}

// screen is the user's terminal: the tty that Attach gets, and what it shows.
type screen struct {
	master, tty *os.File
	before      unix.Termios

	mu    sync.Mutex // guards shown
	shown bytes.Buffer
	cond  *sync.Cond
	done  chan struct{}
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	m, tt, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{master: m, tty: tt, done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	s.before = s.settings(t)
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := m.Read(buf)
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.cond.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = tt.Close()
		<-s.done
		_ = m.Close()
	})
	return s
}

func (s *screen) settings(t *testing.T) unix.Termios {
	t.Helper()
	v, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *v
}

// await waits until the screen has shown text, and returns all it has.
func (s *screen) await(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.shown.String(), text) {
		s.cond.Wait()
	}
	return s.shown.String()
}

func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

type outcome struct {
	res Result
	err error
}

// start runs Attach on the screen.
func start(t *testing.T, s *screen, f *fakeStream, change func(*Options)) chan outcome {
	t.Helper()
	keys, err := ParseDetachKeys(DefaultDetachKeys)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{In: s.tty, Out: s.tty, Raw: true, Keys: keys}
	if change != nil {
		change(&o)
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := Attach(t.Context(), f, o)
		done <- outcome{res, err}
	}()
	return done
}

func restored(t *testing.T, s *screen) {
	t.Helper()
	if now := s.settings(t); now != s.before {
		t.Errorf("the terminal's settings are %+v, were %+v", now, s.before)
	}
}

const editor = "\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[>1u\x1b[?25l\x1b[5 q\x1b]2;vim\x07text"
const editorUndo = "\x1b[<1u\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[0 q" + popTitle

func TestDetachLeavesTheTerminalAsItWas(t *testing.T) {
	s, f := newScreen(t), newFakeStream()
	f.events <- client.Event{Kind: client.EventAttached, Attached: wire.Attached{Mode: wire.ModeDelta}}
	f.output(0, editor)
	done := start(t, s, f, nil)
	s.await("text")
	if raw := s.settings(t); raw.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
		t.Error("the terminal is not raw")
	}
	s.press(t, "ls\r\x1c\x1c")
	got := <-done
	if got.err != nil || !got.res.Detached || got.res.Exit != nil {
		t.Errorf("%+v", got)
	}
	if typed := f.typed.String(); typed != "ls\r" {
		t.Errorf("typed %q", typed)
	}
	restored(t, s)
	want := strings.Replace(editor, "\x1b]2;", pushTitle+"\x1b]2;", 1) + editorUndo
	if shown := s.await(popTitle); shown != want {
		t.Errorf("shown %q, want %q", shown, want)
	}
}

func TestTheEndOfTheSessionLeavesTheTerminalAsItWas(t *testing.T) {
	s, f := newScreen(t), newFakeStream()
	f.output(0, editor)
	f.exit(7)
	got := <-start(t, s, f, nil)
	if got.err != nil || got.res.Exit == nil || *got.res.Exit.Code != 7 {
		t.Errorf("%+v", got)
	}
	restored(t, s)
	s.await(editorUndo)
	if len(f.acked) != 2 {
		t.Errorf("%d events acknowledged", len(f.acked))
	}
}

func TestAnErrorLeavesTheTerminalAsItWas(t *testing.T) {
	s, f := newScreen(t), newFakeStream()
	why := errors.New("why")
	f.end = why
	f.output(0, editor)
	close(f.events)
	if got := <-start(t, s, f, nil); !errors.Is(got.err, why) {
		t.Errorf("%+v", got)
	}
	restored(t, s)
	s.await(editorUndo)
}

func TestASignalLeavesTheTerminalAsItWas(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT} {
		s, f := newScreen(t), newFakeStream()
		f.output(0, editor)
		done := start(t, s, f, nil)
		s.await("text")
		if err := unix.Kill(unix.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got.err != nil || got.res.Signal != sig {
			t.Errorf("%+v", got)
		}
		restored(t, s)
		s.await(editorUndo)
	}
}

// TestAPanicLeavesTheTerminalAsItWas: the panic comes out where Attach was
// called, after the terminal is restored.
func TestAPanicLeavesTheTerminalAsItWas(t *testing.T) {
	s, f := newScreen(t), newFakeStream()
	f.output(0, editor)
	p := &panicStream{fakeStream: f}
	keys, _ := ParseDetachKeys("none")
	caught := make(chan any)
	go func() {
		defer func() { caught <- recover() }()
		_, _ = Attach(t.Context(), p, Options{In: s.tty, Out: s.tty, Raw: true, Keys: keys})
	}()
	if got, ok := (<-caught).(string); !ok || !strings.Contains(got, "boom") || !strings.Contains(got, "panicStream") {
		t.Errorf("panic %v", got)
	}
	restored(t, s)
	s.await(editorUndo)
}

type panicStream struct{ *fakeStream }

func (p *panicStream) Ack(client.Event) { panic("boom") }

// TestATerminalThatTakesNothing: the output is stopped while the user
// detaches. Bug: leaving waited for the terminal for ever.
func TestATerminalThatTakesNothing(t *testing.T) {
	m, tt, err := pty.Open() // nobody reads m
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	defer tt.Close()
	s, f := &screen{master: m, tty: tt}, newFakeStream()
	s.before = s.settings(t)
	f.output(0, editor)
	f.output(0, strings.Repeat("x", 1<<20))
	done := start(t, s, f, nil)
	f.await(func() bool { return len(f.acked) == 1 }) // the second one cannot be written
	s.press(t, "\x1c\x1c")
	got := <-done
	if !got.res.Detached || got.err != nil && !errors.Is(got.err, os.ErrDeadlineExceeded) {
		t.Errorf("%+v", got)
	}
	restored(t, s)
}

func TestTheWindowIsFollowed(t *testing.T) {
	s, f := newScreen(t), newFakeStream()
	size := func(cols, rows uint16) {
		if err := pty.Setsize(s.master, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
			t.Fatal(err)
		}
	}
	size(80, 24)
	done := start(t, s, f, nil)
	f.await(func() bool { return len(f.sizes) == 1 })
	size(100, 30)
	_ = unix.Kill(unix.Getpid(), unix.SIGWINCH)
	f.await(func() bool { return len(f.sizes) == 2 })
	// After a stop the terminal is cooked, and of another size.
	if err := unix.IoctlSetTermios(int(s.tty.Fd()), unix.TCSETS, &s.before); err != nil {
		t.Fatal(err)
	}
	size(60, 20)
	_ = unix.Kill(unix.Getpid(), unix.SIGCONT)
	f.await(func() bool { return len(f.sizes) == 3 })
	if raw := s.settings(t); raw.Lflag&unix.ICANON != 0 {
		t.Error("the terminal is not raw again")
	}
	if f.sizes[0] != [2]int{80, 24} || f.sizes[1] != [2]int{100, 30} || f.sizes[2] != [2]int{60, 20} {
		t.Errorf("sizes %v", f.sizes)
	}
	f.exit(0)
	<-done
	restored(t, s)
}

// TestReplayedQuestionsAreNotAsked: what was answered long ago must not make
// the terminal answer again; what is asked now must.
func TestReplayedQuestionsAreNotAsked(t *testing.T) {
	s, f := newScreen(t), newFakeStream()
	const old, fresh = "old\x1b[c\x1b[6n|", "new\x1b[6n|"
	head := uint64(len(old))
	at := wire.Attached{Mode: wire.ModeSnapshot, Head: head, Format: wire.FormatTail}
	f.events <- client.Event{Kind: client.EventAttached, Attached: at}
	f.events <- client.Event{Kind: client.EventSnapshot, Attached: at, Data: []byte("\x1bc"), Last: true}
	f.output(0, old[:6])
	f.output(6, old[6:]+fresh[:4])
	f.output(head+4, fresh[4:])
	f.exit(0)
	<-start(t, s, f, nil)
	if got := s.await("new\x1b[6n|"); got != "old|new\x1b[6n|" {
		t.Errorf("shown %q", got)
	}
}

// TestAGapUndoesWhatIsKnown: output is missing after a reconnect.
func TestAGapUndoesWhatIsKnown(t *testing.T) {
	s, f := newScreen(t), newFakeStream()
	f.events <- client.Event{Kind: client.EventAttached, Attached: wire.Attached{Mode: wire.ModeDelta}}
	f.output(0, "\x1b[?1049h\x1b[31mvim")
	at := wire.Attached{Mode: wire.ModeSnapshot, Offset: 1000, Head: 1000, Skipped: 900, Format: wire.FormatTail}
	f.events <- client.Event{Kind: client.EventAttached, Attached: at}
	f.events <- client.Event{Kind: client.EventSnapshot, Attached: at, Data: []byte("\x1bc"), Last: true}
	f.output(1000, "$ ")
	f.exit(0)
	got := <-start(t, s, f, nil)
	if got.res.Skipped != 900 || !got.res.MidLine {
		t.Errorf("%+v", got.res)
	}
	if shown := s.await("$ "); shown != "\x1b[?1049h\x1b[31mvim\x1b[?1049l\x1b[m\r\n$ " {
		t.Errorf("shown %q", shown)
	}
}

// copying runs Attach between pipes.
func copying(t *testing.T, f *fakeStream, o Options) (in, out *os.File, done chan outcome) {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o.In, o.Out = inR, outW
	done = make(chan outcome, 1)
	go func() {
		res, err := Attach(t.Context(), f, o)
		_ = outW.Close()
		_ = inR.Close()
		done <- outcome{res, err}
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	return inW, outR, done
}

func TestCopyingTakesBytesAsTheyAre(t *testing.T) {
	for _, c := range []struct{ in, typed string }{
		{"line\n", "line\n\x04"}, {"", "\x04"}, {"no line end", "no line end\x04\x04"}, {"\x1c\x1c\n", "\x1c\x1c\n\x04"},
	} {
		f := newFakeStream()
		in, out, done := copying(t, f, Options{})
		if _, err := in.WriteString(c.in); err != nil {
			t.Fatal(err)
		}
		_ = in.Close()
		f.await(func() bool { return strings.HasSuffix(f.typed.String(), "\x04") && f.typed.Len() >= len(c.typed) })
		at := wire.Attached{Mode: wire.ModeSnapshot, Head: 99, Format: wire.FormatTail}
		f.events <- client.Event{Kind: client.EventAttached, Attached: at}
		f.events <- client.Event{Kind: client.EventSnapshot, Attached: at, Data: []byte("\x1bc"), Last: true}
		f.output(0, "a\x1b[c\x1b]2;t\x07\x1b")
		f.exit(0)
		got, err := io.ReadAll(out)
		if err != nil || string(got) != "a\x1b[c\x1b]2;t\x07\x1b" {
			t.Errorf("copied %q, %v", got, err)
		}
		if o := <-done; o.err != nil || o.res.Exit == nil {
			t.Errorf("%+v", o)
		}
		if f.typed.String() != c.typed {
			t.Errorf("typed %q, want %q", f.typed.String(), c.typed)
		}
	}
}

func TestCopyingEndsWhenNobodyReads(t *testing.T) {
	f := newFakeStream()
	_, out, done := copying(t, f, Options{NoInput: true})
	_ = out.Close()
	f.output(0, "x")
	if got := <-done; got.err != nil || !got.res.OutGone {
		t.Errorf("%+v", got)
	}
}

func TestCopyingAsksAboutSignals(t *testing.T) {
	f := newFakeStream()
	var asked []os.Signal
	seen := make(chan struct{}, 1)
	_, _, done := copying(t, f, Options{NoInput: true, Signal: func(s os.Signal) bool {
		asked = append(asked, s)
		seen <- struct{}{}
		return len(asked) == 1
	}})
	f.output(0, "x")
	f.await(func() bool { return len(f.acked) == 1 }) // signals are caught
	_ = unix.Kill(unix.Getpid(), unix.SIGINT)
	<-seen
	_ = unix.Kill(unix.Getpid(), unix.SIGINT)
	if got := <-done; got.res.Signal != unix.SIGINT || len(asked) != 2 {
		t.Errorf("%+v after %v", got, asked)
	}
}

func TestInputThatCannotBeReadIsAnError(t *testing.T) {
	f := newFakeStream()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := Attach(t.Context(), f, Options{In: dir, Out: w}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("%v", err)
	}
}

func TestInputToAnEndedSessionIsNoError(t *testing.T) {
	f := &endedStream{newFakeStream()}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _ = w.WriteString("x")
	_ = w.Close()
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if res, err := Attach(t.Context(), f, Options{In: r, Out: out}); err != nil || res.Exit == nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// endedStream tells of the exit only after it refused input.
type endedStream struct{ *fakeStream }

func (e *endedStream) Write(context.Context, []byte) error {
	e.exit(0)
	return problem.New(problem.SessionEnded, "ended")
}

package tty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

const (
	// drainTimeout is how long leaving waits until the session has taken what
	// was typed before.
	drainTimeout = time.Second
	// eot is Ctrl-D, which ends the input of a program that reads lines.
	eot = 0x04
)

// Stream is what Attach shows; *client.Stream is one.
type Stream interface {
	Next(context.Context) (client.Event, error)
	Ack(client.Event)
	Write(context.Context, []byte) error
	Drain(context.Context) int
	Resize(cols, rows int)
}

// Options tell how to show a stream.
type Options struct {
	In, Out *os.File
	// Raw: both are terminals, and the session gets every key. Otherwise bytes
	// are copied, and the end of the input is passed on as Ctrl-D.
	Raw  bool
	Keys []Key // that detach, with Raw
	// NoInput: nothing is read from In but, with Raw, the detach keys.
	NoInput bool
	// Signal, unless nil, is asked about a signal that would end the process;
	// true means that it is dealt with.
	Signal func(os.Signal) bool
}

// Result tells how the showing ended.
type Result struct {
	Exit      *wire.Exit // the session ended so
	Detached  bool       // by the detach keys
	Signal    os.Signal  // ended this process's part
	OutGone   bool       // nobody reads Out any more
	MidLine   bool       // with Raw: the cursor stands behind something
	Skipped   uint64     // bytes of output that never came
	InputLost int        // bytes of input that may not have arrived
}

// attachment is one run of Attach.
type attachment struct {
	Options
	stream Stream
	modes  Modes
	replay Queries
	last   byte // written, or 0
	// replayTo is where output begins that is new; what lies before is shown
	// again, and must not make the terminal answer.
	replayTo uint64
	term     *terminal
	in, out  int // descriptors of In and Out
	inStop   *stopper
	outStop  *stopper
	result   Result // of the goroutine screen, but for what ends Attach

	panics chan any // of a goroutine, with its stack
}

// Attach shows a stream until the session ends, the user detaches, or
// something fails. The terminal is then as it was before.
func Attach(ctx context.Context, s Stream, o Options) (res Result, err error) {
	a := &attachment{Options: o, stream: s, panics: make(chan any, 4)}
	if a.inStop, err = newStopper(); err != nil {
		return res, err
	}
	defer a.inStop.close()
	if a.outStop, err = newStopper(); err != nil {
		return res, err
	}
	defer a.outStop.close()

	var closeOut func()
	a.out, closeOut = openOut(o.Out)
	defer closeOut()
	a.in = int(o.In.Fd())

	// Signals are caught before the terminal changes, so that none finds it changed.
	signals := make(chan os.Signal, 16)
	caught := []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}
	if o.Raw {
		// Stopping would leave the terminal raw for the shell, so it is not
		// done; a stop that cannot be refused is made good afterwards.
		caught = append(caught, unix.SIGTSTP, unix.SIGWINCH, unix.SIGCONT)
	}
	signal.Notify(signals, caught...)
	if !o.Raw && IsTerminal(o.In) {
		// In the background, reading the terminal ends the input, not this process.
		signal.Ignore(unix.SIGTTIN)
		defer signal.Reset(unix.SIGTTIN)
	}
	defer signal.Stop(signals)
	if o.Raw {
		if a.term, err = makeRaw(o.In, a.out); err != nil {
			return res, fmt.Errorf("set the terminal to raw mode: %w", err)
		}
		cols, rows := Size(o.Out)
		a.modes.Rows = rows
		s.Resize(cols, rows)
	}
	// From here to the end of run, whatever happens, the terminal comes back.
	defer func() {
		p := recover()
		if a.term != nil {
			discard := a.modes.Reporting()
			res.MidLine = !a.modes.Alternate() && a.last != 0 && a.last != '\n'
			if e := a.term.restore(a.modes.Undo(), discard); e != nil && err == nil && res.Signal == nil {
				err = fmt.Errorf("restore the terminal: %w", e)
			}
		}
		if p != nil {
			panic(p)
		}
	}()
	return a.run(ctx, signals)
}

// run starts the goroutines, waits for the first reason to end, and ends them.
func (a *attachment) run(ctx context.Context, signals <-chan os.Signal) (res Result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	screen := make(chan error, 1)
	keyboard := make(chan error, 1)
	a.start(&wg, func() { screen <- a.screen(ctx) })
	a.start(&wg, func() { keyboard <- a.keyboard(ctx, &wg) })

	var detached bool
wait:
	for {
		select {
		case err = <-screen:
			break wait
		case e := <-keyboard:
			keyboard = nil // the end of the input is not the end of the session
			switch {
			case errors.Is(e, errDetached):
				detached = true
				break wait
			case errors.Is(e, io.EOF): // the terminal is gone
				res.Signal = unix.SIGHUP
				break wait
			case e != nil && !problem.Is(e, problem.SessionEnded):
				err = e
				break wait
			}
		case sig := <-signals:
			if sig == unix.SIGWINCH || sig == unix.SIGCONT {
				a.window(sig)
				continue
			}
			if sig != unix.SIGTSTP && (a.Signal == nil || !a.Signal(sig)) {
				res.Signal = sig
				break wait
			}
		case p := <-a.panics:
			a.stop(cancel, &wg)
			panic(p)
		case <-ctx.Done():
			err = context.Cause(ctx)
			break wait
		}
	}
	left := 0
	if detached {
		// What was typed before the detach keys belongs to the session.
		drain, done := context.WithTimeout(ctx, drainTimeout)
		left = a.stream.Drain(drain)
		done()
	}
	a.stop(cancel, &wg)
	select {
	case p := <-a.panics:
		panic(p)
	default:
	}
	sig := res.Signal
	res = a.result
	res.Detached, res.Signal = detached, sig
	res.InputLost += left
	if errors.Is(err, errOutGone) {
		res.OutGone, err = true, nil
	}
	return res, err
}

// stop ends the goroutines and waits for them.
func (a *attachment) stop(cancel context.CancelFunc, wg *sync.WaitGroup) {
	cancel()
	a.inStop.stop()
	a.outStop.stop()
	wg.Wait()
}

// start runs f in a goroutine whose panic comes out of Attach.
func (a *attachment) start(wg *sync.WaitGroup, f func()) {
	wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				select {
				case a.panics <- fmt.Sprintf("%v\n%s", p, debug.Stack()):
				default: // an earlier one is told
				}
			}
		}()
		f()
	})
}

// window follows the size of the terminal, and takes it back after a stop.
func (a *attachment) window(sig os.Signal) {
	if sig == unix.SIGCONT {
		a.term.again()
	}
	if cols, rows := Size(a.Out); cols > 0 {
		a.stream.Resize(cols, rows)
	}
}

var (
	errDetached = errors.New("detached")
	errOutGone  = errors.New("nobody reads the output")
)

// keyboard passes input on. It returns errDetached after the detach keys, and
// at the end of the input io.EOF with Raw, else nil.
func (a *attachment) keyboard(ctx context.Context, wg *sync.WaitGroup) error {
	if a.NoInput && !a.Raw {
		return nil
	}
	pieces := make(chan []byte)
	var readErr error // written before pieces is closed
	a.start(wg, func() {
		defer close(pieces)
		buf := make([]byte, 32<<10)
		for {
			n, err := reader{a.in, a.inStop}.Read(buf)
			if err != nil {
				readErr = err
				return
			}
			select {
			case pieces <- append([]byte(nil), buf[:n]...):
			case <-ctx.Done():
				readErr = errStopped
				return
			}
		}
	})
	last := byte('\n')
	write := func(p []byte) error {
		if a.NoInput {
			return nil
		}
		last = p[len(p)-1]
		return a.stream.Write(ctx, p)
	}
	var keys []Key
	if a.Raw {
		keys = a.Keys
	}
	detached, err := pump(ctx, keys, pieces, write)
	switch {
	case detached:
		return errDetached
	case err != nil:
		return err
	case !errors.Is(readErr, io.EOF):
		return readErr
	case a.Raw:
		return io.EOF
	case IsTerminal(a.In):
		return nil // Ctrl-D at a terminal that is not raw is for this process
	}
	// In the middle of a line the first Ctrl-D only hands over what stands there.
	end := []byte{eot}
	if last != '\n' {
		end = []byte{eot, eot}
	}
	return write(end)
}

// screen writes what the stream brings until it ends.
func (a *attachment) screen(ctx context.Context) error {
	out := writer{fd: a.out, stop: a.outStop, timeout: -1}
	first := true
	for {
		e, err := a.stream.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return a.flush(out)
		case err != nil:
			_ = a.flush(out) // why the stream ended matters more
			return err
		}
		var data []byte
		switch e.Kind {
		case client.EventAttached, client.EventResync:
			a.result.Skipped += e.Attached.Skipped
			data = a.begin(e, first)
			first = false
		case client.EventSnapshot:
			data = a.snapshot(e)
		case client.EventOutput:
			data = a.output(e)
		case client.EventExit:
			exit := e.Exit
			a.result.Exit = &exit
		case client.EventInputLost:
			a.result.InputLost += e.Lost
		}
		if err := a.write(out, data); err != nil {
			return err
		}
		a.stream.Ack(e)
	}
}

// write writes to Out what is to be seen.
func (a *attachment) write(out writer, data []byte) error {
	if a.Raw {
		// Followed before it is written: when a write is ended halfway,
		// something too much is undone, which is better than too little.
		data = a.modes.Filter(data)
	}
	if len(data) == 0 {
		return nil
	}
	a.last = data[len(data)-1]
	_, err := out.Write(data)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EIO) {
		return errOutGone
	}
	return err
}

// flush writes what is held back.
func (a *attachment) flush(out writer) error {
	if err := a.write(out, a.replay.Flush(nil)); err != nil {
		return err
	}
	if rest := a.modes.Rest(); len(rest) > 0 {
		_, err := out.Write(rest)
		return err
	}
	return nil
}

// plain reports whether a snapshot only resets: a terminal that shows other
// things as well is not reset, and a pipe has no use for it.
func plain(format string) bool { return format == wire.FormatTail }

// begin prepares for a stream that begins, or begins anew.
func (a *attachment) begin(e client.Event, first bool) []byte {
	if e.Attached.Mode != wire.ModeSnapshot || !a.Raw {
		return nil
	}
	if e.Kind == client.EventAttached {
		a.replayTo = e.Attached.Head
	}
	if first || e.Kind == client.EventResync || !plain(e.Attached.Format) {
		return nil
	}
	// Output is missing: what it would have changed is not known, so that
	// what is known is undone, and the kept output begins on a line of its own.
	undo := a.modes.Undo()
	return append(undo, "\r\n"...)
}

// snapshot is what to write for a piece of a snapshot.
func (a *attachment) snapshot(e client.Event) []byte {
	if plain(e.Attached.Format) {
		if a.Raw && e.Resync {
			return e.Data // ends a sequence that the gap has cut
		}
		return nil
	}
	return e.Data
}

// output is what to write for a piece of output.
func (a *attachment) output(e client.Event) []byte {
	if !a.Raw || a.replayTo == 0 {
		return e.Data
	}
	old := e.Data
	var fresh []byte
	if end := e.Offset + uint64(len(e.Data)); end >= a.replayTo {
		n := a.replayTo - min(e.Offset, a.replayTo)
		old, fresh = e.Data[:n], e.Data[n:]
	}
	data := a.replay.Append(nil, old)
	if fresh != nil {
		data = append(a.replay.Flush(data), fresh...)
		a.replayTo = 0
	}
	return data
}

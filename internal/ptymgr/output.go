package ptymgr

import (
	"context"
	"errors"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/problem"
)

// MaxOutput is the most bytes that one call of Output returns.
const MaxOutput = 1 << 20

// OutputChunk is a piece of a session's output.
type OutputChunk struct {
	Data   []byte
	Offset uint64 // of the first byte; above what was asked for where that is no longer kept
	Next   uint64 // where to go on
	Oldest uint64 // the first byte still kept
	Head   uint64 // bytes of output so far
	Epoch  uint64
	EOF    bool // the session has ended and Next is its last offset
}

// Output returns up to limit bytes from offset. Where there is nothing yet it
// waits, up to wait, for the first byte or the session's end.
func (m *Manager) Output(ctx context.Context, id string, offset uint64, limit int, wait time.Duration) (OutputChunk, error) {
	s, row, release, err := m.kept(ctx, id)
	if err != nil {
		return OutputChunk{}, err
	}
	defer release()
	if s == nil {
		n := row.FinalOffset
		// The end of a session that was lost with its daemon was not written.
		if offset > n && (row.State != Lost || n > 0) {
			return OutputChunk{}, beyond(offset, n)
		}
		return OutputChunk{Offset: n, Next: n, Oldest: n, Head: n, Epoch: row.Epoch, EOF: row.State.Ended()}, nil
	}
	if limit <= 0 || limit > MaxOutput {
		limit = MaxOutput
	}
	if head := s.ring.Head(); offset > head {
		return OutputChunk{}, beyond(offset, head)
	}
	if wait > 0 {
		ctx, cancel := context.WithTimeout(ctx, wait)
		_, _ = s.ring.Wait(ctx, offset) // at the end of the time the answer is empty
		cancel()
	}
	for {
		// Whether it ended is asked first: what comes after is then complete.
		end := s.ring.Sealed()
		c := OutputChunk{Offset: offset, Head: s.ring.Head(), Epoch: s.epoch}
		buf := make([]byte, min(uint64(limit), c.Head-offset))
		n, err := s.ring.ReadAt(buf, offset)
		var ev *buffer.EvictedError
		switch {
		case errors.As(err, &ev):
			offset = ev.Oldest
			continue
		case errors.Is(err, buffer.ErrClosed):
			return OutputChunk{}, problem.New(problem.NotFound, "session %s was removed", id)
		case err != nil:
			return OutputChunk{}, err
		}
		c.Data, c.Next, c.Oldest = buf[:n], offset+uint64(n), s.ring.Oldest()
		c.EOF = end && c.Next == s.ring.Head()
		return c, nil
	}
}

func beyond(offset, end uint64) error {
	return problem.Field("offset", "%d is beyond the output, which ends at %d", offset, end)
}

// Input types data into a session and returns when the terminal has all of it.
func (m *Manager) Input(ctx context.Context, id string, data []byte) error {
	s, err := m.live(ctx, id)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return nil
	}
	if len(data) > MaxUnacked {
		return problem.New(problem.TooLarge, "%d bytes of input, at most %d are allowed at once", len(data), MaxUnacked)
	}
	if err := s.checkLine(data); err != nil {
		return err
	}
	acked := make(chan struct{})
	who := s.passing(func(n uint64) {
		if n == uint64(len(data)) {
			close(acked) // counts only grow: once
		}
	})
	defer s.forget(who)
	var full *InputError
	if err := s.WriteInput(who, 0, data); errors.Is(err, ErrEnded) {
		return ended(id)
	} else if errors.As(err, &full) && full.Full {
		return problem.New(problem.Unavailable, "the session takes no input: nobody reads its terminal, and %d bytes wait for it", maxQueued).
			WithHint("nothing was typed")
	} else if err != nil {
		return err
	}
	select {
	case <-acked:
		return nil
	case <-s.done:
		// What was typed may be what ended it: both are true then.
		if s.in.takeBack(who) == uint64(len(data)) {
			return nil
		}
		return ended(id)
	case <-ctx.Done():
		typed := s.in.takeBack(who)
		return problem.New(problem.Unavailable, "the session does not take input: nobody reads its terminal").
			WithHint("%d of %d bytes were typed", typed, len(data)).Because(ctx.Err())
	}
}

// checkLine refuses a line that the kernel would cut without an error: in
// canonical mode a terminal takes 4,095 bytes of a line.
func (s *Session) checkLine(data []byte) error {
	const most = 4095
	long, run := false, 0
	for _, b := range data {
		if b == '\n' || b == '\r' {
			run = 0
		} else if run++; run > most {
			long = true
			break
		}
	}
	if !long {
		return nil
	}
	canonical := false
	_ = s.withMaster(func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS) // the master answers for the slave
		canonical = err == nil && t.Lflag&unix.ICANON != 0
		return nil
	})
	if canonical {
		return problem.New(problem.TooLarge, "a line of more than %d bytes would be cut by the terminal, which reads whole lines now", most).
			WithHint("send shorter lines, or write a file and name it")
	}
	return nil
}

// Conditions are what Wait waits for: any of those set.
type Conditions struct {
	Exit bool
	Text *regexp.Regexp // in the raw output that is kept
	From uint64         // where Text is looked for from
	Idle time.Duration  // no output for this long; 0: not wanted
}

// WaitResult tells how a wait ended.
type WaitResult struct {
	Matched    string // "exit", "text", "idle", "" when ctx ended first
	Impossible bool   // the session ended and no condition can hold any more
	Next       uint64 // where a repeated wait for Text goes on
	Info       Info
	Start, End uint64 // of the text
	Text       string
}

// searchBack is how much of what was searched is searched again with new
// output: the longest match that is found across two reads.
const searchBack = 64 << 10

// Wait returns when a condition holds, when none can hold any more, or when
// ctx ends. All conditions are level-triggered: what held before the call
// counts.
func (m *Manager) Wait(ctx context.Context, id string, c Conditions) (WaitResult, error) {
	s, row, release, err := m.kept(ctx, id)
	if err != nil {
		return WaitResult{}, err
	}
	defer release()
	if s == nil {
		i := m.infoOf(row)
		return WaitResult{Matched: map[bool]string{true: "exit"}[c.Exit], Impossible: !c.Exit, Next: i.Offset, Info: i}, nil
	}
	sr := search{ring: s.ring, at: c.From}
	for {
		end := isClosed(s.done)
		changed := s.ring.Changed(s.ring.Head())
		res := WaitResult{}
		if c.Text != nil {
			found, err := sr.run(c.Text, &res)
			if err != nil {
				return WaitResult{}, problem.New(problem.NotFound, "session %s was removed", id)
			}
			if found {
				res.Matched = "text"
			}
			res.Next = sr.next()
		}
		res.Info = s.Info()
		if res.Matched == "" && end && c.Exit {
			res.Matched = "exit"
		}
		if res.Matched != "" {
			return res, nil
		}
		if end {
			res.Impossible = true
			return res, nil
		}
		var idle <-chan time.Time
		if c.Idle > 0 {
			quiet := time.Since(s.lastOutput())
			if quiet >= c.Idle {
				res.Matched = "idle"
				return res, nil
			}
			t := time.NewTimer(c.Idle - quiet)
			defer t.Stop()
			idle = t.C
		}
		if c.Text == nil && idle == nil {
			changed = nil // only the end matters
		}
		select {
		case <-changed:
		case <-s.done:
		case <-idle:
		case <-ctx.Done():
			return res, nil
		}
	}
}

// search looks for a text in a growing output.
type search struct {
	ring *buffer.Ring
	at   uint64 // where buf begins
	buf  []byte
}

func (s *search) next() uint64 {
	return s.at + uint64(len(s.buf)) - uint64(min(len(s.buf), searchBack))
}

func (s *search) run(re *regexp.Regexp, res *WaitResult) (bool, error) {
	chunk := make([]byte, 64<<10)
	for {
		from := s.at + uint64(len(s.buf))
		if h := s.ring.Head(); from > h {
			s.at, s.buf, from = h, nil, h
		}
		n, err := s.ring.ReadAt(chunk, from)
		var ev *buffer.EvictedError
		if errors.As(err, &ev) {
			s.at, s.buf = ev.Oldest, nil
			continue
		}
		if err != nil {
			return false, err
		}
		if n == 0 {
			return false, nil
		}
		s.buf = append(s.buf, chunk[:n]...)
		if m := re.FindIndex(s.buf); m != nil {
			res.Start, res.End = s.at+uint64(m[0]), s.at+uint64(m[1])
			res.Text = string(s.buf[m[0]:min(m[1], m[0]+4096)])
			return true, nil
		}
		if cut := len(s.buf) - searchBack; cut > 0 {
			s.at += uint64(cut)
			s.buf = append(s.buf[:0], s.buf[cut:]...)
		}
	}
}

package screen

import (
	"context"
	"errors"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/vt"
)

const (
	// piece is how much is played between two looks at the context.
	piece = 64 << 10
	// Lines above the screen are kept for what a larger screen pulls back.
	historyLines = 1000
	historyBytes = 1 << 20
	// skips is how often a question goes on in newer output, when a session
	// prints faster than it can be played.
	skips = 4
	can   = 0x18 // aborts a sequence
)

// player plays one session.
type player struct {
	t           *vt.Terminal
	epoch       uint64
	at          uint64 // the next byte to play
	seq         uint64 // of the last resize that was applied
	approximate bool
}

// newPlayer begins at the first place where the kept output can be entered.
func newPlayer(r ptymgr.Replay) *player {
	p := &player{epoch: r.Epoch, at: r.Offset, approximate: r.Offset > 0}
	if r.Ring != nil {
		p.at, _ = r.Ring.SafeFrom(r.Ring.Oldest())
		p.approximate = p.at > 0
	}
	sizes, from := r.Sizes()
	size := sizes[0]
	for _, s := range sizes[1:] {
		if s.Offset > p.at {
			break
		}
		size = s
	}
	p.approximate = p.approximate || from > p.at
	p.seq = size.Seq
	p.t = vt.New(vt.Options{Cols: int(size.Cols), Rows: int(size.Rows), ScrollbackLines: historyLines, ScrollbackBytes: historyBytes})
	return p
}

// follows says whether r goes on where p is.
func (p *player) follows(r ptymgr.Replay) bool {
	if r.Epoch != p.epoch {
		return false
	}
	if r.Ring == nil {
		return p.at == r.Offset
	}
	return p.at <= r.Ring.Head()
}

// play brings the emulator to where the output ends now.
func (p *player) play(ctx context.Context, r ptymgr.Replay) error {
	if r.Ring == nil {
		return nil
	}
	var buf []byte
	end := r.Ring.Head()
	for skipped := 0; ; {
		if ctx.Err() != nil {
			return busy(ctx)
		}
		next := min(p.resize(r), end)
		if p.at >= end {
			return nil
		}
		if buf == nil {
			buf = make([]byte, min(piece, end-p.at))
		}
		n, err := r.Ring.ReadAt(buf[:min(uint64(len(buf)), next-p.at)], p.at)
		var gone *buffer.EvictedError
		switch {
		case errors.As(err, &gone):
			p.approximate = true
			if skipped++; skipped > skips {
				return nil
			}
			head := r.Ring.Head()
			p.at, _ = r.Ring.SafeFrom(gone.Oldest + (head-min(head, gone.Oldest))/2)
			end = max(head, p.at)
			p.t.Write([]byte{can})
			continue
		case errors.Is(err, buffer.ErrClosed):
			return problem.New(problem.NotFound, "the session was removed")
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		p.t.Write(buf[:n])
		p.t.TakeReplies() // the viewers' terminals answer
		p.t.TakeEvents()
		p.at += uint64(n)
	}
}

// resize applies the resizes up to where p is, and returns where the next stands.
func (p *player) resize(r ptymgr.Replay) (next uint64) {
	sizes, _ := r.Sizes()
	if sizes[0].Seq > p.seq+1 {
		p.approximate = true // forgotten ones lie between
	}
	for _, s := range sizes {
		if s.Seq <= p.seq {
			continue
		}
		if s.Offset > p.at {
			return s.Offset
		}
		p.seq = s.Seq
		if c, rows := p.t.Size(); c != int(s.Cols) || rows != int(s.Rows) {
			p.t.Resize(int(s.Cols), int(s.Rows))
		}
	}
	return ^uint64(0)
}

// cost is an estimate of the bytes that the emulator takes.
func (p *player) cost() int {
	cols, rows := p.t.Size()
	return 16*cols*rows + 2<<20
}

func (p *player) screen(f Format) (Screen, error) {
	s := Screen{Screen: p.t.Text(), Epoch: p.epoch, Offset: p.at, Revision: p.at + p.seq, Approximate: p.approximate}
	switch f {
	case ANSI:
		s.ANSI = p.t.AppendANSI(nil)
	case Cells:
		s.Cells = make([][]vt.Span, len(s.Rows))
		n := 0
		for y := range s.Rows {
			s.Cells[y] = p.t.Cells(y)
			if n += len(s.Cells[y]); n > MaxSpans {
				return Screen{}, problem.New(problem.TooLarge, "the screen changes its style more than %d times", MaxSpans).
					WithHint("take the format ansi or text")
			}
		}
	}
	return s, nil
}

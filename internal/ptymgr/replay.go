package ptymgr

import (
	"context"

	"github.com/ptyd/ptyd/internal/buffer"
)

// Replay is what a session's screen is made from: its output and the sizes that
// its terminal had.
type Replay struct {
	// Ring is the kept output; nil where nothing is kept.
	Ring  *buffer.Ring
	Epoch uint64
	// Offset is how many bytes there were in all, where nothing is kept.
	Offset uint64
	// Sizes returns the resizes that are remembered, in their order, never
	// none, and the offset from which on they are all there were: earlier ones
	// are forgotten, or another process saw them.
	Sizes func() (sizes []SizeAt, from uint64)
}

// Replay returns a session's output for playing it again. release must be called;
// until then the output stays in memory unless the session is removed.
func (m *Manager) Replay(ctx context.Context, id string) (r Replay, release func(), err error) {
	s, row, release, err := m.kept(ctx, id)
	switch {
	case err != nil:
		return Replay{}, release, err
	case s == nil:
		size := SizeAt{Seq: 1, Cols: row.Cols, Rows: row.Rows}
		return Replay{Epoch: row.Epoch, Offset: row.FinalOffset,
			Sizes: func() ([]SizeAt, uint64) { return []SizeAt{size}, row.FinalOffset }}, release, nil
	}
	return Replay{Ring: s.ring, Epoch: s.epoch, Sizes: s.sizes}, release, nil
}

func (s *Session) sizes() (sizes []SizeAt, from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		sizes = append(sizes, SizeAt{Seq: rec.seq, Offset: rec.offset, Cols: rec.cols, Rows: rec.rows})
	}
	from = s.sizedFrom
	if sizes[0].Seq > 1 {
		from = max(from, sizes[0].Offset)
	}
	return sizes, from
}

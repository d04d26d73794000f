package checkpoint

import (
	"errors"
	"fmt"
	"io"
)

// Saved is what can be read of a session: [Start, End) without a gap.
type Saved struct {
	Start, End uint64
	Safe       uint64  // the first offset at which the stream may be entered; Unsafe when not known
	Damage     []error // of files that were left out or cut

	d     *Dir
	id    string
	epoch uint64
	segs  []segment
	spans []span
}

// Find verifies what is kept of a session's run: of the newest generation that
// holds anything, the longest stretch that reaches to its end. nil where
// nothing is kept.
func (d *Dir) Find(id string, epoch uint64) (*Saved, error) {
	if err := d.scan(); err != nil {
		return nil, err
	}
	sv := &Saved{d: d, id: id, epoch: epoch}
	segs := d.segments(id)
	for i := len(segs) - 1; i >= 0; i-- {
		s := segs[i]
		if len(sv.segs) > 0 && s.gen != sv.segs[0].gen {
			break
		}
		sp, err := d.look(id, epoch, s, nil)
		switch {
		case err != nil:
			sv.Damage = append(sv.Damage, fmt.Errorf("%s: %w", s.name(id), err))
			if len(sv.segs) > 0 {
				i = 0 // a gap: nothing before it
			}
			continue
		case sp.torn:
			sv.Damage = append(sv.Damage, fmt.Errorf("%s: cut at byte %d", s.name(id), sp.size))
		}
		if sp.end == sp.start {
			continue
		}
		if len(sv.segs) == 0 {
			sv.End = sp.end
		} else if sp.end < sv.Start {
			break
		} else if sp.end > sv.Start { // of a segment that was begun anew: what overlaps is the same
			sp.end = sv.Start
		}
		sv.Start, sv.Safe = sp.start, sp.safe
		sv.segs = append([]segment{s}, sv.segs...)
		sv.spans = append([]span{sp}, sv.spans...)
	}
	if len(sv.segs) == 0 {
		sv.Safe = Unsafe
		return sv, nil
	}
	d.mu.Lock()
	if e := d.sessions[id]; e != nil {
		e.start, e.end, e.known = sv.Start, sv.End, true
	}
	d.mu.Unlock()
	return sv, nil
}

// Empty reports whether there is nothing to read.
func (s *Saved) Empty() bool { return s.End == s.Start }

var errEnough = errors.New("enough")

// Each gives all bytes in order; they are valid during the call.
func (s *Saved) Each(give func(data []byte) error) error {
	for i, seg := range s.segs {
		end := s.spans[i].end
		at := seg.start
		_, err := s.d.look(s.id, s.epoch, seg, func(off uint64, data []byte) error {
			if off >= end {
				return errEnough
			}
			data = data[:min(uint64(len(data)), end-off)]
			at = off + uint64(len(data))
			return give(data)
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if at != end {
			return fmt.Errorf("%s: %w", seg.name(s.id), io.ErrUnexpectedEOF) // it changed meanwhile
		}
	}
	return nil
}

// Extent tells which output is kept of a session, without reading it all: a
// damage that only Find would find is not seen.
func (d *Dir) Extent(id string, epoch uint64) (start, end uint64, ok bool) {
	if d.scan() != nil {
		return 0, 0, false
	}
	d.mu.Lock()
	e := d.sessions[id]
	if e == nil || e.known {
		if e != nil {
			start, end = e.start, e.end
		}
		d.mu.Unlock()
		return start, end, start < end
	}
	last := e.segs[len(e.segs)-1]
	for _, s := range e.segs {
		if s.gen == last.gen {
			start = s.start
			break
		}
	}
	d.mu.Unlock()
	if end, ok = d.quick(id, epoch, last); ok && end > start {
		d.mu.Lock()
		if e := d.sessions[id]; e != nil && e.segs[len(e.segs)-1] == last {
			e.start, e.end, e.known = start, end, true
		}
		d.mu.Unlock()
		return start, end, true
	}
	sv, err := d.Find(id, epoch)
	if err != nil || sv.Empty() {
		return 0, 0, false
	}
	return sv.Start, sv.End, true
}

// quick asks a segment's hint for its end.
func (d *Dir) quick(id string, epoch uint64, s segment) (end uint64, ok bool) {
	f, err := d.open(id, s, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var b [headerSize]byte
	st, err := f.Stat()
	if err != nil {
		return 0, false
	}
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return 0, false
	}
	if h, err := parseHeader(b[:]); err != nil || h.id != id || h.epoch != epoch || h.start != s.start {
		return 0, false
	}
	return parseHint(b[:], st.Size())
}

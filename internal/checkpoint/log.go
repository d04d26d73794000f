package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	// maxSegments is how many files a session has at most.
	maxSegments = 16
	// A session's room is cut into this many segments: the oldest goes when
	// there is no room, and the rest stays.
	parts      = 8
	minSegment = 16 << 10
)

// Log writes the checkpoint of one session. It holds no descriptor between
// calls.
type Log struct {
	d     *Dir
	id    string
	epoch uint64
	limit int64 // bytes of files in all
	most  int64 // bytes of one file

	next   uint64
	cur    segment
	open   bool // cur takes more
	dirty  bool // something is not synced
	fresh  bool // a file was made since the last Sync
	resume bool // what an earlier process left was looked at
	buf    []byte
}

// Log returns the writer for the run epoch of a session, which keeps at most
// limit bytes of files. buf is memory for a record, which writers may share.
func (d *Dir) Log(id string, epoch uint64, limit int64, buf []byte) (*Log, error) {
	if !goodID(id) {
		return nil, fmt.Errorf("checkpoint of %q: no file can be called so", id)
	}
	return &Log{d: d, id: id, epoch: epoch, limit: limit, most: max(limit/parts, minSegment), buf: buf}, nil
}

// BufSize is how long a Log's memory must be.
const BufSize = headerSize + recordHead + MaxRecord

// Resume looks at what an earlier process left and returns where the output
// goes on; ok is false where there is nothing to go on from. A torn tail is cut.
func (l *Log) Resume() (next uint64, ok bool, err error) {
	if err := l.d.scan(); err != nil {
		return 0, false, err
	}
	l.resume = true
	segs := l.d.segments(l.id)
	if len(segs) == 0 {
		return 0, false, nil
	}
	last := segs[len(segs)-1]
	l.cur = last // its generation, in any case
	sp, err := l.d.look(l.id, l.epoch, last, nil)
	if errors.Is(err, errForeign) || errors.Is(err, fs.ErrNotExist) {
		l.next = Unsafe // nothing goes on from there
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if sp.size != last.size {
		if err := l.cut(sp.size); err != nil {
			return 0, false, err
		}
	}
	l.next, l.open = sp.end, true
	return l.next, true, nil
}

// cut makes the current segment end at size.
func (l *Log) cut(size int64) error {
	f, err := l.d.open(l.id, l.cur, os.O_WRONLY)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err == nil {
		l.cur.size = size
		l.d.grown(l.id, size)
	}
	return err
}

// Next is where the output goes on.
func (l *Log) Next() uint64 { return l.next }

// Append writes output that begins at off. Where that is not Next, something
// was left out, and a new generation begins. safe is the first offset at or
// after off at which the stream may be entered, or Unsafe; it is asked for when
// a file begins. After an error Next tells what was written.
func (l *Log) Append(off uint64, data []byte, safe func(off uint64) uint64) error {
	if !l.resume {
		if _, _, err := l.Resume(); err != nil {
			return err
		}
	}
	for len(data) > 0 {
		if l.open && (off != l.next || l.cur.size+recordHead >= l.most) {
			if l.open = false; off != l.next {
				l.cur.gen++
			}
		} else if !l.open && l.cur != (segment{}) && off != l.next {
			l.cur.gen++
		}
		room := int(l.most - recordHead - headerSize)
		if l.open {
			room = int(l.most - l.cur.size - recordHead)
		}
		n := min(len(data), room, MaxRecord)
		if err := l.write(off, data[:n], safe); err != nil {
			return fmt.Errorf("write the checkpoint of %s: %w", l.id, err)
		}
		off += uint64(n)
		l.next = off
		l.dirty = true
		data = data[n:]
	}
	return nil
}

// write appends one record, in a new file where none is open.
func (l *Log) write(off uint64, data []byte, safe func(uint64) uint64) error {
	need := int64(recordHead + len(data))
	flags, at := os.O_WRONLY, l.cur.size
	b := l.buf[:headerSize+need]
	putRecord(b[headerSize:], off, data)
	copy(b[headerSize+recordHead:], data)
	if l.open {
		b = b[headerSize:]
	} else {
		need += headerSize
		at = 0
		flags |= os.O_CREATE | os.O_TRUNC
	}
	if err := l.makeRoom(need); err != nil {
		return err
	}
	if !l.open {
		l.cur = segment{gen: l.cur.gen, start: off}
		h := header{epoch: l.epoch, start: off, safe: safe(off), id: l.id}
		copy(b, h.bytes())
		copy(b[atHint:], hint(off+uint64(len(data)), need))
	}
	f, err := l.d.open(l.id, l.cur, flags)
	if err != nil {
		l.open = false
		return err
	}
	if _, err = f.WriteAt(b, at); err == nil && l.open {
		_, err = f.WriteAt(hint(off+uint64(len(data)), at+need), atHint)
	}
	if err != nil {
		// What is half written is taken back, so that the file can go on later.
		if l.open {
			if e := f.Truncate(at); e != nil {
				l.open = false // it ends there: a reader stops at what is torn
			}
		} else {
			err = errors.Join(err, l.d.unlink(l.id, []segment{l.cur}))
		}
		return errors.Join(err, f.Close())
	}
	l.cur.size = at + need
	if l.open {
		l.d.grown(l.id, l.cur.size)
	} else {
		l.d.put(l.id, l.cur)
		l.open, l.fresh = true, true
	}
	return f.Close()
}

// makeRoom drops the oldest segments until need more bytes are within the limit.
func (l *Log) makeRoom(need int64) error {
	for {
		segs := l.d.segments(l.id)
		n := len(segs)
		if n == 0 || l.open && n == 1 {
			return nil
		}
		sum := need
		for _, s := range segs {
			sum += s.size
		}
		if sum <= l.limit && (l.open || n < maxSegments) {
			return nil
		}
		if _, err := l.d.DropOldest(l.id); err != nil {
			return err
		}
	}
}

// Dirty reports whether there is something to sync.
func (l *Log) Dirty() bool { return l.dirty }

// Sync has the disk take what was written.
func (l *Log) Sync() error {
	if !l.dirty {
		return nil
	}
	f, err := l.d.open(l.id, l.cur, os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) { // dropped for want of room in all
		l.dirty = false
		return nil
	}
	if err == nil {
		err = errors.Join(datasync(f), f.Close())
	}
	if err == nil && l.fresh {
		err = l.d.syncDir()
	}
	if err != nil {
		return fmt.Errorf("sync the checkpoint of %s: %w", l.id, err)
	}
	l.dirty, l.fresh = false, false
	return nil
}

// Dropped says that files were removed by DropOldest or Remove: what was current
// may be gone, and the next Append begins another one.
func (l *Log) Dropped() { l.open = false }

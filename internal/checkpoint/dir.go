package checkpoint

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Dir is a directory of checkpoints. It is read once, when it is first needed.
type Dir struct {
	path string
	scan func() error

	mu       sync.Mutex // guards all below
	sessions map[string]*entry
	bytes    int64
}

// entry is what is known of a session's files.
type entry struct {
	segs       []segment // ascending by generation and start; never empty
	start, end uint64    // what can be read, once known
	known      bool
}

func (e *entry) bytes() (n int64) {
	for _, s := range e.segs {
		n += s.size
	}
	return n
}

// Open returns the directory at path, which is made when it is first needed. It
// does nothing else: a start waits for no disk.
func Open(path string) *Dir {
	d := &Dir{path: path, sessions: map[string]*entry{}}
	d.scan = sync.OnceValue(d.read)
	return d
}

// Check returns why the directory cannot be used, nil where it can.
func (d *Dir) Check() error { return d.scan() }

// read fills the index. Names that are none of ours are left alone.
func (d *Dir) read() error {
	if err := os.Mkdir(d.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the directory of checkpoints: %w", err)
	}
	st, err := os.Lstat(d.path)
	if err != nil {
		return fmt.Errorf("look at the directory of checkpoints: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is not a directory", d.path)
	}
	if st.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(d.path, 0o700); err != nil {
			return fmt.Errorf("close the directory of checkpoints to others: %w", err)
		}
	}
	list, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read the directory of checkpoints: %w", err)
	}
	found := map[string]*entry{}
	var sum int64
	for _, f := range list {
		id, s, ok := parseName(f.Name())
		if !ok || !f.Type().IsRegular() {
			continue
		}
		info, err := f.Info()
		if err != nil {
			continue // gone meanwhile
		}
		s.size = info.Size()
		sum += s.size
		if found[id] == nil {
			found[id] = &entry{}
		}
		found[id].segs = append(found[id].segs, s)
	}
	for _, e := range found {
		slices.SortFunc(e.segs, func(a, b segment) int {
			return cmp.Or(cmp.Compare(a.gen, b.gen), cmp.Compare(a.start, b.start))
		})
	}
	d.mu.Lock()
	d.sessions, d.bytes = found, sum
	d.mu.Unlock()
	return nil
}

// Stats counts sessions and bytes on the disk.
func (d *Dir) Stats() (sessions int, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sessions), d.bytes
}

// Size is how much is kept of a session, in bytes on the disk.
func (d *Dir) Size(id string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.sessions[id]; e != nil {
		return e.bytes()
	}
	return 0
}

// IDs are the sessions of which something is kept, ascending.
func (d *Dir) IDs() []string {
	if d.scan() != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make([]string, 0, len(d.sessions))
	for id := range d.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// segments is a copy of a session's segments.
func (d *Dir) segments(id string) []segment {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.sessions[id]; e != nil {
		return slices.Clone(e.segs)
	}
	return nil
}

// put enters a new segment.
func (d *Dir) put(id string, s segment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.sessions[id]
	if e == nil {
		e = &entry{}
		d.sessions[id] = e
	}
	e.segs = append(e.segs, s)
	e.known = false
	d.bytes += s.size
}

// grown says that the last segment has another size now.
func (d *Dir) grown(id string, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.sessions[id]; e != nil {
		last := &e.segs[len(e.segs)-1]
		d.bytes += size - last.size
		last.size = size
		e.known = false
	}
}

// forget takes the first n segments of a session out of the index.
func (d *Dir) forget(id string, n int) []segment {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.sessions[id]
	if e == nil {
		return nil
	}
	n = min(n, len(e.segs))
	out := slices.Clone(e.segs[:n])
	for _, s := range out {
		d.bytes -= s.size
	}
	e.segs = slices.Delete(e.segs, 0, n)
	e.known = false
	if len(e.segs) == 0 {
		delete(d.sessions, id)
	}
	return out
}

// Remove deletes all files of a session.
func (d *Dir) Remove(id string) error {
	if err := d.scan(); err != nil {
		return err
	}
	return d.unlink(id, d.forget(id, maxSegments+1<<20))
}

// DropOldest deletes the oldest segment of a session and returns how many bytes
// that freed.
func (d *Dir) DropOldest(id string) (int64, error) {
	gone := d.forget(id, 1)
	if len(gone) == 0 {
		return 0, nil
	}
	return gone[0].size, d.unlink(id, gone)
}

func (d *Dir) unlink(id string, segs []segment) error {
	var errs []error
	for _, s := range segs {
		if err := os.Remove(filepath.Join(d.path, s.name(id))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (d *Dir) open(id string, s segment, flags int) (*os.File, error) {
	return os.OpenFile(filepath.Join(d.path, s.name(id)), flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
}

// datasync is fdatasync(2).
func datasync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) { failed = unix.Fdatasync(int(fd)) })
	return errors.Join(err, failed)
}

// syncDir makes the names of new files safe.
func (d *Dir) syncDir() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// look reads a whole segment. One that is not of that session and epoch, or not
// of its name, is an error.
func (d *Dir) look(id string, epoch uint64, s segment, give func(off uint64, data []byte) error) (span, error) {
	f, err := d.open(id, s, os.O_RDONLY)
	if err != nil {
		return span{}, err
	}
	defer f.Close()
	sp, err := scan(bufio.NewReaderSize(f, 64<<10), give)
	if err == nil && (sp.id != id || sp.epoch != epoch || sp.start != s.start) {
		err = errForeign
	}
	return sp, err
}

package buffer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Open takes over a ring from its memfd, which may come from an earlier process
// or from anywhere: seals, sizes and every field are checked before anything is
// believed, so that a foreign descriptor is an error and never a crash. The
// ring owns fd from then on, also when Open fails.
//
// Where an append was in flight when its process died, Busy is true: call
// Recover before any other append.
func Open(fd int) (*Ring, error) {
	r, err := open(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("open output memfd: %w", err)
	}
	return r, nil
}

var errForeign = errors.New("not a ring of this version")

func open(fd int) (*Ring, error) {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, errForeign // not a memfd
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return nil, errors.New("the memfd is not sealed against shrinking")
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Size < headerSize+4096+ChunkSize || st.Size > MaxLimit+(64<<20) {
		return nil, errForeign
	}
	// The header is read, not mapped: reading a hole or a short file cannot fault.
	h := make([]byte, headerSize)
	if n, err := unix.Pread(fd, h, 0); err != nil || n != len(h) {
		return nil, errForeign
	}
	slots := int(half(h, 28).Load())
	if word(h, 0).Load() != magic || half(h, 8).Load() != version || half(h, 12).Load() != headerSize || half(h, 24).Load() != ChunkSize ||
		slots < 2 || slots > MaxLimit/ChunkSize+1 {
		return nil, errForeign
	}
	data := headerSize + (slots*mapEntry+4095)&^4095
	if word(h, 32).Load() != headerSize || word(h, 40).Load() != uint64(data) || st.Size != int64(data)+int64(slots)*ChunkSize {
		return nil, errForeign
	}
	head, target, tail := word(h, offHead).Load(), word(h, offTarget).Load(), word(h, offTail).Load()
	if tail > head+ChunkSize || head > 1<<62 || (target > head && target-head > ChunkSize) {
		return nil, fmt.Errorf("head %d, target %d and tail %d do not go together", head, target, tail)
	}
	r := &Ring{fd: fd, slots: slots, data: data, fallocate: unix.Fallocate, alloc: make([]int, slots)}
	// Before a page is touched it must be there; all of this was allocated once.
	if err := r.fallocate(fd, 0, 0, int64(data)); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	r.view(mem)
	if err := r.adopt(head, tail); err != nil {
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	return r, nil
}

// adopt rebuilds what is not in the memfd: which slots have memory, and where
// the parser of a terminal stands at the head.
func (r *Ring) adopt(head, tail uint64) error {
	seen := map[uint64]bool{}
	for i := range r.chunkAt {
		n := r.chunkAt[i].chunk.Load()
		if n == 0 {
			continue
		}
		c := n - 1
		if seen[c] || c > head/ChunkSize+1 {
			return fmt.Errorf("slot %d holds chunk %d twice or from the future", i, c)
		}
		seen[c] = true
		if i != int(c%uint64(r.slots)) {
			r.reused.Store(1) // look chunks up the long way
		}
		if err := r.fallocate(r.fd, 0, int64(r.data+i*ChunkSize), ChunkSize); err != nil {
			return err
		}
		r.alloc[i] = ChunkSize
	}
	for at := max(tail, 0); at < head; at = (at/ChunkSize + 1) * ChunkSize {
		if !seen[at/ChunkSize] {
			return fmt.Errorf("chunk %d of [%d, %d) is missing", at/ChunkSize, tail, head)
		}
	}
	r.head.Store(head)
	r.tail.Store(tail)
	r.rescan()
	return nil
}

// rescan brings the scanner to the head from the last safe point before it.
func (r *Ring) rescan() {
	head, tail := r.head.Load(), r.tail.Load()
	from := tail
	for c := head / ChunkSize; ; c-- {
		if i := r.slotOf(c); i >= 0 {
			if s := r.chunkAt[i].safe.Load(); s > 0 && s-1 <= head && s-1 >= tail {
				from = s - 1
				break
			}
		}
		if c*ChunkSize <= tail || c == 0 {
			break
		}
	}
	r.sc = scanner{}
	for at := from; at < head; {
		k := min(head-at, ChunkSize-at%ChunkSize)
		p := r.bytes(at / ChunkSize)[at%ChunkSize:][:k]
		r.sc.scan(p, at, false)
		at += k
	}
	r.openAt.Store(0)
	if !r.sc.safe() {
		r.openAt.Store(r.sc.start + 1)
	}
}

// Busy reports whether bytes for this ring were in flight when its last
// process died.
func (r *Ring) Busy() bool { return r.memBusy.Load() != 0 }

// Recover finishes the append that was in flight: n bytes are still outside,
// and read fills the pieces of memory that it is given with them. It returns
// how many bytes the ring gained, which is more than n where part of them had
// been copied already.
func (r *Ring) Recover(n int, read func(p []byte) error) (gained int, err error) {
	head, target := r.head.Load(), r.memTarget.Load()
	if target <= head { // the step after the transfer was not reached
		target = head + uint64(n)
	}
	total := int(target - head)
	if n < 0 || n > total || total > ChunkSize {
		return 0, fmt.Errorf("%d bytes in flight do not fit a target %d bytes ahead", n, total)
	}
	a, b := r.Begin(total)
	skip := total - n
	for _, p := range [][]byte{a, b} {
		k := min(skip, len(p))
		skip -= k
		if p = p[k:]; len(p) > 0 {
			if err := read(p); err != nil {
				return 0, err
			}
		}
	}
	r.Commit(total)
	return total, nil
}

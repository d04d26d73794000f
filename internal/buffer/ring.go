package buffer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// ChunkSize is the unit of allocation and eviction in bytes.
	ChunkSize = 64 << 10
	// MinLimit and MaxLimit bound the bytes that a ring keeps.
	MinLimit = ChunkSize
	// MaxLimit is the largest ring.
	MaxLimit = 1 << 30
	// BlockSize is the length of a ring's Block in bytes.
	BlockSize = 1536
	// Version is the layout's that New writes and Open takes.
	Version = version

	magic      = 0x31474e5244595450 // "PTYDRNG1" in memory order
	version    = 1
	headerSize = 4096
	mapEntry   = 16
	firstStep  = 4096 // the first chunk grows by doubling from here

	offHead, offTarget, offTail, offBusy = 64, 72, 80, 88
	offBlock                             = 512
)

// EvictedError says that the wanted offset is no longer kept.
type EvictedError struct {
	Want, Oldest uint64 // bytes since the session began
}

func (e *EvictedError) Error() string {
	return fmt.Sprintf("output from offset %d is no longer kept, the oldest is %d", e.Want, e.Oldest)
}

// ErrClosed is returned by a ring that was closed.
var ErrClosed = errors.New("output ring is closed")

// ErrFuture is returned for an offset beyond the head.
var ErrFuture = errors.New("offset is beyond the output")

// Ring is the output log of one session. One goroutine appends; all other
// methods may be called by any goroutine.
type Ring struct {
	fd    int
	mem   []byte
	slots int
	data  int // offset of the data area

	life   sync.RWMutex // guards mem's mapping: read-held while copying, held by Close
	closed bool         // guarded by life

	head, tail atomic.Uint64 // what readers look at; mem holds the copies that survive
	chunkAt    []slot        // in mem: the chunk map

	// fallocate is unix.Fallocate; tests make it fail.
	fallocate func(fd int, mode uint32, off, n int64) error

	// Owned by the appending goroutine.
	alloc                       []int // bytes allocated per slot
	pending                     int   // bytes of the append in flight
	memHead, memTarget, memTail *atomic.Uint64
	memBusy                     *atomic.Uint32
	discard                     bool // the append in flight has no memory
	scratch                     []byte
	sc                          scanner

	openAt atomic.Uint64 // start of the open sequence + 1; 0 when the head is safe
	reused atomic.Uint64 // slots used again for want of memory
	lost   atomic.Uint64 // bytes dropped for want of memory

	waiting atomic.Bool
	mu      sync.Mutex    // guards ch and sealed
	ch      chan struct{} // closed at the next change; nil when nobody waits
	sealed  bool          // no more output will come
}

type slot struct {
	chunk atomic.Uint64 // number + 1, 0 when free
	safe  atomic.Uint64 // first safe offset + 1, 0 when unknown
}

// New makes a ring that keeps at least limit bytes (rounded up to chunks) of
// the run named epoch, once that much was written.
func New(epoch uint64, limit int64) (*Ring, error) {
	if limit < MinLimit || limit > MaxLimit {
		return nil, fmt.Errorf("output limit %d is not within %d and %d bytes", limit, MinLimit, MaxLimit)
	}
	slots := int((limit+ChunkSize-1)/ChunkSize) + 1
	data := headerSize + (slots*mapEntry+4095)&^4095
	fd, err := unix.MemfdCreate("ptyd-ring", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create output memfd: %w", err)
	}
	r := &Ring{fd: fd, slots: slots, data: data, fallocate: unix.Fallocate}
	if err := r.init(epoch); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return r, nil
}

func (r *Ring) init(epoch uint64) error {
	size := int64(r.data) + int64(r.slots)*ChunkSize
	if err := unix.Ftruncate(r.fd, size); err != nil {
		return fmt.Errorf("size output memfd: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(r.fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return fmt.Errorf("seal output memfd: %w", err)
	}
	// Without this the first touch of a page could be a SIGBUS when memory is short.
	if err := r.fallocate(r.fd, 0, 0, int64(r.data)+firstStep); err != nil {
		return fmt.Errorf("allocate output memfd: %w", err)
	}
	mem, err := unix.Mmap(r.fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map output memfd: %w", err)
	}
	r.view(mem)
	word(mem, 16).Store(epoch)
	half(mem, 8).Store(version)
	half(mem, 12).Store(headerSize)
	half(mem, 24).Store(ChunkSize)
	half(mem, 28).Store(uint32(r.slots))
	word(mem, 32).Store(headerSize)
	word(mem, 40).Store(uint64(r.data))
	r.alloc = make([]int, r.slots)
	r.alloc[0] = firstStep
	r.chunkAt[0].safe.Store(1)
	r.chunkAt[0].chunk.Store(1)
	word(mem, 0).Store(magic) // last: a header without it is not a ring
	return nil
}

// view points the ring at its mapping.
func (r *Ring) view(mem []byte) {
	r.mem = mem
	r.memHead, r.memTarget, r.memTail, r.memBusy = word(mem, offHead), word(mem, offTarget), word(mem, offTail), half(mem, offBusy)
	r.chunkAt = unsafe.Slice((*slot)(unsafe.Pointer(&mem[headerSize])), r.slots)
}

func word(m []byte, off int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&m[off])) }
func half(m []byte, off int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&m[off])) }

// Head is the number of bytes appended so far.
func (r *Ring) Head() uint64 { return r.head.Load() }

// Oldest is the first offset still kept.
func (r *Ring) Oldest() uint64 { return r.tail.Load() }

// Epoch is the run whose output this is.
func (r *Ring) Epoch() uint64 { return word(r.mem, 16).Load() }

// Limit is how many bytes the ring keeps at least.
func (r *Ring) Limit() int64 { return int64(r.slots-1) * ChunkSize }

// FD is the memfd, for handing it on.
func (r *Ring) FD() int { return r.fd }

// Block is the part of the header that belongs to the session's owner:
// BlockSize bytes that survive with the ring.
func (r *Ring) Block() []byte { return r.mem[offBlock : offBlock+BlockSize : offBlock+BlockSize] }

// Shortage tells how often a slot was used again for want of memory, and how
// many bytes were dropped.
func (r *Ring) Shortage() (reused, lost uint64) { return r.reused.Load(), r.lost.Load() }

// Arm says that bytes for this ring may be in flight from now on, outside of
// it; the next Commit, or Disarm, ends that. A process that takes the ring over
// after a crash finds the mark and calls Recover.
func (r *Ring) Arm() {
	r.memTarget.Store(0)
	r.memBusy.Store(1)
}

// Disarm takes back Arm where nothing came.
func (r *Ring) Disarm() { r.memBusy.Store(0) }

// Begin makes room for an append of n bytes (at most ChunkSize) and returns the
// one or two pieces of memory to fill. Commit must follow. Only the appending
// goroutine may call it.
func (r *Ring) Begin(n int) (a, b []byte) {
	if n < 0 || n > ChunkSize {
		panic(fmt.Sprintf("buffer: append of %d bytes", n))
	}
	h := r.head.Load()
	r.pending, r.discard = n, false
	if n == 0 {
		return nil, nil
	}
	first, last := h/ChunkSize, (h+uint64(n)-1)/ChunkSize
	at := int(h % ChunkSize)
	ok := r.room(first, min(at+n, ChunkSize)) && (last == first || r.room(last, at+n-ChunkSize))
	r.memTarget.Store(h + uint64(n))
	r.memBusy.Store(1)
	// In a shortage the second chunk may have taken the slot of the first.
	if !ok || r.slotOf(first) < 0 {
		r.discard = true
		if len(r.scratch) < n {
			r.scratch = make([]byte, ChunkSize)
		}
		return r.scratch[:n], nil
	}
	s := r.bytes(first)
	if last == first {
		return s[at : at+n], nil
	}
	return s[at:], r.bytes(last)[:at+n-ChunkSize]
}

// room sees to it that chunk c has a slot with upto allocated bytes.
func (r *Ring) room(c uint64, upto int) bool {
	i := r.slotOf(c)
	if i < 0 {
		return r.take(c)
	}
	for r.alloc[i] < upto { // only the first chunk grows by steps
		n := min(r.alloc[i]*2, ChunkSize)
		if r.fallocate(r.fd, 0, int64(r.data+i*ChunkSize+r.alloc[i]), int64(n-r.alloc[i])) != nil {
			return false
		}
		r.alloc[i] = n
	}
	return true
}

// take gives chunk c a slot: its own, where that can be had, else the oldest one.
func (r *Ring) take(c uint64) bool {
	i := int(c % uint64(r.slots))
	if r.alloc[i] < ChunkSize {
		if r.fallocate(r.fd, 0, int64(r.data+i*ChunkSize), ChunkSize) == nil {
			r.alloc[i] = ChunkSize
		} else if i = r.oldest(); i < 0 {
			return false
		} else {
			r.reused.Add(1)
		}
	} else if old := r.chunkAt[i].chunk.Load(); old != 0 {
		// Its own slot may hold a chunk that is not the oldest after a shortage.
		if o := r.oldest(); o >= 0 {
			i = o
		}
	}
	if old := r.chunkAt[i].chunk.Load(); old != 0 {
		r.setTail(max(r.tail.Load(), old*ChunkSize)) // old is number + 1: the end of that chunk
	}
	r.chunkAt[i].safe.Store(0)
	r.chunkAt[i].chunk.Store(c + 1)
	return true
}

func (r *Ring) setTail(t uint64) {
	r.memTail.Store(t)
	r.tail.Store(t)
}

// oldest is the whole slot with the lowest chunk, -1 when there is none.
func (r *Ring) oldest() int {
	best, low := -1, uint64(math.MaxUint64)
	for i := range r.chunkAt {
		if n := r.chunkAt[i].chunk.Load(); n != 0 && n < low && r.alloc[i] == ChunkSize {
			best, low = i, n
		}
	}
	return best
}

func (r *Ring) slotOf(c uint64) int {
	if i := int(c % uint64(r.slots)); r.chunkAt[i].chunk.Load() == c+1 {
		return i
	}
	if r.reused.Load() == 0 {
		return -1
	}
	for i := range r.chunkAt {
		if r.chunkAt[i].chunk.Load() == c+1 {
			return i
		}
	}
	return -1
}

func (r *Ring) bytes(c uint64) []byte {
	i := r.data + r.slotOf(c)*ChunkSize
	return r.mem[i : i+ChunkSize : i+ChunkSize]
}

// Commit publishes the first n bytes of what Begin returned and wakes waiters.
func (r *Ring) Commit(n int) {
	if n > r.pending {
		panic("buffer: commit of more than was begun")
	}
	h := r.head.Load()
	to := h + uint64(n)
	r.follow(h, n)
	if r.discard {
		r.lost.Add(uint64(n))
		r.setTail(max(r.tail.Load(), to))
	}
	r.memHead.Store(to)
	r.head.Store(to)
	r.memTarget.Store(to)
	r.memBusy.Store(0)
	if n > 0 {
		r.wake()
	}
}

// follow runs the scanner over the n bytes after h.
func (r *Ring) follow(h uint64, n int) {
	for done := 0; done < n; {
		off := h + uint64(done)
		c, at := off/ChunkSize, int(off%ChunkSize)
		k := min(n-done, ChunkSize-at)
		if r.discard {
			r.sc.scan(r.scratch[done:done+k], off, false)
		} else {
			// The append may reach into the next chunk: each has its own first one.
			own := &r.chunkAt[r.slotOf(c)].safe
			if first, ok := r.sc.scan(r.bytes(c)[at:at+k], off, own.Load() == 0); ok && first < (c+1)*ChunkSize {
				own.Store(first + 1)
			}
		}
		done += k
	}
	if r.sc.safe() {
		r.openAt.Store(0)
	} else {
		r.openAt.Store(r.sc.start + 1)
	}
}

// Append appends p, of any length.
func (r *Ring) Append(p []byte) {
	for len(p) > 0 {
		n := min(len(p), ChunkSize)
		a, b := r.Begin(n)
		copy(b, p[copy(a, p[:n]):n])
		r.Commit(n)
		p = p[n:]
	}
}

// ReadAt copies output from offset off into dst and returns how many bytes it
// copied: 0 at the head. Errors: *EvictedError, ErrFuture, ErrClosed.
func (r *Ring) ReadAt(dst []byte, off uint64) (int, error) {
	r.life.RLock()
	defer r.life.RUnlock()
	if r.closed {
		return 0, ErrClosed
	}
	h := r.head.Load()
	if off > h {
		return 0, ErrFuture
	}
	n := 0
	for n < len(dst) && off+uint64(n) < h {
		at := off + uint64(n)
		i := r.slotOf(at / ChunkSize)
		if i < 0 {
			break
		}
		k := min(uint64(len(dst)-n), h-at, ChunkSize-at%ChunkSize)
		from := r.data + i*ChunkSize + int(at%ChunkSize)
		copy(dst[n:n+int(k)], r.mem[from:])
		n += int(k)
	}
	// Copied first, looked at afterwards: the writer moves tail before it writes over a slot.
	if t := r.tail.Load(); off < t {
		return 0, &EvictedError{Want: off, Oldest: t}
	}
	return n, nil
}

// SafeFrom returns the first offset at or after off at which the stream may be
// entered: not inside an escape sequence or a character. Where off lies inside
// the sequence that is open at the head, it is that sequence's start. clean is
// false where none is known up to the head; then the head is returned and what
// follows may begin inside a sequence, which the reader must abort (CAN) first.
func (r *Ring) SafeFrom(off uint64) (at uint64, clean bool) {
	r.life.RLock()
	defer r.life.RUnlock()
	h, t := r.head.Load(), r.tail.Load()
	off = min(max(off, t), h)
	if off == 0 {
		return 0, true
	}
	if !r.closed {
		if at, ok := r.safeNear(off, h); ok {
			return at, true
		}
		for c := (off + ChunkSize - 1) / ChunkSize; c*ChunkSize < h; c++ {
			if i := r.slotOf(c); i >= 0 {
				if s := r.chunkAt[i].safe.Load(); s > 0 && s-1 >= off && s-1 <= h {
					return s - 1, true
				}
			}
		}
	}
	open := r.openAt.Load()
	switch {
	case open == 0:
		return h, true
	case open-1 >= t: // a little before off, where the open sequence began
		return open - 1, true
	}
	return h, false
}

// safeNear scans from the last safe point that is known at or before off. life
// is held.
func (r *Ring) safeNear(off, head uint64) (uint64, bool) {
	tail := r.tail.Load()
	from, found := uint64(0), tail == 0
	for c := off / ChunkSize; ; c-- {
		if i := r.slotOf(c); i >= 0 {
			if s := r.chunkAt[i].safe.Load(); s > 0 && s-1 <= off && s-1 >= tail {
				from, found = s-1, true
				break
			}
		}
		if c == 0 || c*ChunkSize <= tail {
			break
		}
	}
	if !found {
		// Output that begins in the middle of a chunk: that chunk's first safe point.
		if i := r.slotOf(off / ChunkSize); i >= 0 {
			if s := r.chunkAt[i].safe.Load(); s > 0 && s-1 >= off && s-1 <= head {
				return s - 1, true
			}
		}
		return 0, false
	}
	var sc scanner
	for at := from; at < head; {
		i := r.slotOf(at / ChunkSize)
		if i < 0 {
			return 0, false
		}
		n := min(head-at, ChunkSize-at%ChunkSize)
		if at < off {
			n = min(n, off-at)
		}
		p := r.mem[r.data+i*ChunkSize+int(at%ChunkSize):][:n]
		safe, ok := sc.scan(p, at, at >= off)
		if ok && safe < head {
			return safe, r.tail.Load() <= from // else it was written over while it was read
		}
		at += n
	}
	return 0, false
}

// Changed returns a channel that is closed once there is output beyond off or
// the log is sealed; it is closed already where that holds now.
func (r *Ring) Changed(off uint64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ch == nil {
		r.ch = make(chan struct{})
	}
	r.waiting.Store(true)
	// After waiting is set: an append that was not seen here will see waiting.
	if r.sealed || r.head.Load() > off {
		return closedChan
	}
	return r.ch
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Wait blocks until there is output beyond off (true), the log was sealed at or
// before off (false), or ctx ends.
func (r *Ring) Wait(ctx context.Context, off uint64) (bool, error) {
	select {
	case <-r.Changed(off):
		return r.head.Load() > off, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (r *Ring) wake() {
	if !r.waiting.Load() {
		return
	}
	r.mu.Lock()
	if r.ch != nil {
		close(r.ch)
		r.ch = nil
	}
	r.waiting.Store(false)
	r.mu.Unlock()
}

// Seal says that no output will follow; it wakes all waiters.
func (r *Ring) Seal() {
	r.mu.Lock()
	r.sealed = true
	if r.ch != nil {
		close(r.ch)
		r.ch = nil
	}
	r.mu.Unlock()
}

// Sealed reports whether Seal was called.
func (r *Ring) Sealed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sealed
}

// Kept is the memory that the ring holds, in bytes.
func (r *Ring) Kept() int64 {
	var st unix.Stat_t
	r.life.RLock()
	defer r.life.RUnlock()
	if r.closed || unix.Fstat(r.fd, &st) != nil {
		return 0
	}
	return st.Blocks * 512
}

// Close waits for readers that are copying and gives the memory back. The
// appending goroutine must be done.
func (r *Ring) Close() error {
	r.Seal()
	r.life.Lock()
	defer r.life.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	err := unix.Munmap(r.mem)
	r.mem, r.chunkAt = nil, nil
	return errors.Join(err, unix.Close(r.fd))
}

package notifyproto

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ExitsCapacity is how many ends of processes are kept: what can be open
// before the keeper stops reaping, and how far back Find sees. 4096 are 96 KiB;
// the worker takes them within milliseconds, and a thousand sessions that end
// while it restarts fit four times.
const ExitsCapacity = 4096

// The layout of the memory; DESIGN.md has the table.
const (
	exitsMagic = 0x7469_7865_6479_7470 // "ptydexit", little endian
	// ExitsVersion is the memory's; both sides must have the same.
	ExitsVersion = 1
	recordSize   = 24

	offMagic    = 0
	offVersion  = 8
	offCapacity = 16
	offHead     = 64
	offTail     = 128
	offRecords  = 4096

	exitsSize = offRecords + ExitsCapacity*recordSize
)

// exitsSeals are those that a foreign memfd must have before it is mapped:
// memory that shrinks under a mapping kills its reader by SIGBUS.
const exitsSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// ExitRecord is how one process ended.
type ExitRecord struct {
	PID    int32
	Code   int32 // si_code: CLD_EXITED, CLD_KILLED or CLD_DUMPED
	Status int32 // the exit status, or the signal
	_      int32
	At     int64 // CLOCK_BOOTTIME in nanoseconds, when the keeper saw it
}

// The values of ExitRecord.Code.
const (
	CLDExited = 1
	CLDKilled = 2
	CLDDumped = 3
)

// Signalled tells whether a signal ended the process; Status is the signal
// then, else the exit status.
func (r ExitRecord) Signalled() bool { return r.Code == CLDKilled || r.Code == CLDDumped }

// Exits is a ring of ends in a memfd that keeper and worker share and that
// outlives both processes' crashes. The keeper appends and never overwrites
// what the worker has not consumed; both positions stand in the memory itself.
type Exits struct {
	fd  int
	mem []byte
}

// NewExits makes an empty ring in a new memfd, close-on-exec and sealed.
func NewExits() (*Exits, error) {
	fd, err := unix.MemfdCreate("ptyd-exits", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate("ptyd-exits", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("create exits: %w", err)
	}
	e, err := initExits(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("create exits: %w", err)
	}
	return e, nil
}

func initExits(fd int) (*Exits, error) {
	// All pages at once: a write to a page that can't be had is a SIGBUS.
	if err := unix.Fallocate(fd, 0, 0, exitsSize); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, exitsSeals|unix.F_SEAL_SEAL); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, exitsSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	e := &Exits{fd: fd, mem: mem}
	e.word(offVersion).Store(ExitsVersion | recordSize<<32)
	e.word(offCapacity).Store(ExitsCapacity)
	e.word(offMagic).Store(exitsMagic)
	return e, nil
}

// OpenExits maps a ring that another process made. It takes fd when it
// succeeds, and looks at everything before it believes it: a foreign or damaged
// memfd is an error and never a crash.
func OpenExits(fd int) (*Exits, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("open exits: %w", err)
	}
	if st.Size != exitsSize {
		return nil, fmt.Errorf("open exits: %d bytes instead of %d", st.Size, exitsSize)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, fmt.Errorf("open exits: not a memfd: %w", err)
	}
	if seals&exitsSeals != exitsSeals {
		return nil, fmt.Errorf("open exits: seals %#x", seals)
	}
	mem, err := unix.Mmap(fd, 0, exitsSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("open exits: %w", err)
	}
	e := &Exits{fd: fd, mem: mem}
	if err := e.check(); err != nil {
		_ = unix.Munmap(mem)
		return nil, fmt.Errorf("open exits: %w", err)
	}
	return e, nil
}

func (e *Exits) check() error {
	if m := e.word(offMagic).Load(); m != exitsMagic {
		return fmt.Errorf("magic %#x", m)
	}
	if v := e.word(offVersion).Load(); v != ExitsVersion|recordSize<<32 {
		return fmt.Errorf("version and record size %#x", v)
	}
	if c := e.word(offCapacity).Load(); c != ExitsCapacity {
		return fmt.Errorf("capacity %d", c)
	}
	tail, head := e.word(offTail).Load(), e.word(offHead).Load()
	if tail > head || head-tail > ExitsCapacity {
		return fmt.Errorf("positions %d and %d", tail, head)
	}
	return nil
}

func (e *Exits) word(off int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&e.mem[off]))
}

// slot is the offset of the record with number n.
func slot(n uint64) int { return offRecords + int(n%ExitsCapacity)*recordSize }

// Append adds a record. false: the ring is full of what the worker has not
// consumed, and nothing was written. Only the keeper calls it.
func (e *Exits) Append(r ExitRecord) bool {
	head, tail := e.word(offHead).Load(), e.word(offTail).Load()
	if head-tail >= ExitsCapacity {
		return false
	}
	at := slot(head)
	e.word(at).Store(uint64(uint32(r.PID)) | uint64(uint32(r.Code))<<32)
	e.word(at + 8).Store(uint64(uint32(r.Status)))
	e.word(at + 16).Store(uint64(r.At))
	e.word(offHead).Store(head + 1) // the record first, then that it is there
	return true
}

func (e *Exits) load(n uint64) ExitRecord {
	at := slot(n)
	a, b, c := e.word(at).Load(), e.word(at+8).Load(), e.word(at+16).Load()
	return ExitRecord{PID: int32(uint32(a)), Code: int32(uint32(a >> 32)), Status: int32(uint32(b)), At: int64(c)}
}

// Next returns the oldest record that was not consumed, and goes on returning
// it until Consume: a worker that dies in between has not lost it. Only the
// worker calls it, in one goroutine.
func (e *Exits) Next() (ExitRecord, bool) {
	tail := e.word(offTail).Load()
	if tail >= e.word(offHead).Load() {
		return ExitRecord{}, false
	}
	return e.load(tail), true
}

// Consume moves past the record that Next returned.
func (e *Exits) Consume() {
	tail := e.word(offTail).Load()
	if tail < e.word(offHead).Load() {
		e.word(offTail).Store(tail + 1)
	}
}

// Find returns the newest record of pid among the last ExitsCapacity, consumed
// or not. Process ids come again: whoever asks compares At with the start of
// the process that it means.
func (e *Exits) Find(pid int) (ExitRecord, bool) {
	head := e.word(offHead).Load()
	oldest := uint64(0)
	if head > ExitsCapacity {
		oldest = head - ExitsCapacity
	}
	for n := head; n > oldest; n-- {
		if int(int32(uint32(e.word(slot(n-1)).Load()))) != pid {
			continue
		}
		r := e.load(n - 1)
		// A consumed record may be overwritten while it is read: the keeper
		// writes at the head, which is the place of the one a round before.
		if n-1+ExitsCapacity <= e.word(offHead).Load() || int(r.PID) != pid {
			return ExitRecord{}, false
		}
		return r, true
	}
	return ExitRecord{}, false
}

// Len is how many records wait for Consume.
func (e *Exits) Len() int {
	tail := e.word(offTail).Load()
	return int(e.word(offHead).Load() - tail)
}

// FD is the memfd; it stays the ring's.
func (e *Exits) FD() int { return e.fd }

// Close unmaps the memory and closes the descriptor. No other method may run
// then or later.
func (e *Exits) Close() error {
	err := unix.Munmap(e.mem)
	e.mem = nil
	if e2 := unix.Close(e.fd); err == nil {
		err = e2
	}
	return err
}

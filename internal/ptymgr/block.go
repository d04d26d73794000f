package ptymgr

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// block is the session's part of its ring's header: what the next process needs
// to take the session over. It lies in the memfd; each step is one store.
//
//	  0  [32] session id, padded with NUL
//	 32  u32  pid         36  u32 released: the process was let through its gate
//	 40  u64  start of the process in clock ticks since boot (proc_pid_stat(5))
//	 48  [16] boot id
//	 64  u32  ended       68  i32 exit code, −1 none    72  [16] signal's name
//	 88  i64  ended at, 96 i64 started at (Unix microseconds)
//	104  i64  began, CLOCK_BOOTTIME nanoseconds     112  u32 opened: the gate's byte was written
//	512  32 × {client id [16], u64 input count in the terminal's queue}
//	1280 journal of the input in flight: u32 step, u32 client, u64 from, u32 n, u32 done
type block []byte

// BlockVersion is raised when a reader of before would go wrong with a block.
// It is not in the block: the releases ask each other before one follows another.
const BlockVersion = 1

const (
	blkPid, blkReleased, blkStart, blkBoot  = 32, 36, 40, 48
	blkEnded, blkCode, blkSignal, blkEndAt  = 64, 68, 72, 88
	blkStartedAt, blkBegan, blkOpened       = 96, 104, 112
	blkClients, blkClientSize               = 512, 24
	blkJournal                              = 1280
	blkIDLen, blkBootLen, blkSignalLen      = 32, 16, 16
	jStep, jClient, jFrom, jCount, jDone    = 0, 4, 8, 16, 20
	stepNone, stepWriting, stepPiped, stepD = 0, 1, 2, 3
)

func (b block) u32(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&b[at])) }
func (b block) u64(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[at])) }

func (b block) text(at, n int) string { return string(bytes.TrimRight(b[at:at+n], "\x00")) }

func (b block) id() string { return b.text(0, blkIDLen) }

// begin writes who the session is; the process comes later.
func (b block) begin(id string) {
	copy(b[:blkIDLen], id)
	copy(b[blkBoot:blkBoot+blkBootLen], bootID())
}

func (b block) process(pid int, start uint64, began int64, at time.Time) {
	b.u64(blkStart).Store(start)
	b.u64(blkBegan).Store(uint64(began))
	b.u64(blkStartedAt).Store(uint64(at.UnixMicro()))
	b.u32(blkPid).Store(uint32(pid))
}

func (b block) end(st ExitStatus, at time.Time) {
	code := int32(-1)
	if st.Code != nil {
		code = int32(*st.Code)
	}
	b.u32(blkCode).Store(uint32(code))
	copy(b[blkSignal:blkSignal+blkSignalLen], make([]byte, blkSignalLen))
	copy(b[blkSignal:blkSignal+blkSignalLen], st.Signal)
	b.u64(blkEndAt).Store(uint64(at.UnixMicro()))
	n := uint32(1)
	if !st.Known {
		n = 2
	}
	b.u32(blkEnded).Store(n) // last
}

// status is the end that an earlier process wrote; false where it did not.
func (b block) status() (st ExitStatus, at time.Time, ok bool) {
	n := b.u32(blkEnded).Load()
	if n == 0 {
		return st, at, false
	}
	st.Known = n == 1
	if c := int(int32(b.u32(blkCode).Load())); c >= 0 {
		st.Code = &c
	}
	st.Signal = b.text(blkSignal, blkSignalLen)
	return st, time.UnixMicro(int64(b.u64(blkEndAt).Load())), true
}

// count is where client number i's acknowledged input stands.
func (b block) count(i int) *atomic.Uint64 { return b.u64(blkClients + i*blkClientSize + 16) }

func (b block) client(i int) (id ClientID) {
	copy(id[:], b[blkClients+i*blkClientSize:])
	return id
}

func (b block) setClient(i int, id ClientID, count uint64) {
	at := blkClients + i*blkClientSize
	copy(b[at:], make([]byte, 16)) // nobody, while the two do not belong together
	b.count(i).Store(count)
	copy(b[at:], id[:])
}

// bootID is this boot's id, 16 bytes; zeros where the kernel tells none.
var bootID = sync.OnceValue(func() []byte {
	id := make([]byte, blkBootLen)
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id
	}
	_, _ = hex.Decode(id, []byte(strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")))
	return id
})

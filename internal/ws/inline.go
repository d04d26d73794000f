package ws

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/wire"
)

// inliner holds what one inline write needs, so that it allocates nothing. It
// belongs to whoever holds the connection's token.
type inliner struct {
	head  [wsHeaderMax + 2*wire.HeaderSize]byte
	iov   [3]unix.Iovec
	n     int // of iov
	wrote int
	errno unix.Errno
	call  func(fd uintptr)
	next  int // of the writing goroutine: the channel that begins a turn
}

func (in *inliner) init() {
	in.call = func(fd uintptr) {
		n, _, e := unix.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&in.iov[0])), uintptr(in.n))
		in.wrote, in.errno = int(n), e
		if e != 0 {
			in.wrote = 0
		}
	}
}

func (in *inliner) add(p []byte) {
	if len(p) > 0 {
		in.iov[in.n].Base = &p[0]
		in.iov[in.n].SetLen(len(p))
		in.n++
	}
}

// Output implements ptymgr.Follower: called by the reading thread with bytes
// that have just been read. It writes them at once where the connection is
// idle and the viewer up to date and within its window; else it leaves them to
// the writing goroutine, which will find them in the ring.
func (ch *channel) Output(start uint64, a, b []byte, inline bool) {
	c := ch.c
	n := len(a) + len(b)
	end := start + uint64(n)
	c.mu.Lock()
	ready := inline && c.raw != nil && c.state == idle && c.rest == nil && c.control == nil && c.bye == nil && ch.live && !ch.left &&
		ch.sent.Load() == start && end-ch.acked.Load() <= ch.window && ch.seq == ch.s.RecordSeq()
	if !ready {
		// Beyond the window only an ACK makes a difference.
		wake := ch.live && ch.sent.Load()-ch.acked.Load() < ch.window && c.wantLocked()
		c.mu.Unlock()
		if wake {
			c.poke()
		}
		return
	}
	c.state = writing
	c.mu.Unlock()

	ch.sent.Store(end)
	in := &c.in
	in.n = 0
	size := wire.HeaderSize + n
	h := in.head[wsHeaderMax:wsHeaderMax]
	if at, ok := ch.takeInputAck(); ok {
		h = h[:wire.HeaderSize]
		wire.PutHeader(h, wire.TypeInputAck, 0, ch.id, 0, at)
		size += wire.HeaderSize
	}
	h = h[:len(h)+wire.HeaderSize]
	wire.PutHeader(h[len(h)-wire.HeaderSize:], wire.TypeOutput, 0, ch.id, n, start)
	from := wsHeader(in.head[:wsHeaderMax], wsBinary, size)
	in.add(in.head[from : wsHeaderMax+len(h)])
	in.add(a)
	in.add(b)
	total := wsHeaderMax - from + size
	in.wrote, in.errno = 0, 0
	err := c.raw.Control(in.call)
	c.srv.inline.Add(1)

	var rest []byte
	if in.wrote < total && err == nil && (in.errno == 0 || in.errno == unix.EAGAIN || in.errno == unix.EINTR) {
		rest = make([]byte, 0, total-in.wrote)
		skip := in.wrote
		for i := range in.n {
			p := unsafe.Slice(in.iov[i].Base, in.iov[i].Len)
			k := min(skip, len(p))
			skip -= k
			rest = append(rest, p[k:]...)
		}
	}
	in.iov = [3]unix.Iovec{}

	c.mu.Lock()
	c.state = idle
	c.rest = rest
	if rest == nil && in.wrote < total {
		c.gone = true // the socket is broken; the writing goroutine takes it down
	}
	wake := c.again || rest != nil || c.gone || c.bye != nil
	c.mu.Unlock()
	if wake {
		c.poke()
	}
}

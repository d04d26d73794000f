package buffer

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// again opens r's memory as another process would after r's died at this instant.
func again(t interface{ Fatal(...any) }, r *Ring) *Ring {
	fd, err := unix.FcntlInt(uintptr(r.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(fd)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A process dies at any step of an append; the next one has every byte, once.
func TestRecoverAtEveryStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := New(5, 2*ChunkSize)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		head := uint64(rapid.IntRange(0, 5*ChunkSize).Draw(t, "before"))
		r.Append(fill(make([]byte, head), 0))
		n := rapid.IntRange(1, 4096).Draw(t, "flight")
		flight := fill(make([]byte, n), head)
		left := flight
		switch step := rapid.IntRange(0, 4).Draw(t, "step"); step {
		case 0: // armed, nothing transferred
			r.Arm()
			left = nil
		case 1: // transferred, the target not set
			r.Arm()
		case 2, 3, 4:
			r.Arm()
			a, b := r.Begin(n)
			if step > 2 { // part of it, or all, copied
				k := n
				if step == 3 {
					k = rapid.IntRange(0, n).Draw(t, "copied")
				}
				m := copy(a, flight[:k])
				copy(b, flight[m:k])
				left = flight[k:]
			}
		}
		next := again(t, r)
		defer next.Close()
		if !next.Busy() {
			t.Fatal("not busy")
		}
		if _, err := next.Recover(len(left), func(p []byte) error { left = left[copy(p, left):]; return nil }); err != nil {
			t.Fatal(err)
		}
		if next.Busy() || len(left) != 0 {
			t.Fatalf("busy %v, %d bytes left over", next.Busy(), len(left))
		}
		want := head
		if next.Head() != head {
			want = head + uint64(n)
		}
		if next.Head() != want {
			t.Fatalf("head %d, want %d", next.Head(), want)
		}
		more := fill(make([]byte, 70000), want)
		next.Append(more)
		got := make([]byte, 10*ChunkSize)
		k, err := next.ReadAt(got, next.Oldest())
		if err != nil || next.Oldest()+uint64(k) != want+70000 {
			t.Fatal(k, err)
		}
		checkAt(t, got[:k], next.Oldest())
	})
}

// The scanner goes on where it stood, whatever was open.
func TestOpenKeepsSafePoints(t *testing.T) {
	unit := []byte("\x1b]0;title\x07é€𝄞 text \x1b[38;5;1mred\x1b[0m\r\n")
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		r := newRing(t, 2*ChunkSize)
		n := rnd.IntN(4 * ChunkSize)
		r.Append(bytes.Repeat(unit, n/len(unit)+1)[:n])
		next := again(t, r)
		a, cleanA := r.SafeFrom(uint64(n))
		b, cleanB := next.SafeFrom(uint64(n))
		rest := unit[n%len(unit):]
		r.Append(rest)
		next.Append(rest)
		if a != b || cleanA != cleanB || r.sc.safe() != next.sc.safe() {
			t.Fatalf("after %d bytes: safe at %d %v, after opening %d %v", n, a, cleanA, b, cleanB)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
}

// Whatever a descriptor holds: an error, never a crash or an endless loop.
func FuzzOpen(f *testing.F) {
	r, err := New(5, MinLimit)
	if err != nil {
		f.Fatal(err)
	}
	r.Append(bytes.Repeat([]byte("hello\x1b[m\r\n"), 20000))
	hdr := bytes.Clone(r.mem[:headerSize+4096])
	size := int64(len(r.mem))
	r.Close()
	f.Add(uint16(64), []byte{1}, true)
	f.Add(uint16(28), []byte{255, 255, 255, 127}, true)
	f.Add(uint16(4096), []byte{255, 255, 1}, false)
	f.Fuzz(func(t *testing.T, at uint16, patch []byte, sealed bool) {
		fd, err := unix.MemfdCreate("fuzz", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		h := bytes.Clone(hdr)
		copy(h[int(at)%len(h):], patch)
		if err := unix.Ftruncate(fd, size); err != nil {
			t.Fatal(err)
		}
		_, _ = unix.Pwrite(fd, h, 0)
		if sealed {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
		}
		r, err := Open(fd)
		if err != nil {
			return
		}
		if !sealed {
			t.Fatal("an unsealed memfd was accepted")
		}
		buf := make([]byte, 4096)
		_, _ = r.ReadAt(buf, r.Oldest())
		r.SafeFrom(0)
		_, _ = r.Recover(10, func([]byte) error { return nil })
		r.Append(buf)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOpenRefusesOthers(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, _ := unix.Dup(int(f.Fd()))
	if _, err := Open(fd); err == nil {
		t.Error("a file was taken for a ring")
	}
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[1])
	if _, err := Open(p[0]); err == nil {
		t.Error("a pipe was taken for a ring")
	}
}

package buffer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func newRing(t testing.TB, limit int64) *Ring {
	t.Helper()
	r, err := New(7, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// pattern is the byte at absolute offset off of every test's stream.
func pattern(off uint64) byte { return byte(off*2654435761>>13) | 0x20&0x5f }

func fill(p []byte, off uint64) []byte {
	for i := range p {
		p[i] = pattern(off + uint64(i))
	}
	return p
}

func checkAt(t interface{ Fatalf(string, ...any) }, p []byte, off uint64) {
	for i, b := range p {
		if b != pattern(off+uint64(i)) {
			t.Fatalf("byte at offset %d is %#x, want %#x", off+uint64(i), b, pattern(off+uint64(i)))
		}
	}
}

// Appends of any size and failures of memory at any moment: what is readable
// is exactly the stream from Oldest to Head, at least the limit when memory
// was never short.
func TestRingModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(1, 5).Draw(t, "chunks")) * ChunkSize
		r, err := New(1, limit)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		short, wasShort := false, false
		r.fallocate = func(fd int, mode uint32, off, n int64) error {
			if short {
				return unix.ENOSPC
			}
			return unix.Fallocate(fd, mode, off, n)
		}
		var head uint64
		buf := make([]byte, 10*ChunkSize)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "toggle") == 0 {
				short = !short
				wasShort = true
			}
			n := rapid.OneOf(rapid.IntRange(0, 5000), rapid.IntRange(0, 3*ChunkSize)).Draw(t, "append")
			r.Append(fill(buf[:n], head))
			head += uint64(n)
			if r.Head() != head {
				t.Fatalf("head %d, want %d", r.Head(), head)
			}
			old := r.Oldest()
			if old > head || (!wasShort && head-old < min(head, uint64(limit))) {
				t.Fatalf("kept [%d,%d) of a limit of %d", old, head, limit)
			}
			got, err := r.ReadAt(buf, old)
			if err != nil || uint64(got) != head-old {
				t.Fatalf("read %d of [%d,%d): %v", got, old, head, err)
			}
			checkAt(t, buf[:got], old)
			if old > 0 {
				var ev *EvictedError
				if _, err := r.ReadAt(buf[:1], old-1); !errors.As(err, &ev) || ev.Oldest != old {
					t.Fatalf("below the oldest: %v", err)
				}
			}
			if _, err := r.ReadAt(buf[:1], head+1); !errors.Is(err, ErrFuture) {
				t.Fatalf("beyond the head: %v", err)
			}
			at := uint64(rapid.IntRange(0, int(head)).Draw(t, "safe"))
			if s, _ := r.SafeFrom(at); s < old || (s < at && s != r.openAt.Load()-1) {
				t.Fatalf("SafeFrom(%d) = %d with [%d,%d)", at, s, old, head)
			}
		}
		if _, lost := r.Shortage(); lost > 0 && !wasShort {
			t.Fatalf("%d bytes lost without a shortage", lost)
		}
	})
}

// One writer at full speed, readers of every temper: each gets the exact
// stream, with every gap announced; none blocks the writer or another.
func TestReadersWhileWriting(t *testing.T) {
	r := newRing(t, 2*ChunkSize)
	const total = 24 << 20
	var skipped, waits atomic.Int64
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			buf := make([]byte, 1+k*7000)
			var off uint64
			rnd := rand.New(rand.NewPCG(1, uint64(k)))
			for {
				n, err := r.ReadAt(buf[:1+rnd.IntN(len(buf))], off)
				var ev *EvictedError
				switch {
				case errors.As(err, &ev):
					skipped.Add(1)
					off = ev.Oldest
					continue
				case err != nil:
					t.Error(err)
					return
				}
				checkAt(t, buf[:n], off)
				off += uint64(n)
				if n == 0 {
					waits.Add(1)
					more, err := r.Wait(context.Background(), off)
					if err != nil {
						t.Error(err)
						return
					}
					if !more {
						if off != total {
							t.Errorf("ended at %d of %d", off, total)
						}
						return
					}
				}
			}
		})
	}
	rnd := rand.New(rand.NewPCG(2, 2))
	buf := make([]byte, 9000)
	for off := uint64(0); off < total; {
		n := min(rnd.IntN(len(buf)), int(total-off))
		r.Append(fill(buf[:n], off))
		off += uint64(n)
	}
	r.Seal()
	wg.Wait()
	if skipped.Load() == 0 {
		t.Error("no reader ever fell behind: the interesting case did not happen")
	}
	t.Logf("%d jumps, %d waits", skipped.Load(), waits.Load())
}

// The last bytes before a pause must wake a reader that was just about to wait.
func TestNoLostWakeup(t *testing.T) {
	r := newRing(t, MinLimit)
	turn := make(chan uint64)
	go func() {
		defer close(turn)
		var off uint64
		for {
			more, err := r.Wait(context.Background(), off)
			if err != nil || !more {
				return
			}
			off = r.Head()
			turn <- off
		}
	}()
	var w [8]byte
	for i := range 20000 {
		binary.LittleEndian.PutUint64(w[:], uint64(i))
		r.Append(w[:])
		for got := range turn { // would hang here
			if got == r.Head() {
				break
			}
		}
	}
	r.Seal()
	for range turn {
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	r := newRing(t, MinLimit)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Wait(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestCloseWhileReading(t *testing.T) {
	r := newRing(t, MinLimit)
	r.Append(make([]byte, 60000))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			buf := make([]byte, 30000)
			for {
				if _, err := r.ReadAt(buf, 100); errors.Is(err, ErrClosed) {
					return
				}
				r.SafeFrom(5)
			}
		})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if r.Head() != 60000 {
		t.Errorf("head after close: %d", r.Head())
	}
}

// A cut is never inside a sequence or a character, wherever the ring's tail lies.
func TestSafeFromInRing(t *testing.T) {
	r := newRing(t, 2*ChunkSize)
	unit := []byte("\x1b]0;a long title with text\x07é€𝄞 plain \x1b[38;5;123mcolour\x1b[0m\r\n")
	for r.Head() < 10*ChunkSize {
		r.Append(unit[:17])
		r.Append(unit[17:])
	}
	for off := r.Oldest(); off < r.Head(); off += 997 {
		at, clean := r.SafeFrom(off)
		if !clean || at < off {
			t.Fatalf("SafeFrom(%d) = %d %v", off, at, clean)
		}
		rest := make([]byte, len(unit))
		n, err := r.ReadAt(rest, at)
		if err != nil {
			t.Fatal(err)
		}
		var sc scanner
		pos := int(at % uint64(len(unit)))
		sc.scan(unit[:pos], 0, false)
		if !sc.safe() || !bytes.Equal(rest[:min(n, len(unit)-pos)], unit[pos:][:min(n, len(unit)-pos)]) {
			t.Fatalf("SafeFrom(%d) = %d is inside of %q", off, at, unit)
		}
	}
	// Near the head it is as exact as anywhere: a jump to the last lines keeps them.
	for back := uint64(1); back < 3000; back += 7 {
		if at, clean := r.SafeFrom(r.Head() - back); !clean || at-(r.Head()-back) > uint64(len(unit)) {
			t.Fatalf("%d before the head: %d of %d", back, at, r.Head())
		}
	}
	// A string that fills the whole ring leaves no safe point: said, not guessed.
	r.Append([]byte("\x1bP"))
	r.Append(bytes.Repeat([]byte("x"), 5*ChunkSize))
	if at, clean := r.SafeFrom(r.Oldest()); clean || at != r.Head() {
		t.Errorf("inside a huge string: %d %v", at, clean)
	}
}

func TestMemoryGrowsOnDemand(t *testing.T) {
	r := newRing(t, 8<<20)
	if k := r.Kept(); k > 16<<10 {
		t.Errorf("an empty ring holds %d bytes", k)
	}
	r.Append(make([]byte, 20<<20))
	if k := r.Kept(); k < 8<<20 || k > 9<<20 {
		t.Errorf("a full ring of 8 MiB holds %d bytes", k)
	}
}

func TestLimits(t *testing.T) {
	for _, n := range []int64{-1, 0, MinLimit - 1, MaxLimit + 1} {
		if r, err := New(1, n); err == nil {
			r.Close()
			t.Errorf("limit %d was accepted", n)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	r := newRing(b, 8<<20)
	p := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog. 0123456789\r\n"), 72)[:4095]
	b.SetBytes(4095)
	for b.Loop() {
		r.Append(p)
	}
}

package notifyproto

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// pair returns a ring as the keeper and as the worker see it.
func pair(t testing.TB) (keeper, worker *Exits) {
	t.Helper()
	keeper, err := NewExits()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(keeper.FD())
	if err != nil {
		t.Fatal(err)
	}
	worker, err = OpenExits(fd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keeper.Close(); _ = worker.Close() })
	return keeper, worker
}

func TestExits(t *testing.T) {
	k, w := pair(t)
	if _, ok := w.Next(); ok {
		t.Error("an empty ring has a record")
	}
	w.Consume() // nothing there: must not run ahead
	want := ExitRecord{PID: 1 << 22, Code: CLDKilled, Status: 9, At: -1}
	if !k.Append(want) {
		t.Fatal("an empty ring is full")
	}
	for range 2 { // does not consume
		if got, ok := w.Next(); !ok || got != want {
			t.Fatalf("got %+v, %v", got, ok)
		}
	}
	w.Consume()
	if _, ok := w.Next(); ok {
		t.Error("a consumed record came again")
	}
	if got, ok := w.Find(1 << 22); !ok || got != want {
		t.Errorf("consumed record not found: %+v, %v", got, ok)
	}
	if _, ok := w.Find(7); ok {
		t.Error("found what never was")
	}
	k.Append(ExitRecord{PID: 1 << 22, Code: CLDExited, Status: 3, At: 5})
	if got, _ := w.Find(1 << 22); got.At != 5 {
		t.Errorf("found the older of two: %+v", got)
	}
}

// Full is full: nothing is overwritten, and one consumed record makes room for one.
func TestExitsFull(t *testing.T) {
	k, w := pair(t)
	for i := range ExitsCapacity {
		if !k.Append(ExitRecord{PID: int32(i)}) {
			t.Fatalf("full after %d", i)
		}
	}
	for range 3 {
		if k.Append(ExitRecord{PID: -1}) {
			t.Fatal("appended to a full ring")
		}
	}
	if w.Len() != ExitsCapacity {
		t.Errorf("length %d", w.Len())
	}
	if r, _ := w.Next(); r.PID != 0 {
		t.Errorf("the oldest is %d", r.PID)
	}
	w.Consume()
	if !k.Append(ExitRecord{PID: ExitsCapacity}) || k.Append(ExitRecord{PID: -1}) {
		t.Error("one record's room is not one record")
	}
	if r, _ := w.Next(); r.PID != 1 {
		t.Errorf("the oldest is %d", r.PID)
	}
}

// The ring against a plain queue.
func TestExitsModel(t *testing.T) {
	steps := []int{1, 3, 40, 1400}
	rapid.Check(t, func(t *rapid.T) {
		k, err := NewExits()
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		var all []ExitRecord
		consumed := 0
		next := int32(1)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				for range rapid.SampledFrom(steps).Draw(t, "n") {
					r := ExitRecord{PID: next, Code: next % 3, Status: -next, At: int64(next) << 32}
					ok := k.Append(r)
					if ok != (len(all)-consumed < ExitsCapacity) {
						t.Fatalf("append gave %v with %d open", ok, len(all)-consumed)
					}
					if ok {
						all = append(all, r)
						next++
					}
				}
			},
			"consume": func(t *rapid.T) {
				for range rapid.SampledFrom(steps).Draw(t, "n") {
					r, ok := k.Next()
					if ok != (consumed < len(all)) {
						t.Fatalf("next gave %v", ok)
					}
					if !ok {
						break
					}
					if r != all[consumed] {
						t.Fatalf("got %+v, want %+v", r, all[consumed])
					}
					k.Consume()
					consumed++
				}
			},
			"": func(t *rapid.T) {
				if k.Len() != len(all)-consumed {
					t.Fatalf("length %d, want %d", k.Len(), len(all)-consumed)
				}
			},
			"find": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("nothing to find")
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
				r, ok := k.Find(int(all[i].PID))
				if kept := len(all)-i < ExitsCapacity; ok != kept || ok && r != all[i] {
					t.Fatalf("find of %d of %d gave %+v, %v", i, len(all), r, ok)
				}
			},
		})
	})
}

// Writer, consumer and finder at once: every record once, in order, whole.
func TestExitsConcurrent(t *testing.T) {
	const n = 30000
	k, w := pair(t)
	whole := func(r ExitRecord) bool { return r.Status == -r.PID && r.At == int64(r.PID)*3 }
	var last atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int32(1); i <= n; {
			if k.Append(ExitRecord{PID: i, Code: CLDExited, Status: -i, At: int64(i) * 3}) {
				i++
			}
		}
	})
	wg.Go(func() {
		for want := int32(1); want <= n; {
			r, ok := w.Next()
			if !ok {
				continue
			}
			if r.PID != want || !whole(r) {
				t.Errorf("got %+v, want %d", r, want)
				return
			}
			w.Consume()
			last.Store(want)
			want++
		}
	})
	wg.Go(func() {
		for seen := int32(0); seen < n; {
			seen = last.Load()
			if r, ok := w.Find(int(seen) - ExitsCapacity + 3); ok && !whole(r) {
				t.Errorf("torn: %+v", r)
				return
			}
		}
	})
	wg.Wait()
}

// forge returns a sealed memfd with content.
func forge(t testing.TB, content []byte, size int64, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("forged", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Pwrite(fd, content, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestOpenExitsRefuses(t *testing.T) {
	k, _ := pair(t)
	good := make([]byte, offRecords)
	copy(good, k.mem)
	with := func(off int, v byte) []byte {
		b := append([]byte(nil), good...)
		b[off] = v
		return b
	}
	for name, fd := range map[string]int{
		"short":     forge(t, good, exitsSize-1, exitsSeals),
		"long":      forge(t, good, exitsSize+1, exitsSeals),
		"unsealed":  forge(t, good, exitsSize, 0),
		"growing":   forge(t, good, exitsSize, unix.F_SEAL_SHRINK),
		"magic":     forge(t, with(offMagic, 1), exitsSize, exitsSeals),
		"version":   forge(t, with(offVersion, 2), exitsSize, exitsSeals),
		"record":    forge(t, with(offVersion+4, 25), exitsSize, exitsSeals),
		"capacity":  forge(t, with(offCapacity, 1), exitsSize, exitsSeals),
		"positions": forge(t, with(offTail, 1), exitsSize, exitsSeals),
		"too many":  forge(t, with(offHead+2, 1), exitsSize, exitsSeals),
	} {
		if e, err := OpenExits(fd); err == nil {
			t.Errorf("%s: accepted", name)
			_ = e.Close()
			continue
		}
		if !open(fd) {
			t.Errorf("%s: refused and closed", name)
		}
		_ = unix.Close(fd)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(exitsSize); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(good, 0); err != nil {
		t.Fatal(err)
	}
	// A file on a tmpfs answers F_GET_SEALS too, and has the seal against seals.
	if e, err := OpenExits(int(f.Fd())); err == nil {
		t.Error("a plain file was accepted")
		_ = e.Close()
	}
	if _, err := OpenExits(-1); err == nil {
		t.Error("no descriptor was accepted")
	}
}

// Whatever a memfd holds, opening it is an answer, and what was accepted can be used.
func FuzzOpenExits(f *testing.F) {
	f.Add([]byte{})
	k, err := NewExits()
	if err != nil {
		f.Fatal(err)
	}
	k.Append(ExitRecord{PID: 3})
	f.Add(append([]byte(nil), k.mem[:256]...))
	if err := k.Close(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fd := forge(t, b[:min(len(b), exitsSize)], exitsSize, exitsSeals)
		e, err := OpenExits(fd)
		if err != nil {
			_ = unix.Close(fd)
			return
		}
		for range ExitsCapacity + 1 {
			if _, ok := e.Next(); !ok {
				break
			}
			e.Consume()
		}
		if _, ok := e.Next(); ok {
			t.Error("more records than fit")
		}
		e.Find(3)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

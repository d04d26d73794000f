package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const id = "s_01arz3ndektsv4rrffq69g5fav"

func newDir(t testing.TB) *Dir {
	t.Helper()
	return Open(filepath.Join(t.TempDir(), "checkpoints"))
}

func newLog(t testing.TB, d *Dir, limit int64) *Log {
	t.Helper()
	l, err := d.Log(id, 7, limit, make([]byte, BufSize))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stream is a piece of a stream that repeats nowhere near.
func stream(from, to uint64) []byte { return all[from:to] }

var all = func() []byte {
	b := make([]byte, 0, 5<<20)
	for n := uint64(0); len(b) < cap(b); n++ {
		b = binary.BigEndian.AppendUint64(b, n*0x9e3779b97f4a7c15)
	}
	return b
}()

func safeHere(off uint64) uint64 { return off }

func appendTo(t testing.TB, l *Log, from, to uint64) {
	t.Helper()
	if err := l.Append(from, stream(from, to), safeHere); err != nil {
		t.Fatal(err)
	}
}

// expect reads what is kept and compares it with the stream.
func expect(t testing.TB, d *Dir, start, end uint64) *Saved {
	t.Helper()
	sv, err := d.Find(id, 7)
	if err != nil {
		t.Fatal(err)
	}
	if sv.Start != start || sv.End != end {
		t.Fatalf("[%d, %d) is kept, want [%d, %d); damage %v", sv.Start, sv.End, start, end, sv.Damage)
	}
	var got []byte
	if err := sv.Each(func(p []byte) error { got = append(got, p...); return nil }); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, stream(start, end)) {
		t.Fatalf("%d bytes that are not those written", len(got))
	}
	return sv
}

func files(t testing.TB, d *Dir) (names []string, bytes int64) {
	t.Helper()
	list, err := os.ReadDir(d.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		st, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), st.Mode())
		}
		names, bytes = append(names, f.Name()), bytes+st.Size()
	}
	return names, bytes
}

// What was appended in whatever pieces is read again, by this process and by
// the next one, which goes on where this one ended.
func TestWriteAndRead(t *testing.T) {
	d := newDir(t)
	l := newLog(t, d, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	at := uint64(0)
	for i := range 60 {
		n := at + 1 + rng.Uint64N(9000)
		appendTo(t, l, at, n)
		at = n
		if i%7 == 0 {
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if i%20 == 19 { // the next process
			d = Open(d.path)
			l = newLog(t, d, 1<<20)
			if next, ok, err := l.Resume(); next != at || !ok || err != nil {
				t.Fatalf("goes on at %d, %v, %v; want %d", next, ok, err, at)
			}
		}
	}
	expect(t, d, 0, at)
	if st, err := os.Stat(d.path); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", st.Mode(), err)
	}
	for _, dir := range []*Dir{d, Open(d.path)} {
		if start, end, ok := dir.Extent(id, 7); start != 0 || end != at || !ok {
			t.Errorf("extent [%d, %d) %v", start, end, ok)
		}
	}
	if _, _, ok := Open(d.path).Extent(id, 8); ok {
		t.Error("another run has the same extent")
	}
	if _, sum := files(t, d); sum != d.Size(id) {
		t.Errorf("%d bytes on the disk, %d by the index", sum, d.Size(id))
	}
}

// A small append writes a small amount: nothing is written again.
func TestAppendIsIncremental(t *testing.T) {
	d := newDir(t)
	l := newLog(t, d, 8<<20)
	appendTo(t, l, 0, 900<<10)
	names, before := files(t, d)
	appendTo(t, l, 900<<10, 900<<10+100)
	after, sum := files(t, d)
	if fmt.Sprint(names) != fmt.Sprint(after) || sum-before != 100+recordHead {
		t.Errorf("100 bytes more: %d bytes in %v, then %d in %v", before, names, sum, after)
	}
}

// Files never hold more than the limit; the newest bytes stay, without a gap.
func TestLimit(t *testing.T) {
	for _, limit := range []int64{64 << 10, 1 << 20} {
		d := newDir(t)
		l := newLog(t, d, limit)
		for at := uint64(0); at < 4<<20; at += 10000 {
			appendTo(t, l, at, at+10000)
			if names, sum := files(t, d); sum > limit || len(names) > maxSegments {
				t.Fatalf("%d bytes in %d files, the limit is %d", sum, len(names), limit)
			}
		}
		start, end, _ := d.Extent(id, 7)
		if end-start < uint64(limit)/2 {
			t.Errorf("limit %d: only [%d, %d) is kept", limit, start, end)
		}
		expect(t, d, start, 4<<20/10000*10000+10000)
	}
}

// After a gap only what follows it counts, and what came before it is there as
// long as nothing does.
func TestGap(t *testing.T) {
	d := newDir(t)
	l := newLog(t, d, 1<<20)
	appendTo(t, l, 0, 5000)
	appendTo(t, l, 9000, 9500)
	expect(t, d, 9000, 9500)
	// The crash took the newest bytes.
	names, _ := files(t, d)
	if err := os.Truncate(filepath.Join(d.path, names[1]), headerSize+20); err != nil {
		t.Fatal(err)
	}
	d = Open(d.path)
	expect(t, d, 0, 5000)
	if start, end, ok := d.Extent(id, 7); start != 0 || end != 5000 || !ok {
		t.Errorf("extent [%d, %d) %v", start, end, ok)
	}
	// And the writer, which lacks them too, leaves no gap within a generation.
	l = newLog(t, d, 1<<20)
	appendTo(t, l, 9100, 9300)
	expect(t, d, 9100, 9300)
}

// Wherever a file is cut or changed, what is read is a stretch of what was
// written, and writing goes on after it.
func TestTornAndCorrupt(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 25 {
		d := newDir(t)
		l := newLog(t, d, 256<<10)
		for at := uint64(0); at < 120000; at += 3000 {
			appendTo(t, l, at, at+3000)
		}
		names, _ := files(t, d)
		name := filepath.Join(d.path, names[rng.IntN(len(names))])
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at := rng.IntN(len(b))
		if rng.IntN(2) == 0 {
			b = b[:at]
		} else {
			b[at] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		d = Open(d.path)
		sv, err := d.Find(id, 7)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, d, sv.Start, sv.End)
		l = newLog(t, d, 256<<10)
		next, ok, err := l.Resume()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			next = 200000
		}
		appendTo(t, l, next, next+5000)
		if sv := expect(t, d, min(sv.Start, next), next+5000); len(sv.Damage) == 0 && ok && next != 120000 && sv.End != next+5000 {
			t.Errorf("%+v", sv)
		}
	}
}

// Names that are none of ours are left alone, and neither they nor files of a
// right name and a wrong content are taken for output.
func TestForeignFiles(t *testing.T) {
	d := newDir(t)
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"README", id, id + ".0.0", id + ".00000000.000000000000000G", "..00000000.0000000000000000", id + ".00000000.0000000000000000"}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(d.path, n), bytes.Repeat([]byte("x"), 5000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(d.path, "s_link.00000000.0000000000000000")); err != nil {
		t.Fatal(err)
	}
	if got := d.IDs(); len(got) != 1 || got[0] != id {
		t.Errorf("sessions %v", got)
	}
	sv, err := d.Find(id, 7)
	if err != nil || !sv.Empty() || len(sv.Damage) != 1 {
		t.Errorf("%+v, %v", sv, err)
	}
	l := newLog(t, d, 1<<20)
	appendTo(t, l, 0, 100)
	expect(t, d, 0, 100)
	if err := d.Remove(id); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(d.path)
	if err != nil || len(left) != len(names) {
		t.Errorf("left are %v, %v", left, err)
	}
	if st, err := os.Stat(d.path); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", st.Mode(), err)
	}
	if n, sum := d.Stats(); n != 0 || sum != 0 {
		t.Errorf("%d sessions, %d bytes", n, sum)
	}
	for _, bad := range []string{"", "a/b", "..", "a.b", strings.Repeat("a", idSize+1)} {
		if _, err := d.Log(bad, 1, 1<<20, nil); err == nil {
			t.Errorf("%q may be a file's name", bad)
		}
	}
}

// A session whose only file was dropped for want of room goes on.
func TestDroppedGoesOn(t *testing.T) {
	d := newDir(t)
	l := newLog(t, d, 1<<20)
	appendTo(t, l, 0, 100)
	if n, err := d.DropOldest(id); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	l.Dropped()
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	appendTo(t, l, 100, 150)
	expect(t, d, 100, 150)
}

// A write that fails is taken back, and writing goes on when it can.
func TestFailedWrite(t *testing.T) {
	d := newDir(t)
	l := newLog(t, d, 1<<20)
	appendTo(t, l, 0, 100)
	names, _ := files(t, d)
	name := filepath.Join(d.path, names[0])
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// The file is gone, and where it was nothing can be written.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(100, stream(100, 200), safeHere); err == nil {
		t.Fatal("written into a directory")
	}
	if l.Next() != 100 {
		t.Errorf("next is %d", l.Next())
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	appendTo(t, l, 100, 300)
	expect(t, d, 0, 300)
}

// FuzzScan: whatever a file holds, reading it ends, needs little memory, and
// gives bytes that are one stretch.
func FuzzScan(f *testing.F) {
	h := header{epoch: 7, start: 40, safe: 41, id: id}.bytes()
	rec := func(off uint64, data string) []byte {
		b := make([]byte, recordHead)
		putRecord(b, off, []byte(data))
		return append(b, data...)
	}
	f.Add([]byte{})
	f.Add(h)
	f.Add(bytes.Join([][]byte{h, rec(40, "hello"), rec(45, "more")}, nil))
	f.Add(bytes.Join([][]byte{h, rec(40, "hello"), rec(99, "a gap")}, nil))
	f.Add(append(bytes.Clone(h), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		at, first := uint64(0), true
		sp, err := scan(bytes.NewReader(b), func(off uint64, data []byte) error {
			if !first && off != at || len(data) == 0 || len(data) > MaxRecord {
				t.Fatalf("%d bytes at %d after %d", len(data), off, at)
			}
			at, first = off+uint64(len(data)), false
			return nil
		})
		if err != nil {
			return
		}
		if sp.size > int64(len(b)) || sp.end < sp.start || !first && at != sp.end {
			t.Fatalf("%+v of %d bytes", sp, len(b))
		}
		if got, err := parseHeader(sp.header.bytes()); err != nil || got != sp.header {
			t.Fatalf("%+v became %+v, %v", sp.header, got, err)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add(id + ".00000001.0000000000000400")
	f.Fuzz(func(t *testing.T, name string) {
		if id, s, ok := parseName(name); ok && (s.name(id) != name || filepath.Base(name) != name) {
			t.Errorf("%q became %q", name, s.name(id))
		}
	})
}

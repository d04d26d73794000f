package buffer

import (
	"bytes"
	"errors"
	"testing"
)

// Restored output keeps its offsets, and what was cut at its front is not
// entered inside a sequence.
func TestRestore(t *testing.T) {
	const start = 3*ChunkSize + 1000
	text := append([]byte("31mred\x1b[0m "), bytes.Repeat([]byte("0123456789"), 20000)...)
	for _, c := range []struct {
		name        string
		start, safe uint64
		enter       uint64 // where a reader of everything begins
	}{
		{"from the beginning", 0, 0, 0},
		{"inside a sequence", start, start + 3, start + 3},
		{"not known", start, 0, start},
		{"at a chunk's beginning", 2 * ChunkSize, 2 * ChunkSize, 2 * ChunkSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Restore(9, 1<<20, c.start, c.safe, func(give func([]byte) error) error {
				for p := text; len(p) > 0; {
					n := min(len(p), 50000)
					if err := give(p[:n]); err != nil {
						return err
					}
					p = p[n:]
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if r.Oldest() != c.start || r.Head() != c.start+uint64(len(text)) || r.Epoch() != 9 || !r.Sealed() {
				t.Fatalf("[%d, %d) of run %d, sealed %v", r.Oldest(), r.Head(), r.Epoch(), r.Sealed())
			}
			got := make([]byte, len(text)+1)
			if n, err := r.ReadAt(got, c.start); err != nil || !bytes.Equal(got[:n], text) {
				t.Fatalf("%d bytes, %v", n, err)
			}
			if at, clean := r.SafeFrom(r.Oldest()); at != c.enter || !clean {
				t.Errorf("entered at %d, %v; want %d", at, clean, c.enter)
			}
			if at, _ := r.SafeFrom(r.Head() - 100); at != r.Head()-100 {
				t.Errorf("the last 100 bytes are entered at %d of %d", at, r.Head())
			}
		})
	}
}

func TestRestoreFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Restore(9, 1<<20, 5, 5, func(func([]byte) error) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

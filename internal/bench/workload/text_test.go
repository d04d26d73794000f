package workload

import (
	"bytes"
	"testing"
)

// stream is the flood as the child writes it.
func stream(n int) []byte {
	var out []byte
	b := newBlock()
	for i := uint64(0); len(out) < n; i++ {
		b.number(i)
		out = append(out, b...)
	}
	return out[:n]
}

func TestChecksumOfAnyPart(t *testing.T) {
	s := stream(3*blockLen + 17)
	for _, c := range [][2]uint64{
		{0, 0}, {0, 1}, {0, blockLen}, {5, 9}, {blockLen - 1, blockLen + 1},
		{blockLen, 2 * blockLen}, {100, 3*blockLen + 17}, {0, 3*blockLen + 17},
	} {
		if got, want := Checksum(c[0], c[1]), Update(0, s[c[0]:c[1]]); got != want {
			t.Errorf("Checksum(%d, %d) = %08x, want %08x", c[0], c[1], got, want)
		}
	}
}

// A reader that loses or repeats a line must see another checksum.
func TestLinesDiffer(t *testing.T) {
	s := stream(2 * blockLen)
	seen := map[string]bool{}
	for l := range bytes.Lines(s) {
		if len(l) != LineLen {
			t.Fatalf("line of %d bytes", len(l))
		}
		if seen[string(l)] {
			t.Fatalf("line %q twice", l[:8])
		}
		seen[string(l)] = true
	}
	cut := append(append([]byte{}, s[:LineLen]...), s[2*LineLen:]...)
	if Update(0, cut) == Checksum(0, uint64(len(cut))) {
		t.Error("a missing line went unseen")
	}
}

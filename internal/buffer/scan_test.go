package buffer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every stream is cut at every byte: the scanner must call exactly those cuts
// safe that lie between whole characters and whole sequences.
func TestSafeCuts(t *testing.T) {
	// A "|" marks where a cut is safe; between marks it is not.
	for _, s := range []string{
		"|a|b|\r|\n|",
		"|\x1b[31m|r|\x1b[0m|",
		"|\x1b]0;title\x07|x|",
		"|\x1b]0;title\x1b\\|x|",
		"|\x1b]0;ti\u009c|x|", // C1 ST inside a string
		"|\x1bP1$r0m\x1b\\|",
		"|\x1b_apc\x07still\x1b\\|",
		"|\x1b]8;;http://x\x1b\\|l|\x1b]8;;\x1b\\|",
		"|é|€|𝄞|a|",
		"|\u009b1;2H|x|", // C1 CSI in UTF-8
		"|\u00a0|x|",
		"|\x1b(B|x|",
		"|\x1b#8|x|",
		"|\x1b[?1049h|",
		"|\x1b[12\x18|x|",     // CAN aborts
		"|\x1b]52;c;\x1a|x|",  // SUB aborts
		"|\x1b[1\x1b[2J|x|",   // ESC inside CSI begins anew
		"|\x1b\x1b[m|",        //
		"|\x1bM|\x1b7|\x1b8|", //
		"|\x1b[1\n2m|x|",      // C0 inside CSI is executed, the sequence goes on
		"|\x1b[1é|x|",         // a wide character aborts CSI
		"|\x1b[0$|}|",         // no: "$}" is one sequence; see below
	} {
		if strings.Contains(s, "[0$") {
			s = "|\x1b[0$}|x|"
		}
		var raw []byte
		safe := map[int]bool{}
		for _, b := range []byte(s) {
			if b == '|' {
				safe[len(raw)] = true
			} else {
				raw = append(raw, b)
			}
		}
		for split := 0; split <= len(raw); split++ {
			var sc scanner
			sc.scan(raw[:split], 0, false)
			if sc.safe() != safe[split] {
				t.Errorf("%q cut at %d (%q): safe=%v", raw, split, raw[:split], sc.safe())
			}
			sc.scan(raw[split:], uint64(split), false)
			if !sc.safe() {
				t.Errorf("%q in two parts at %d does not end safe", raw, split)
			}
		}
	}
}

// However a stream is split into reads, and whether by the quick path or byte
// by byte, the answer is the same; and start is the last safe cut.
func TestScanSplit(t *testing.T) {
	alphabet := []string{"a", "plain text ", "\x1b", "[", "]", "P", "\\", "1;2", "m", "\x07", "\x18", "é", "€", "𝄞", "\u009b", "\u009c", "\u009d",
		"\xc2", "\xe2\x82", "\x80", "\xff", "\r\n", "\x1b[0m", "\x1b]0;t\x07", "_", "\x7f", "(", "B"}
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom(alphabet)).Draw(t, "stream"), ""))
		var slow scanner
		last := uint64(0)
		var safeAt []bool
		for i, b := range raw {
			safeAt = append(safeAt, slow.safe())
			if slow.safe() {
				last = uint64(i)
			}
			slow.step(b, uint64(i))
		}
		safeAt = append(safeAt, slow.safe())
		var sc scanner
		for i := 0; i < len(raw); {
			n := rapid.IntRange(1, len(raw)-i).Draw(t, "read")
			first, ok := sc.scan(raw[i:i+n], uint64(i), true)
			want := -1
			for k := i; k <= i+n; k++ {
				if safeAt[k] {
					want = k
					break
				}
			}
			if ok != (want >= 0) || (ok && (int(first) < i || !safeAt[first])) {
				t.Fatalf("%q read [%d,%d): first safe %d %v, want %d", raw, i, i+n, first, ok, want)
			}
			i += n
		}
		if sc.safe() != slow.safe() || sc.state != slow.state || sc.need != slow.need {
			t.Fatalf("%q: %+v, byte by byte %+v", raw, sc, slow)
		}
		// A lead byte that cuts an invalid character short begins after it.
		if !sc.safe() && (sc.start < last || sc.start >= uint64(len(raw))) {
			t.Fatalf("%q: open since %d, last safe cut %d", raw, sc.start, last)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	for name, p := range map[string][]byte{
		"plain":   bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog. 0123456789\r\n"), 72)[:4096],
		"colours": bytes.Repeat([]byte("\x1b[0m\x1b[01;34mdir\x1b[0m  file.txt  "), 140)[:4096],
		"unicode": bytes.Repeat([]byte("Größe € 日本 "), 250)[:4095],
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			var s scanner
			for i := range b.N {
				s.scan(p, uint64(i*len(p)), false)
			}
		})
	}
}

func ExampleRing_SafeFrom() {
	r, _ := New(1, MinLimit)
	defer r.Close()
	r.Append([]byte("text\x1b[3"))
	fmt.Println(r.SafeFrom(1))
	fmt.Println(r.SafeFrom(5))
	// Output:
	// 1 true
	// 4 true
}

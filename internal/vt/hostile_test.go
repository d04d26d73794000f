package vt

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Streams that are made to crash, to grow or to hold the processor. Each piece is
// repeated to a quarter of a megabyte.
var hostile = map[string]func(i int) string{
	"erase huge":        func(int) string { return "\x1b[99999999X" },
	"every count huge":  func(i int) string { return "\x1b[2147483647" + string("@ABCDEFGIJKLMPSTXZ`abdefgr"[i%26]) },
	"number overflows":  func(int) string { return "\x1b[4967296I\x1b[99999999999999999999A" },
	"region":            func(int) string { return "\x1b[;29r\x1b[T\x1b[5;2r\x1b[0;0r\x1b[999;9999r\x1bM" },
	"repeat":            func(int) string { return "x\x1b[2147483647b" },
	"combining":         func(int) string { return "\u0301" },
	"clusters":          func(i int) string { return fmt.Sprintf("\r%c%c%c", 'a'+i%26, 0x300+i%100, 0x300+i/100%100) },
	"colours":           func(i int) string { return fmt.Sprintf("\x1b[38;2;%d;%d;%dmx", i&255, i>>8&255, i>>16&255) },
	"links":             func(i int) string { return fmt.Sprintf("\x1b]8;;http://%d/%s\x07x", i, strings.Repeat("y", 1000)) },
	"long OSC":          func(i int) string { return [2]string{"\x1b]2;", strings.Repeat("t", 900)}[min(i, 1)] },
	"long DCS":          func(i int) string { return [2]string{"\x1bPq", strings.Repeat("t", 900)}[min(i, 1)] },
	"long CSI":          func(i int) string { return [2]string{"\x1b[", "1;2:3;"}[min(i, 1)] },
	"long intermediate": func(i int) string { return [2]string{"\x1b", "!"}[min(i, 1)] },
	"queries":           func(int) string { return "\x1b[6n\x1b]4;1;?;2;?;3;?\x07" },
	"bells":             func(int) string { return "\a" },
	"titles":            func(i int) string { return fmt.Sprintf("\x1b]0;%s%d\a", strings.Repeat("t", 5000), i) },
	"clipboard":         func(int) string { return "\x1b]52;c;" + strings.Repeat("QUJD", 5000) + "\a" },
	"marks":             func(i int) string { return fmt.Sprintf("\x1b]133;A;%d%s\a\n", i, strings.Repeat("k", 500)) },
	"screens":           func(int) string { return "\x1b[?1049h\x1b[?1049l" },
	"keyboard":          func(int) string { return "\x1b[>1u" },
	"wrap at 1":         func(int) string { return "中\u0301\x1b[?7l中\u0301\x1b[?7h" },
	"erase last column": func(int) string { return "\x1b[999;999Hx\x1b[1J" },
	"invalid":           func(i int) string { return string([]byte{byte(0x80 + i%128), byte(0xf0 + i%16), byte(i)}) },
	"soft reset":        func(int) string { return "\x1b[!p\x1b[3g\x1b[?6h\x1b[2;3r\x1b8" },
	"wrapped erased":    func(int) string { return "0123456789\x1b[1K\x1b[Cx\x1b[A\x1b[2K\n\n" },
}

func TestHostileStreams(t *testing.T) {
	for name, piece := range hostile {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			for i := 0; b.Len() < 1<<18; i++ {
				b.WriteString(piece(i))
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := used(t)
			vt := New(Options{Cols: 10, Rows: 5, ScrollbackLines: 1000, ScrollbackBytes: 2 << 20})
			vt.Write(b.Bytes())
			snapshot := vt.AppendSnapshot(nil)
			took := used(t) - start
			checkShape(t, vt)
			vt.Resize(7, 9)
			checkShape(t, vt)
			if n := len(vt.styles.list); n > 2*sweepMin {
				t.Errorf("%d styles for %d cells", n, 7*9)
			}
			n := len(snapshot)
			snapshot = nil
			runtime.GC()
			runtime.ReadMemStats(&after)
			// Ten times what it takes with the race detector on a slow machine.
			if took > 20*time.Second {
				t.Errorf("a quarter of a megabyte took %v of the processor", took)
			}
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 24<<20 {
				t.Errorf("it holds %d bytes", grown)
			}
			if n > 16<<20 {
				t.Errorf("a snapshot of %d bytes", n)
			}
			runtime.KeepAlive(vt)
		})
	}
}

func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

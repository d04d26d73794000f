package vt

import (
	"bytes"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// The kinds of stream that the emulator's speed is told by, in MB per second of
// one processor.
var kinds = []struct {
	name string
	make func() []byte
}{
	{"plain", plainStream},
	{"colour", colourStream},
	{"full", fullStream},
	{"unicode", unicodeStream},
}

func plainStream() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "%8d  the quick brown fox jumps over the lazy dog and goes on for a while\r\n", i)
	}
	return b.Bytes()
}

func colourStream() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "\x1b[2m2026-12-01T00:00:%02d\x1b[0m \x1b[1;%dmINFO\x1b[0m \x1b[36mserver.http\x1b[0m request id=\x1b[33m%d\x1b[0m done in \x1b[38;5;208m%dms\x1b[0m\r\n", i%60, 31+i%6, i, i%977)
	}
	return b.Bytes()
}

func fullStream() []byte {
	var b bytes.Buffer
	b.WriteString("\x1b[?1049h")
	for i := 0; b.Len() < 1<<20; i++ {
		b.WriteString("\x1b[H")
		for y := 1; y <= 24; y++ {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[%dm%5d root      20   0 %7d\x1b[m  %5d S   0.%d  0.%d   0:0%d.%02d \x1b[32mprocess-%d\x1b[m\x1b[K", y, 30+y%8, i, i*y, y, y%10, i%10, y%10, i%100, y)
		}
	}
	return b.Bytes()
}

func unicodeStream() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "│ %d ├── 日本語のテキスト — naïve café ✓ 한국어 → e\u0301 👍 done\r\n", i)
	}
	return b.Bytes()
}

// processorTime is what this process has used: a wall clock tells little on a
// busy machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkWrite(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			data := k.make()
			t := New(Options{Cols: 80, Rows: 24})
			t.Write(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			before, n := processorTime(b), 0
			for b.Loop() {
				n += len(data)
				for p := data; len(p) > 0; {
					n := min(len(p), 4096)
					t.Write(p[:n])
					p = p[n:]
				}
				t.TakeReplies()
				t.TakeEvents()
			}
			b.ReportMetric(float64(n)/1e6/(processorTime(b)-before).Seconds(), "MB/cpu-s")
		})
	}
}

// BenchmarkBacklog writes plain lines in the large pieces of a backlog.
func BenchmarkBacklog(b *testing.B) {
	data := plainStream()
	t := New(Options{Cols: 80, Rows: 24})
	b.SetBytes(int64(len(data)))
	before, n := processorTime(b), 0
	for b.Loop() {
		t.Write(data)
		n += len(data)
	}
	b.ReportMetric(float64(n)/1e6/(processorTime(b)-before).Seconds(), "MB/cpu-s")
}

func BenchmarkSnapshot(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			t := New(Options{Cols: 80, Rows: 24})
			for data := k.make(); t.HistoryLen() < DefaultScrollbackLines && !t.Alt(); {
				t.Write(data)
			}
			if k.name == "full" {
				t.Write(k.make())
			}
			var dst []byte
			for b.Loop() {
				dst = t.AppendSnapshot(dst[:0])
			}
			b.ReportMetric(float64(len(dst)), "bytes")
		})
	}
}

func BenchmarkResize(b *testing.B) {
	t := New(Options{Cols: 80, Rows: 24})
	for data := colourStream(); t.HistoryLen() < DefaultScrollbackLines; {
		t.Write(data)
	}
	for i := 0; b.Loop(); i++ {
		t.Resize(80+i%2*40, 24)
	}
}

func BenchmarkMemory(b *testing.B) {
	for _, k := range kinds[:2] {
		b.Run(k.name, func(b *testing.B) {
			data := k.make()
			for b.Loop() {
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				t := New(Options{Cols: 80, Rows: 24})
				for range 3 {
					t.Write(data)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB/session")
				runtime.KeepAlive(t)
			}
		})
	}
}

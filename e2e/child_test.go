package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/term"
)

// blockSize is the length of one block of the test stream in bytes.
const blockSize = 64

// block writes block i of the stream of a seed: colours, digits that no other
// block has, and characters of two and three bytes, so that a cut at a wrong
// place shows.
func block(dst *[blockSize]byte, seed, i uint64) {
	x := (i + seed) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	s := fmt.Appendf(dst[:0], "\x1b[3%dm%016x \xc3\xa9\xe6\xbc\xa2 %016x", i%8, x, i)
	for len(s) < blockSize-6 {
		s = append(s, '.')
	}
	s = append(s, "\x1b[0m\r\n"...)
	if len(s) != blockSize {
		panic(fmt.Sprintf("a block of %d bytes", len(s)))
	}
}

// streamCheck compares pieces of output with the stream of a seed.
type streamCheck struct {
	seed uint64
	at   uint64 // the block in buf
	have bool
	buf  [blockSize]byte
}

// check tells what is wrong with data at offset off of the stream, or nil.
func (s *streamCheck) check(off uint64, data []byte) error {
	for len(data) > 0 {
		i := off / blockSize
		if !s.have || s.at != i {
			block(&s.buf, s.seed, i)
			s.at, s.have = i, true
		}
		want := s.buf[off%blockSize:]
		n := min(len(want), len(data))
		if !bytes.Equal(want[:n], data[:n]) {
			return fmt.Errorf("output at offset %d is %q, want %q", off, data[:n], want[:n])
		}
		off += uint64(n)
		data = data[n:]
	}
	return nil
}

// childMain is what runs inside a session. Its programs:
//
//	flood SEED BYTES        raw mode, BYTES of the stream as fast as they go
//	drip SEED BYTES STEP    the same, STEP bytes a millisecond
//	burst SEED FILE BYTES   BYTES of the stream at full speed, a pause of 10 ms,
//	                        and so on until FILE exists; then FILE.n holds how
//	                        many bytes it wrote
//	chat SEED BYTES FILE N  the stream at 4 KiB a millisecond, while N bytes of
//	                        input are recorded to FILE; ends when both are done
//	record FILE N           raw mode, prints "ready", records N bytes
func childMain(args []string) int {
	if len(args) == 0 {
		return 2
	}
	old, err := term.MakeRaw(0)
	if err != nil {
		fmt.Println("raw mode:", err)
		return 2
	}
	defer func() { _ = term.Restore(0, old) }()
	num := func(i int) uint64 {
		n, err := strconv.ParseUint(args[i], 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	switch args[0] {
	case "flood":
		err = produce(num(1), num(2), 0)
	case "drip":
		err = produce(num(1), num(2), num(3))
	case "burst":
		err = burst(num(1), args[2], num(3))
	case "record":
		fmt.Print("ready\r\n")
		err = record(args[1], num(2))
	case "chat":
		var wg sync.WaitGroup
		var perr error
		wg.Go(func() { perr = produce(num(1), num(2), 4096) })
		err = record(args[3], num(4))
		wg.Wait()
		if err == nil {
			err = perr
		}
	default:
		return 2
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\r\n", args[0], err)
		return 1
	}
	return 0
}

// burst writes the stream in bursts of size bytes until file exists.
func burst(seed uint64, file string, size uint64) error {
	var b [blockSize]byte
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for i, buf := uint64(0), make([]byte, 0, size+blockSize); ; <-pause.C {
		if _, err := os.Stat(file); err == nil {
			return os.WriteFile(file+".n", fmt.Append(nil, i*blockSize), 0o600)
		}
		for buf = buf[:0]; uint64(len(buf)) < size; i++ {
			block(&b, seed, i)
			buf = append(buf, b[:]...)
		}
		if _, err := os.Stdout.Write(buf); err != nil {
			return err
		}
	}
}

// produce writes n bytes of the stream, all at once or step bytes a millisecond.
func produce(seed, n, step uint64) error {
	const bufSize = 64 << 10
	var b [blockSize]byte
	buf := make([]byte, 0, bufSize)
	var tick <-chan time.Time
	if step > 0 {
		t := time.NewTicker(time.Millisecond)
		defer t.Stop()
		tick = t.C
	}
	for off := uint64(0); off < n; {
		size := uint64(bufSize)
		if step > 0 {
			<-tick
			size = step
		}
		buf = buf[:0]
		for uint64(len(buf)) < size {
			block(&b, seed, off/blockSize+uint64(len(buf))/blockSize)
			buf = append(buf, b[:]...)
		}
		buf = buf[:min(uint64(len(buf)), n-off)]
		if _, err := os.Stdout.Write(buf); err != nil {
			return err
		}
		off += uint64(len(buf))
	}
	return nil
}

// record appends n bytes of standard input to file.
func record(file string, n uint64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, os.Stdin, int64(n))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// typed returns n bytes of a keystroke stream in which every position can be
// told apart: 8-byte groups of a counter, mixed with the seed.
func typed(seed uint64, n int) []byte {
	b := make([]byte, 0, n+8)
	for i := uint64(0); len(b) < n; i++ {
		b = binary.BigEndian.AppendUint64(b, (i+1)*0x9e3779b97f4a7c15^seed)
	}
	return b[:n]
}

// selfPath is this test binary, to be run as a child.
func selfPath(t testing.TB) string {
	t.Helper()
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// expectFile compares what a child recorded, and says where it differs first.
func expectFile(t testing.TB, file string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Errorf("the session received %d bytes of input, %d were typed; they differ from byte %d on: got %x, want %x",
		len(got), len(want), i, got[i:min(i+24, len(got))], want[i:min(i+24, len(want))])
}

func readFile(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fileHas reports whether a file holds text by now.
func fileHas(file, text string) bool {
	b, err := os.ReadFile(file)
	return err == nil && bytes.Contains(b, []byte(text))
}

func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

package workload

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ready is the first thing every mode prints: the terminal is raw by then, and
// what is typed reaches the program.
const Ready = "READY\r\n"

// Flood returns the arguments of a child that waits for one byte of input and
// then writes n bytes of the flood (0: for ever); Echo of one that sends back
// every byte at once, as a line editor does.
func Flood(n uint64) []string { return []string{"flood", strconv.FormatUint(n, 10)} }

// Echo: see Flood.
func Echo() []string { return []string{"echo"} }

// Main runs a child with the terminal as its standard input and output. It
// ends when the terminal is gone.
func Main(args []string) error {
	if err := makeRaw(0); err != nil {
		return err
	}
	// Plain system calls: os.File would add the runtime's poller to what is measured.
	if err := writeAll(1, []byte(Ready)); err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "flood":
		n, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return fmt.Errorf("flood: %w", err)
		}
		return flood(n)
	case len(args) == 1 && args[0] == "echo":
		return echo()
	}
	return fmt.Errorf("unknown workload %q", args)
}

func flood(n uint64) error {
	var in [256]byte
	if _, err := read(0, in[:]); err != nil {
		return err
	}
	b := newBlock()
	for i := uint64(0); n == 0 || i*blockLen < n; i++ {
		b.number(i)
		p := b[:]
		if n > 0 {
			p = p[:min(n-i*blockLen, blockLen)]
		}
		if err := writeAll(1, p); err != nil {
			return err
		}
	}
	// Staying keeps the session as it is: its end is not what is measured.
	for {
		if _, err := read(0, in[:]); err != nil {
			return err
		}
	}
}

func echo() error {
	var in [4096]byte
	for {
		n, err := read(0, in[:])
		if err != nil {
			return err
		}
		if err := writeAll(1, in[:n]); err != nil {
			return err
		}
	}
}

func read(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// writeAll does not tell Go's scheduler about its system calls: nothing else
// wants to run here, and the runtime's monitor would otherwise wake up every few
// microseconds of a write that waits, which other programs do not do.
func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return os.NewSyscallError("write", errno)
		}
		p = p[n:]
	}
	return nil
}

// makeRaw turns off echo, line editing, signals and output processing.
func makeRaw(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return os.NewSyscallError("get terminal attributes", err)
	}
	t.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INPCK | unix.ISTRIP | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ICANON | unix.IEXTEN | unix.ISIG
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return os.NewSyscallError("set terminal attributes", unix.IoctlSetTermios(fd, unix.TCSETS, t))
}

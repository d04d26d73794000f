package keeper

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipe opens a pipe; the write end is a raw descriptor, to be given away.
func pipe() (r *os.File, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, -1, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(p[0]), "pipe"), p[1], nil
}

// untilEOF reads r to its end, or until ctx ends.
func untilEOF(ctx context.Context, r *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := io.Copy(io.Discard, r)
	return err
}

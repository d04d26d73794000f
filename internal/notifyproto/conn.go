package notifyproto

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxAnswer bounds what Ask reads.
const maxAnswer = 16 << 10

// maxPath is the longest name that a socket address holds, without its final
// zero.
const maxPath = 107

// Conn sends to a keeper or to a service manager. It is safe for concurrent
// use; datagrams stay whole and the order of one goroutine's sends is kept.
type Conn struct {
	c   *net.UnixConn
	raw syscall.RawConn
}

// Dial connects to the socket that NOTIFY_SOCKET names: a path, or "@" and a
// name in the abstract space. The socket stays the same one when the keeper
// executes itself anew, so a Conn lives as long as its worker.
func Dial(path string) (*Conn, error) {
	short, release, err := shorten(path)
	if err != nil {
		return nil, fmt.Errorf("connect to notify socket: %w", err)
	}
	defer release()
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: short, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("connect to notify socket: %w", err)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to notify socket: %w", err)
	}
	return &Conn{c: c, raw: raw}, nil
}

// shorten gives a name for path that fits into a socket address: itself, or one
// that leads through an open descriptor of its directory. release ends the
// name's life.
func shorten(path string) (short string, release func(), err error) {
	if len(path) <= maxPath || strings.HasPrefix(path, "@") {
		return path, func() {}, nil
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path), func() { _ = unix.Close(dir) }, nil
}

// Send sends one datagram with copies of fds; the caller keeps its own. It
// waits while the receiver's queue is full, and fails when the receiver is gone
// or after Close.
func (c *Conn) Send(msg []byte, fds ...int) error {
	if len(msg) == 0 || len(msg) > MaxMessage {
		return fmt.Errorf("send notification: a text of %d bytes", len(msg))
	}
	if len(fds) > MaxFDs {
		return fmt.Errorf("send notification: %d descriptors at once", len(fds))
	}
	if err := c.send(msg, fds); err != nil {
		return fmt.Errorf("send notification: %w", err)
	}
	return nil
}

// send bypasses net's WriteMsgUnix, which refuses connected datagram sockets.
func (c *Conn) send(msg []byte, fds []int) error {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	var err error
	e := c.raw.Write(func(fd uintptr) bool {
		for {
			err = unix.Sendmsg(int(fd), msg, oob, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	if e != nil {
		return e
	}
	return err
}

// Barrier returns when the receiver has done everything that was sent before,
// by this goroutine or by others whose Send had returned. Descriptors sent
// before it are then stored, above the keeper too where there is a service
// manager.
func (c *Conn) Barrier(ctx context.Context) error {
	_, err := c.Ask(ctx, Encode("BARRIER=1"))
	return err
}

// Ask sends msg with the write end of a pipe and returns what the receiver
// wrote there before it closed it. Nothing is the answer of agreement, and also
// of a receiver that went away.
func (c *Conn) Ask(ctx context.Context, msg []byte) (string, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return "", fmt.Errorf("open pipe: %w", err)
	}
	r := os.NewFile(uintptr(p[0]), "answer")
	defer r.Close()
	err := c.Send(msg, p[1])
	_ = unix.Close(p[1]) // the receiver's copy is the only one now
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	answer, err := io.ReadAll(io.LimitReader(r, maxAnswer))
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("wait for answer: %w", err)
	}
	return string(answer), nil
}

// Close ends the connection; a waiting Send fails.
func (c *Conn) Close() error { return c.c.Close() }

package notifyproto

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Server receives datagrams together with the kernel's word on who sent them.
type Server struct {
	c    *net.UnixConn
	raw  syscall.RawConn
	path string
	buf  [MaxMessage + 1]byte // one more, so that too long is seen
	oob  [1536]byte           // room for MaxFDs descriptors and the credentials
}

// Listen opens the socket at path ("@name" for an abstract one), for the own
// user only. What a dead predecessor left at path is removed: whoever calls
// this holds the lock of the state directory.
func Listen(path string) (*Server, error) {
	if !strings.HasPrefix(path, "@") {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("remove old notify socket: %w", err)
		}
	}
	short, release, err := shorten(path)
	if err != nil {
		return nil, fmt.Errorf("open notify socket: %w", err)
	}
	defer release()
	lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) error {
		var err error
		if e := rc.Control(func(fd uintptr) { err = passCredentials(int(fd)) }); e != nil {
			return e
		}
		return err
	}}
	pc, err := lc.ListenPacket(context.Background(), "unixgram", short)
	if err != nil {
		return nil, fmt.Errorf("open notify socket: %w", err)
	}
	if !strings.HasPrefix(path, "@") {
		if err := os.Chmod(path, 0o600); err != nil {
			_ = pc.Close()
			return nil, fmt.Errorf("open notify socket: %w", err)
		}
	}
	return newServer(pc, path)
}

// FromFD goes on with a server's socket that came through an execve. It takes
// fd, also when it fails. The datagrams that wait in it are kept.
func FromFD(fd int, path string) (*Server, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "notify")
	if f == nil {
		return nil, errors.New("take notify socket: no descriptor")
	}
	defer f.Close()
	if err := passCredentials(fd); err != nil {
		return nil, fmt.Errorf("take notify socket: %w", err)
	}
	pc, err := net.FilePacketConn(f)
	if err != nil {
		return nil, fmt.Errorf("take notify socket: %w", err)
	}
	return newServer(pc, path)
}

func newServer(pc net.PacketConn, path string) (*Server, error) {
	c, ok := pc.(*net.UnixConn)
	if !ok {
		_ = pc.Close()
		return nil, errors.New("take notify socket: not a Unix datagram socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		_ = pc.Close()
		return nil, fmt.Errorf("open notify socket: %w", err)
	}
	return &Server{c: c, raw: raw, path: path}, nil
}

func passCredentials(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
}

// Path is the value for NOTIFY_SOCKET.
func (s *Server) Path() string { return s.path }

// Control calls f with the socket's descriptor, which stays the server's.
func (s *Server) Control(f func(fd int)) error {
	return s.raw.Control(func(fd uintptr) { f(int(fd)) })
}

// Watch calls arrived at once and after each arrival of datagrams, until Close,
// and then returns. It takes nothing: whoever is told takes by TryReceive until
// there is nothing more.
func (s *Server) Watch(arrived func()) {
	// Never satisfied, so that the poller wakes it at every arrival.
	_ = s.raw.Read(func(uintptr) bool { arrived(); return false })
}

// TryReceive takes the next datagram, if there is one; ok tells. The
// credentials are the kernel's. An error that wraps ErrMalformed concerns one
// datagram, any other the socket.
func (s *Server) TryReceive() (m Message, cred unix.Ucred, ok bool, err error) {
	e := s.raw.Control(func(fd uintptr) { m, cred, ok, err = s.receive(int(fd)) })
	if e != nil {
		return Message{}, unix.Ucred{}, false, fmt.Errorf("receive notification: %w", e)
	}
	return m, cred, ok, err
}

// Receive is TryReceive that waits. It can't be used beside Watch.
func (s *Server) Receive() (m Message, cred unix.Ucred, err error) {
	e := s.raw.Read(func(fd uintptr) bool {
		var ok bool
		m, cred, ok, err = s.receive(int(fd))
		return ok || err != nil
	})
	if e != nil {
		return Message{}, unix.Ucred{}, fmt.Errorf("receive notification: %w", e)
	}
	return m, cred, err
}

func (s *Server) receive(fd int) (m Message, cred unix.Ucred, ok bool, err error) {
	var n, oobn, flags int
	for {
		n, oobn, flags, _, err = unix.Recvmsg(fd, s.buf[:], s.oob[:], unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EAGAIN {
		return Message{}, unix.Ucred{}, false, nil
	}
	if err != nil {
		return Message{}, unix.Ucred{}, false, fmt.Errorf("receive notification: %w", err)
	}
	m.FDs, cred, err = control(s.oob[:oobn])
	switch {
	case err != nil:
	case flags&unix.MSG_CTRUNC != 0: // some descriptors are lost: too many, or this process's table is full
		err = fmt.Errorf("%w: descriptors did not arrive", ErrMalformed)
	case flags&unix.MSG_TRUNC != 0:
		err = fmt.Errorf("%w: too long", ErrMalformed)
	default:
		m.Vars, err = Decode(s.buf[:n])
	}
	if err != nil {
		m.Close()
		return Message{}, cred, true, err
	}
	return m, cred, true, nil
}

// control reads the descriptors and the sender out of a control message.
func control(oob []byte) (fds []int, cred unix.Ucred, err error) {
	if len(oob) == 0 {
		return nil, cred, nil
	}
	parts, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, cred, fmt.Errorf("%w: control message: %w", ErrMalformed, err)
	}
	for _, p := range parts {
		if p.Header.Level != unix.SOL_SOCKET {
			continue
		}
		switch p.Header.Type {
		case unix.SCM_RIGHTS:
			got, e := unix.ParseUnixRights(&p)
			fds = append(fds, got...)
			if e != nil {
				err = fmt.Errorf("%w: descriptors: %w", ErrMalformed, e)
			}
		case unix.SCM_CREDENTIALS:
			c, e := unix.ParseUnixCredentials(&p)
			if e != nil {
				err = fmt.Errorf("%w: credentials: %w", ErrMalformed, e)
				continue
			}
			cred = *c
		}
	}
	return fds, cred, err
}

// Close ends the server and removes its name. A Watch or Receive in flight
// returns.
func (s *Server) Close() error {
	err := s.c.Close()
	if !strings.HasPrefix(s.path, "@") {
		if e := os.Remove(s.path); e != nil && !errors.Is(e, os.ErrNotExist) && err == nil {
			err = e
		}
	}
	return err
}

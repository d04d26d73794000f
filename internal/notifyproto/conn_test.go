package notifyproto

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listen(t *testing.T, path string) *Server {
	t.Helper()
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func dial(t *testing.T, s *Server) *Conn {
	t.Helper()
	c, err := Dial(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestDescriptorsAndCredentials(t *testing.T) {
	// A directory whose path is too long for an address works too.
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "n"), filepath.Join(long, "notify"), "@ptyd-test-" + t.Name()} {
		s := listen(t, path)
		c := dial(t, s)
		if _, _, ok, err := s.TryReceive(); ok || err != nil {
			t.Fatalf("empty: %v, %v", ok, err)
		}
		r, w := pipe(t)
		if err := c.Send(Encode("FDSTORE=1", "FDNAME=0"), int(r.Fd()), int(w.Fd())); err != nil {
			t.Fatal(err)
		}
		m, cred, err := s.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Vars["FDNAME"] != "0" || len(m.FDs) != 2 {
			t.Fatalf("got %+v", m)
		}
		if int(cred.Pid) != os.Getpid() || int(cred.Uid) != os.Getuid() {
			t.Errorf("sender %+v", cred)
		}
		for _, fd := range m.FDs {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("descriptor %d: flags %d, %v", fd, flags, err)
			}
		}
		m.Close()
	}
}

// A bad datagram costs the receiver nothing, least of all descriptors.
func TestGarbage(t *testing.T) {
	s := listen(t, filepath.Join(t.TempDir(), "n"))
	c := dial(t, s)
	r, _ := pipe(t)
	fd := int(r.Fd())
	raw := func(msg []byte) error { return c.send(msg, []int{fd}) }
	next, err := unix.Dup(fd) // the number that the next descriptor will have
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(next)
	for _, msg := range []string{"nonsense", "A=1\nA=1", "\x00", strings.Repeat("A=1", 3000)} {
		if err := raw([]byte(msg)); err != nil {
			t.Fatal(err)
		}
		m, cred, err := s.Receive()
		if !errors.Is(err, ErrMalformed) || m.Vars != nil || m.FDs != nil {
			t.Errorf("%.20q: %+v, %v", msg, m, err)
		}
		if int(cred.Pid) != os.Getpid() {
			t.Errorf("%.20q: sender %+v", msg, cred)
		}
		if open(next) {
			t.Errorf("%.20q: a descriptor stayed open", msg)
		}
	}
	if err := c.Send(Encode("READY=1")); err != nil {
		t.Fatal(err)
	}
	if m, _, err := s.Receive(); err != nil || m.Vars["READY"] != "1" {
		t.Errorf("after garbage: %+v, %v", m, err)
	}
	if c.Send(nil) == nil || c.Send([]byte(strings.Repeat("x", MaxMessage+1))) == nil || c.Send([]byte("A=1"), make([]int, MaxFDs+1)...) == nil {
		t.Error("a datagram out of bounds was sent")
	}
}

// The kernel's bound for descriptors fits into one receive.
func TestMostDescriptors(t *testing.T) {
	s := listen(t, filepath.Join(t.TempDir(), "n"))
	c := dial(t, s)
	r, _ := pipe(t)
	fds := make([]int, MaxFDs)
	for i := range fds {
		fds[i] = int(r.Fd())
	}
	if err := c.Send(Encode("FDSTORE=1", "FDNAME=0"), fds...); err != nil {
		t.Fatal(err)
	}
	m, _, err := s.Receive()
	if err != nil || len(m.FDs) != MaxFDs {
		t.Fatalf("%d descriptors, %v", len(m.FDs), err)
	}
	m.Close()
}

func TestBarrierAndAsk(t *testing.T) {
	s := listen(t, filepath.Join(t.TempDir(), "n"))
	c := dial(t, s)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			m, _, err := s.Receive()
			if err != nil {
				return
			}
			if why, ok := m.Vars["REFUSE"]; ok {
				_, _ = unix.Write(m.FDs[0], []byte(why))
			}
			m.Close()
		}
	}()
	if err := c.Barrier(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := c.Ask(t.Context(), Encode("REFUSE=not today")); err != nil || got != "not today" {
		t.Errorf("answer %q, %v", got, err)
	}
	_ = s.Close()
	<-ended
	if err := c.Barrier(t.Context()); err == nil {
		t.Error("a barrier without a receiver succeeded")
	}
}

func TestBarrierGivesUp(t *testing.T) {
	s := listen(t, filepath.Join(t.TempDir(), "n"))
	c := dial(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Barrier(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Watch tells of every arrival, and what came through an execve is still there.
func TestWatchAndHandOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	s := listen(t, path)
	c := dial(t, s)
	if err := c.Send(Encode("STATUS=before")); err != nil {
		t.Fatal(err)
	}
	fd := -1
	if err := s.Control(func(n int) { fd, _ = unix.Dup(n) }); err != nil {
		t.Fatal(err)
	}
	s2, err := FromFD(fd, path)
	if err != nil {
		t.Fatal(err)
	}
	if open(fd) {
		t.Error("the descriptor that was taken is still open")
	}
	ready := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s2.Watch(func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		})
	}()
	take := func() string {
		for {
			m, _, ok, err := s2.TryReceive()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				return m.Vars["STATUS"]
			}
			<-ready
		}
	}
	if got := take(); got != "before" {
		t.Errorf("got %q", got)
	}
	for range 200 {
		if err := c.Send(Encode("STATUS=after")); err != nil {
			t.Fatal(err)
		}
		if got := take(); got != "after" {
			t.Errorf("got %q", got)
		}
	}
	_ = s2.Close()
	<-ended
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the name is left: %v", err)
	}
}

// A full queue makes the sender wait and loses nothing.
func TestFullQueue(t *testing.T) {
	const n = 3000 // more than net.unix.max_dgram_qlen anywhere
	s := listen(t, filepath.Join(t.TempDir(), "n"))
	c := dial(t, s)
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			if err := c.Send(Encode("STATUS=" + strconv.Itoa(i))); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i := range n {
		m, _, err := s.Receive()
		if err != nil || m.Vars["STATUS"] != strconv.Itoa(i) {
			t.Fatalf("message %d: %+v, %v", i, m, err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	// And Close ends a sender that waits.
	go func() {
		for {
			if err := c.Send(Encode("STATUS=x")); err != nil {
				sent <- err
				return
			}
		}
	}()
	if _, _, err := s.Receive(); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := <-sent; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

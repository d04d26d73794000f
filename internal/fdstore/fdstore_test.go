package fdstore

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// keeper is what a worker talks to: it takes notices and drops what they carry.
type keeper struct {
	path  string
	event int
	exits *notifyproto.Exits

	mu   sync.Mutex // guards says
	says []string   // "store NAME n" and "drop NAME"
}

func startKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{path: filepath.Join(t.TempDir(), "notify")}
	srv, err := notifyproto.Listen(k.path)
	if err != nil {
		t.Fatal(err)
	}
	if k.exits, err = notifyproto.NewExits(); err != nil {
		t.Fatal(err)
	}
	if k.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			m, _, err := srv.Receive()
			if err != nil {
				return
			}
			k.mu.Lock()
			switch {
			case m.Vars["FDSTORE"] == "1":
				k.says = append(k.says, "store "+m.Vars["FDNAME"])
			case m.Vars["FDSTOREREMOVE"] == "1":
				k.says = append(k.says, "drop "+m.Vars["FDNAME"])
			}
			k.mu.Unlock()
			m.Close() // a barrier's descriptor among them
		}
	})
	t.Cleanup(func() {
		_ = srv.Close()
		wg.Wait()
		_ = k.exits.Close()
		_ = unix.Close(k.event)
	})
	return k
}

func (k *keeper) said(what string) bool {
	// A message is sent, not answered: it may still be on its way.
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		k.mu.Lock()
		ok := slices.Contains(k.says, what)
		k.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}

// open opens a store with what is held, beside the keeper's own.
func (k *keeper) open(t *testing.T, got map[string][]int) *Store {
	t.Helper()
	dup := func(fd int) int {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	got[nameExits], got[nameExitEvent] = []int{dup(k.exits.FD())}, []int{dup(k.event)}
	s, err := open(t.Context(), Env{Socket: k.path, Keeper: os.Getpid()}, got)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		_ = unix.Close(s.g.own)
	})
	return s
}

func file(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func memfd(t *testing.T, size int64, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("foreign", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func ends(t *testing.T) (r, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	return p[0], p[1]
}

// Whatever lies in the store, a worker starts: what is none of ours is dropped,
// said, and made anew.
func TestForeignDescriptors(t *testing.T) {
	r, w := ends(t)
	r2, w2 := ends(t)
	for name, c := range map[string]struct {
		got  map[string][]int
		drop string
	}{
		"nothing":             {map[string][]int{}, ""},
		"a file as global":    {map[string][]int{nameGlobal: {file(t)}}, nameGlobal},
		"a short global":      {map[string][]int{nameGlobal: {memfd(t, 10, unix.F_SEAL_SHRINK)}}, nameGlobal},
		"an unsealed global":  {map[string][]int{nameGlobal: {memfd(t, globalSize, 0)}}, nameGlobal},
		"a global of zeros":   {map[string][]int{nameGlobal: {memfd(t, globalSize, unix.F_SEAL_SHRINK)}}, nameGlobal},
		"a read-only global":  {map[string][]int{nameGlobal: {memfd(t, globalSize, unix.F_SEAL_SHRINK|unix.F_SEAL_WRITE)}}, nameGlobal},
		"a file as pipe":      {map[string][]int{nameOutput: {file(t), file(t)}}, nameOutput},
		"one end":             {map[string][]int{nameInput: {r}}, nameInput},
		"ends of two pipes":   {map[string][]int{nameOutput: {r2, w}}, nameOutput},
		"three ends":          {map[string][]int{nameInput: {w2, file(t), file(t)}}, nameInput},
		"a name nobody knows": {map[string][]int{"unknown": {file(t)}}, "unknown"},
		"a strange name":      {map[string][]int{"Zyx": {file(t), file(t)}}, "Zyx"},
	} {
		t.Run(name, func(t *testing.T) {
			k := startKeeper(t)
			s := k.open(t, c.got)
			if c.drop != "" && (!k.said("drop "+c.drop) || len(s.Discarded()) != 1 || !strings.HasPrefix(s.Discarded()[0], c.drop)) {
				t.Errorf("the keeper heard %q, discarded: %q", k.says, s.Discarded())
			}
			if c.drop == "" && len(s.Discarded()) != 0 {
				t.Errorf("discarded: %q", s.Discarded())
			}
			out, in := s.Pipes()
			for _, p := range []Pipe{out, in} {
				if q, ok := pipeOf([]int{p.R, p.W}); !ok || q != p {
					t.Errorf("pipe %+v", p)
				}
			}
			if n, err := s.NewName(); err != nil || n != "0" {
				t.Errorf("the first name is %q, %v", n, err)
			}
		})
	}
}

// A session's descriptors are told apart, and what is none of them is closed.
func TestForeignSessions(t *testing.T) {
	k := startKeeper(t)
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	mem, second := memfd(t, 4096, 0), memfd(t, 4096, 0)
	s := k.open(t, map[string][]int{
		"0":      {file(t)},
		"7":      {pidfd, file(t), mem, master, second},
		"9zzzz":  {},
		"3zzzzz": {file(t)},
	})
	want := []Held{{"0", -1, -1, -1}, {"3zzzzz", -1, -1, -1}, {"7", master, mem, pidfd}, {"9zzzz", -1, -1, -1}}
	if got := s.Held(); !slices.Equal(got, want) {
		t.Errorf("held %+v, want %+v", got, want)
	}
	if _, err := unix.FcntlInt(uintptr(second), unix.F_GETFD, 0); err == nil {
		t.Error("a second memfd stays open")
	}
	// The counter is fresh: it must not hand out what is in use.
	seen := map[string]bool{"0": true, "7": true, "9zzzz": true, "3zzzzz": true}
	for range 200 {
		n, err := s.NewName()
		if err != nil || seen[n] {
			t.Fatalf("name %q a second time, %v", n, err)
		}
		seen[n] = true
	}
	for _, fd := range []int{master, mem, pidfd} {
		_ = unix.Close(fd)
	}
}

// A stored listener is used again, stays non-blocking, and ends when closed; a
// descriptor that is none is replaced.
func TestListener(t *testing.T) {
	k := startKeeper(t)
	s := k.open(t, map[string][]int{"lt0": {file(t)}})
	l, kept, err := s.Listener("lt0", func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	if err != nil || kept || !k.said("drop lt0") {
		t.Fatalf("kept %v, %v", kept, err)
	}
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var fl int
	if err := raw.Control(func(fd uintptr) { fl, _ = unix.FcntlInt(fd, unix.F_GETFL, 0) }); err != nil || fl&unix.O_NONBLOCK == 0 {
		t.Errorf("the stored listener blocks: flags %o, %v", fl, err)
	}
	done := make(chan error, 1)
	go func() { _, err := l.Accept(); done <- err }()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("accept went on after close")
	}
}

// Names are numbers in base 62 with a digit in front; each number is found again.
func TestNames(t *testing.T) {
	s := startKeeper(t).open(t, map[string][]int{})
	for i := range uint64(2000) {
		n, err := s.NewName()
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := number(n); !ok || got != i {
			t.Fatalf("name %d is %q, which is %d, %v", i, n, got, ok)
		}
	}
	for _, bad := range []string{"", "g", "00000z", "0-", "A1"} {
		if n, ok := number(bad); ok && bad != "" {
			t.Errorf("number(%q) = %d", bad, n)
		}
	}
}

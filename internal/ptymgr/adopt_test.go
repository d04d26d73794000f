package ptymgr_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// leftVault holds what an earlier process left, or what somebody put there.
type leftVault struct {
	*ptymgr.Direct
	held    []ptymgr.Held
	dropped []string
}

func (v *leftVault) Held() []ptymgr.Held { return v.held }

func (v *leftVault) Drop(name string) error {
	v.dropped = append(v.dropped, name)
	return nil
}

func rawMemfd(t *testing.T, size int64, seals int, data []byte) int {
	t.Helper()
	fd, err := unix.MemfdCreate("foreign", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	if err == nil && len(data) > 0 {
		_, err = unix.Pwrite(fd, data, 0)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// ringMemfd is a memfd of a ring, its block filled by fill.
func ringMemfd(t *testing.T, fill func(block []byte)) int {
	t.Helper()
	r, err := buffer.New(77, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	fill(r.Block())
	fd, err := unix.FcntlInt(uintptr(r.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return fd
}

// Corrupt and foreign descriptors are dropped: the start goes on, no stranger
// is killed, nothing stays open, and sessions can be made.
func TestForeignDescriptorsAreDropped(t *testing.T) {
	stranger := exec.Command("sleep", "1000")
	stranger.Env = []string{}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	pidfd, err := unix.PidfdOpen(stranger.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	dup := func(fd int) int {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	defer func() { _ = unix.Close(pidfd) }()
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(null) }()
	boot := func(b []byte) { // as a session of this boot that the store does not know
		id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			t.Fatal(err)
		}
		at := 48
		for i := 0; i+1 < len(id) && at < 64; i++ {
			if id[i] == '-' {
				continue
			}
			var x byte
			for _, c := range id[i : i+2] {
				x <<= 4
				if c <= '9' {
					x |= c - '0'
				} else {
					x |= c - 'a' + 10
				}
			}
			b[at] = x
			at++
			i++
		}
		copy(b, "s_00000000000000000000000000")
	}
	noise := make([]byte, 1<<16)
	for i := range noise {
		noise[i] = byte(i*7 + i>>8)
	}
	all := map[string]ptymgr.Held{
		"nothing":   {Master: -1, Memfd: -1, Pidfd: -1},
		"process":   {Master: -1, Memfd: -1, Pidfd: dup(pidfd)},
		"terminal":  {Master: dup(null), Memfd: -1, Pidfd: -1},
		"no memfd":  {Master: -1, Memfd: dup(null), Pidfd: -1},
		"empty":     {Master: -1, Memfd: rawMemfd(t, 0, unix.F_SEAL_SHRINK, nil), Pidfd: dup(pidfd)},
		"unsealed":  {Master: -1, Memfd: rawMemfd(t, 1<<20, 0, noise), Pidfd: -1},
		"noise":     {Master: dup(null), Memfd: rawMemfd(t, 1<<20, unix.F_SEAL_SHRINK, noise), Pidfd: dup(pidfd)},
		"zeros":     {Master: -1, Memfd: rawMemfd(t, 1<<20, unix.F_SEAL_SHRINK, nil), Pidfd: -1},
		"huge hole": {Master: -1, Memfd: rawMemfd(t, 1<<40, unix.F_SEAL_SHRINK, noise), Pidfd: -1},
		"no boot":   {Master: -1, Memfd: ringMemfd(t, func([]byte) {}), Pidfd: dup(pidfd)},
		"no row":    {Master: dup(null), Memfd: ringMemfd(t, boot), Pidfd: dup(pidfd)},
	}
	direct, err := ptymgr.NewDirect()
	if err != nil {
		t.Fatal(err)
	}
	v := &leftVault{Direct: direct}
	var names []string
	for name, h := range all {
		h.Name = name
		v.held = append(v.held, h)
		names = append(names, name)
	}
	log := zaptest.NewLogger(t)
	st := openStore(t, log)
	m, err := ptymgr.New(ptymgr.Config{Grace: time.Second, OutputLimit: 1 << 20}, st, v, events.NewHub(), log)
	if err != nil {
		t.Fatal(err)
	}
	dropped := slices.Clone(v.dropped)
	slices.Sort(names)
	slices.Sort(dropped)
	if !slices.Equal(dropped, names) || m.Adopted().Dropped != len(names) {
		t.Errorf("dropped %q of %q, counted %d", dropped, names, m.Adopted().Dropped)
	}
	for name, h := range all {
		for _, fd := range []int{h.Master, h.Memfd, h.Pidfd} {
			if fd >= 0 && refers(fd, "ptyd", "foreign", "pidfd", "/dev/null") {
				t.Errorf("%s: descriptor %d stays open", name, fd)
			}
		}
	}
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil {
		t.Errorf("the stranger: %v", err)
	}
	i := create(t, m, "true")
	if r, err := m.Wait(t.Context(), i.ID, ptymgr.Conditions{Exit: true}); err != nil || r.Info.ExitCode == nil || *r.Info.ExitCode != 0 {
		t.Errorf("a new session: %+v, %v", r.Info, err)
	}
	if err := m.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	direct.Close()
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

// refers reports whether fd is open on something of one of the names: its number
// may have been given to something else meanwhile.
func refers(fd int, names ...string) bool {
	to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return false
	}
	for _, n := range names {
		if n == "/dev/null" && to == n || n != "/dev/null" && to == "/memfd:"+n+" (deleted)" || n == "pidfd" && to == "anon_inode:[pidfd]" {
			return true
		}
	}
	return false
}

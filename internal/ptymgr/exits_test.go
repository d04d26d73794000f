package ptymgr_test

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// countingVault tells of ends by an event, and counts how often it may forget.
type countingVault struct {
	*ptymgr.Direct
	event  int
	forgot atomic.Int32
}

func (v *countingVault) ExitEvent() int        { return v.event }
func (v *countingVault) Exited(func(int) bool) { v.forgot.Add(1) }

// The bug: the vault's record of ends is forgotten when a session ends, so
// processes of which nobody asks, orphans and stages, filled it while none did;
// then the end of a session found no room and was called lost.
func TestEndsOfOrphansAreForgotten(t *testing.T) {
	direct, err := ptymgr.NewDirect()
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	v := &countingVault{Direct: direct}
	if v.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(v.event)
	st := openStore(t, zap.NewNop())
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	m, err := ptymgr.New(ptymgr.Config{}, st, v, events.NewHub(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Leave(); err != nil {
			t.Error(err)
		}
	}()
	until := func(n int32) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for v.forgot.Load() < n {
			if time.Now().After(deadline) {
				t.Fatalf("forgot %d times, want %d", v.forgot.Load(), n)
			}
			<-time.After(time.Millisecond)
		}
	}
	until(1) // at the start
	for i := range int32(3) {
		if _, err := unix.Write(v.event, binary.NativeEndian.AppendUint64(nil, 600)); err != nil {
			t.Fatal(err)
		}
		until(2 + i)
	}
}

// Input that waits may ask for a look at a session just as that ends: its end
// is one all the same.
func TestLookAfterTheEnd(t *testing.T) {
	t.Parallel()
	m := manager(t)
	s := sh(t, m, "exit 3")
	exited(t, m, s.ID)
	m.Await(s.ID)
	if err := m.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := m.Stats().Running; n != 0 {
		t.Errorf("%d run", n)
	}
}

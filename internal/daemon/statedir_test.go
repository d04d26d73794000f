package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tempDir is short: a socket's path is bounded.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ptyd-d-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestStateDir(t *testing.T) {
	dir := filepath.Join(tempDir(t), "a", "b")
	if err := prepareStateDir(dir); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("made as %v, %v", st.Mode(), err)
	}
	for _, tt := range []struct {
		mode os.FileMode
		says string
	}{
		{0o700, ""}, {0o755, ""}, {0o770, "writable by others"}, {0o702, "writable by others"}, {0o777 | os.ModeSticky, "writable by others"},
	} {
		if err := os.Chmod(dir, tt.mode); err != nil {
			t.Fatal(err)
		}
		err := prepareStateDir(dir)
		if tt.says == "" {
			st, _ := os.Stat(dir)
			if err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("mode %o: %v, left as %v", tt.mode, err, st.Mode())
			}
		} else if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("mode %o: %v, want %q", tt.mode, err, tt.says)
		}
	}
	file := filepath.Join(tempDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prepareStateDir(file); err == nil {
		t.Error("a file as the state directory")
	}
	// Somebody else's directory. Every machine has one that this user does not
	// own, or this user is root and can make one.
	other := "/"
	if os.Geteuid() == 0 {
		other = tempDir(t)
		if err := os.Chown(other, 54321, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := prepareStateDir(other); err == nil || !strings.Contains(err.Error(), "belongs to uid") {
		t.Errorf("another user's directory: %v", err)
	}
}

func TestLockRefusesASecond(t *testing.T) {
	dir := tempDir(t)
	path := filepath.Join(dir, "lock")
	first, err := takeLock(t.Context(), dir, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	const wait = 200 * time.Millisecond
	_, err = takeLock(t.Context(), dir, path, wait)
	want := fmt.Sprintf("another ptyd (pid %d) owns %s", os.Getpid(), dir)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if waited := time.Since(began); waited < wait {
		t.Errorf("waited %v only", waited)
	}
	// One that ends within the wait is succeeded.
	got := make(chan error, 1)
	go func() {
		second, err := takeLock(context.Background(), dir, path, time.Minute)
		if err == nil {
			err = second.release()
		}
		got <- err
	}()
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	third, err := takeLock(ctx, dir, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := takeLock(ctx, dir, path, time.Minute); err == nil {
		t.Error("a start that was given up took the lock")
	}
	if err := third.release(); err != nil {
		t.Error(err)
	}
}

func TestListenUnix(t *testing.T) {
	dir := tempDir(t)
	path := filepath.Join(dir, "ptyd.sock")
	// What a killed daemon leaves behind.
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	mask := syscall.Umask(0)
	defer syscall.Umask(mask)
	l, err := listenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", st.Mode(), err)
	}
	peer := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			peer <- unknownUID
			return
		}
		peer <- peerUID(c)
		_ = c.Close()
	}()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if uid := <-peer; uid != os.Getuid() {
		t.Errorf("the peer is uid %d, want %d", uid, os.Getuid())
	}
	_ = c.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays after its listener: %v", err)
	}
	if a, b := net.Pipe(); peerUID(a) != unknownUID {
		t.Error("a pipe has a peer")
	} else {
		_, _ = a.Close(), b.Close()
	}

	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(t.Context(), path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file in the way: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Error("the file in the way is gone")
	}
	long := filepath.Join(dir, strings.Repeat("x", 120), "ptyd.sock")
	if _, err := listenUnix(t.Context(), long); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a long path: %v", err)
	}
}

package workload

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/creack/pty"
)

// The test binary is its own child, as the bench binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "as-child" {
		if err := Main(os.Args[2:]); err != nil {
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

func start(t *testing.T, args ...string) (*os.File, *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"as-child"}, args...)...)
	f, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return f, cmd
}

func expect(t *testing.T, r io.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatalf("reading %d bytes: %v", len(want), err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("got %.60q…, want %.60q…", got, want)
	}
}

func TestFloodThroughATerminal(t *testing.T) {
	const n = 200_000
	f, _ := start(t, Flood(n)...)
	expect(t, f, []byte(Ready))
	if _, err := f.Write([]byte("g")); err != nil {
		t.Fatal(err)
	}
	expect(t, f, stream(n)) // raw: not a byte more for line ends or echo
}

func TestEchoIsRaw(t *testing.T) {
	f, _ := start(t, Echo()...)
	expect(t, f, []byte(Ready))
	in := []byte("a\x03\x04\r\n\x1b[A\xff") // nothing of this may act as a control key
	if _, err := f.Write(in); err != nil {
		t.Fatal(err)
	}
	expect(t, f, in)
}

func TestUnknownMode(t *testing.T) {
	f, cmd := start(t, "dance")
	expect(t, f, []byte(Ready))
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("exit: %v", err)
	}
}

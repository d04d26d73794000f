package stage

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// staged starts a stage that becomes a shell with status 7; in is the directory
// of its cgroup, "" for none. It returns the gate, what the stage says, and the
// process.
func staged(t *testing.T, exe, in, program string) (gate, says *os.File, cmd *exec.Cmd) {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	gateR, gateW := pipe()
	saysR, saysW := pipe()
	inC, args, self, err := Command(program, []string{"sh", "-c", "exit 7"}, in != "")
	if err != nil {
		t.Fatal(err)
	}
	cmd = &exec.Cmd{Path: exe, Args: args, ExtraFiles: []*os.File{gateR, saysW, nil, nil}}
	if in != "" {
		d, err := os.Open(in)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		cmd.ExtraFiles[Group-3] = d
	}
	if exe == inC && self != None {
		fd, err := unix.Dup(int(self))
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "stage")
		defer f.Close()
		cmd.ExtraFiles[Self-3] = f
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gateR.Close()
	saysW.Close()
	return gateW, saysR, cmd
}

func status(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// Both stages, the one in C (where it was built) and this very program, wait at
// the gate, and move themselves where they cannot be born in their cgroup.
func TestStage(t *testing.T) {
	here, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{"Go": here}
	if exe, _, self, err := Command("", nil, false); err != nil {
		t.Fatal(err)
	} else if self != None {
		programs["C"] = exe
	} else {
		t.Log("left out: the stage in C, which was not built")
	}
	// No cgroups: nobody can be born there.
	group, none := t.TempDir(), t.TempDir()
	for name, exe := range programs {
		t.Run(name, func(t *testing.T) {
			gate, says, cmd := staged(t, exe, "", "/bin/sh")
			gate.Write([]byte{1})
			if b, err := io.ReadAll(says); len(b) > 0 || err != nil {
				t.Errorf("it says %v, %v", b, err)
			}
			if n := status(t, cmd); n != 7 {
				t.Errorf("status %d", n)
			}

			gate, _, cmd = staged(t, exe, "", "/bin/sh")
			gate.Close()
			if n := status(t, cmd); n != Unreleased {
				t.Errorf("with its gate closed: status %d", n)
			}

			gate, says, cmd = staged(t, exe, "", "/none")
			gate.Write([]byte{1})
			if b, _ := io.ReadAll(says); len(b) != 4 || unix.Errno(binary.NativeEndian.Uint32(b)) != unix.ENOENT {
				t.Errorf("a program that is not there: it says %v", b)
			}
			if n := status(t, cmd); n != 127 {
				t.Errorf("status %d", n)
			}

			procs := filepath.Join(group, "cgroup.procs")
			if err := os.WriteFile(procs, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for dir, want := range map[string]unix.Errno{group: 0, none: unix.ENOENT} {
				gate, says, cmd = staged(t, exe, dir, "/bin/sh")
				var said [8]byte
				if _, err := io.ReadFull(says, said[:]); err != nil {
					t.Fatal(err)
				}
				if pid, no := binary.NativeEndian.Uint32(said[:]), unix.Errno(binary.NativeEndian.Uint32(said[4:])); pid != 0 || no != want {
					t.Errorf("it says %d, %v, want 0, %v", pid, no, want)
				}
				gate.Write([]byte{1})
				if b, err := io.ReadAll(says); len(b) > 0 || err != nil {
					t.Errorf("then it says %v, %v", b, err)
				}
				if n := status(t, cmd); n != 7 {
					t.Errorf("status %d", n)
				}
			}
			if b, _ := os.ReadFile(procs); string(b) != "0" {
				t.Errorf("it wrote %q", b)
			}
		})
	}
}

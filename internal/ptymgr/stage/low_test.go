package stage

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// lowVar makes the test binary a process whose stage's program has one of the
// numbers that the stage's own descriptors get.
const lowVar = "PTYD_TEST_STAGE_LOW"

func TestMain(m *testing.M) {
	if os.Getenv(lowVar) != "" {
		os.Exit(low())
	}
	os.Exit(m.Run())
}

// A worker that took over had descriptor 3 or 4 free when it made the stage's
// program. In its children that number was the gate or the pipe for errors by
// the time the program was to be executed, and no session could be started any
// more: "permission denied".
func TestProgramWithALowNumber(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), lowVar+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func low() int {
	for fd := Gate; fd <= Self; fd++ {
		_ = syscall.Close(fd)
	}
	exe, args, prog, err := Command("/bin/sh", []string{"sh", "-c", "ls /proc/self/fd/6 /proc/self/fd/5 2>/dev/null || exit 7"}, false)
	if err != nil || prog != None && prog > Errors {
		fmt.Println("the stage's program is", prog, err)
		return 1
	}
	var gate, errs [2]int
	if err := syscall.Pipe(gate[:]); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := syscall.Pipe(errs[:]); err != nil {
		fmt.Println(err)
		return 1
	}
	pid, _, err := syscall.StartProcess(exe, args, &syscall.ProcAttr{
		Env: []string{"PATH=/usr/bin:/bin"}, Files: []uintptr{0, 1, 2, uintptr(gate[0]), uintptr(errs[1]), None, prog},
	})
	if err != nil {
		fmt.Println("start the stage:", err)
		return 1
	}
	_, _ = syscall.Write(gate[1], []byte{1})
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || ws.ExitStatus() != 7 {
		fmt.Println("the stage's program ended with", ws.ExitStatus(), err)
		return 1
	}
	return 0
}

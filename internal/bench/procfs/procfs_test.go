package procfs

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const line = "42 (a) b (c) S 7 42 42 34816 42 4194560 1 0 0 0 150 50 0 0 20 0 3 0 100 1000 10 18446744073709551615"
	p, ok := parseStat([]byte(line))
	if !ok || p.pid != 42 || p.parent != 7 || p.terminal != 34816 || p.cpu != 2*time.Second {
		t.Errorf("parseStat = %+v, %v", p, ok)
	}
	for _, bad := range []string{"", "42", "42 (x", "42 (x) S 1 2", "x (y) S 7 42 42 0 42 1 1 0 0 0 150 50 0"} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("parseStat(%q) said ok", bad)
		}
	}
}

func TestParseStatus(t *testing.T) {
	m := parseStatus([]byte("Name:\tx\nRssAnon:\t     120 kB\nRssShmem:\t  8 kB\nThreads:\t9\nodd line\n"))
	if m["RssAnon"] != 120 || m["RssShmem"] != 8 || m["Threads"] != 9 {
		t.Errorf("parseStatus = %v", m)
	}
	if _, there := m["Name"]; there {
		t.Error("a name is not a number")
	}
}

func TestServerLeavesTerminalsOut(t *testing.T) {
	children := map[int][]proc{
		1: {{pid: 10}, {pid: 99}},
		10: {
			{pid: 11},                  // a worker of the server
			{pid: 12, terminal: 34816}, // a session
		},
		11: {{pid: 13}},
		12: {{pid: 14}}, // detached below a session: not the server's
	}
	if got := server(10, children); !slices.Equal(got, []int{10, 11, 13}) {
		t.Errorf("server = %v", got)
	}
}

func TestReadThisProcess(t *testing.T) {
	u := Read([]int{os.Getpid(), 1 << 30}) // the second does not exist
	if u.Processes != 1 || u.Threads < 2 || u.Anon < 100 || u.Own() != u.Anon+u.File || u.Resident() < u.Own() {
		t.Errorf("usage = %+v", u)
	}
}

func TestServerFindsAChild(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // else it shares the terminal of whoever runs the test
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if got := Server(os.Getpid()); !slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("%v lacks the child %d", got, cmd.Process.Pid)
	}
}

func TestParseCPU(t *testing.T) {
	if got := parseCPU("processor\t: 0\nmodel name\t: A  B @ 2.00GHz\nModel\t: 85\n"); got != "A B @ 2.00GHz" {
		t.Errorf("x86: %q", got)
	}
	if got := parseCPU("processor\t: 0\nModel\t\t: Raspberry Pi 4\n"); got != "Raspberry Pi 4" {
		t.Errorf("arm: %q", got)
	}
	if got := parseCPU(""); got != "" {
		t.Errorf("empty: %q", got)
	}
}

func TestThisMachine(t *testing.T) {
	if m := ThisMachine(); m.Cores < 1 || m.Kernel == "unknown" || m.Load == "" {
		t.Errorf("%+v", m)
	}
}

func TestBusy(t *testing.T) {
	const stat = "cpu  100 10 50 9000 400 5 5 30 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
	if got := parseBusy(stat); got != 2*time.Second {
		t.Errorf("parseBusy = %v", got)
	}
	if got := parseBusy("cpu  x"); got != 0 {
		t.Errorf("nonsense: %v", got)
	}
	if Busy() <= 0 {
		t.Error("this machine has never worked")
	}
}

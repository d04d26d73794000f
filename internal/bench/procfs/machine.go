package procfs

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine says where numbers come from.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Load   string `json:"load_before"` // load averages of 1, 5 and 15 minutes before the first measurement
}

// ThisMachine describes the machine that the program runs on.
func ThisMachine() Machine {
	m := Machine{CPU: "unknown", Cores: runtime.NumCPU(), Kernel: "unknown"}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if s := parseCPU(string(b)); s != "" {
			m.CPU = s
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(b)); len(f) >= 3 {
			m.Load = strings.Join(f[:3], " ")
		}
	}
	return m
}

// parseCPU finds the processor's name; machines other than x86 have no "model name".
func parseCPU(cpuinfo string) string {
	for _, key := range []string{"model name", "Model", "Hardware"} {
		for line := range strings.Lines(cpuinfo) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
				return strings.Join(strings.Fields(v), " ")
			}
		}
	}
	return ""
}

package procfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// perSession is how many descriptors one process needs for a session, and
	// spare what it needs besides.
	perSession, spare = 3, 300
)

// Room tells why this machine cannot carry n sessions more; "" when it can.
func Room(n int) string {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return fmt.Sprintf("the limit of descriptors is unknown: %v", err)
	}
	return room(n, lim.Max, sysctl("/proc/sys/kernel/pty/max"), sysctl("/proc/sys/kernel/pty/nr"))
}

// room decides for a hard limit of descriptors, the most terminals that the
// kernel gives (0: unknown), and how many there are.
func room(n int, fds uint64, most, ptys int) string {
	if need := uint64(n*perSession + spare); fds < need {
		return fmt.Sprintf("%d descriptors are needed, ulimit -Hn is %d", need, fds)
	}
	if most > 0 && most-ptys < n {
		return fmt.Sprintf("%d terminals are needed, kernel.pty.max leaves %d", n, most-ptys)
	}
	return ""
}

// sysctl reads a number, 0 where there is none.
func sysctl(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

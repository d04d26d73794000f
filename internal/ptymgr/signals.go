package ptymgr

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/problem"
)

// ParseSignal reads "INT", "SIGINT", "int" or "2".
func ParseSignal(name string) (unix.Signal, error) {
	up := strings.ToUpper(strings.TrimSpace(name))
	if n, err := strconv.Atoi(up); err == nil {
		if n >= 1 && n <= 64 {
			return unix.Signal(n), nil
		}
		return 0, problem.Field("signal", "%d is not within 1 and 64", n)
	}
	if !strings.HasPrefix(up, "SIG") {
		up = "SIG" + up
	}
	if sig := unix.SignalNum(up); sig != 0 {
		return sig, nil
	}
	return 0, problem.Field("signal", "%q is no signal", name).WithHint("such as INT, TERM, KILL, HUP, WINCH, USR1 or a number")
}

package procfs

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Busy is the time that all processors together have spent working, for
// whomever, since the machine started; time that a hypervisor withheld counts.
func Busy() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return parseBusy(string(b))
}

func parseBusy(stat string) time.Duration {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	var sum int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		if i < len(f) {
			n, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil {
				return 0
			}
			sum += n
		}
	}
	return time.Duration(sum) * tick
}

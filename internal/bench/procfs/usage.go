package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc: USER_HZ is 100 on every Linux.
const tick = 10 * time.Millisecond

// Usage is what some processes use together. The memory is resident, in KiB;
// shared pages (RssShmem: memfds, where a session's output lives) stand apart.
type Usage struct {
	Anon, File, Shmem int64
	Threads           int
	CPU               time.Duration // since they started
	Processes         int
}

// Own is the resident memory without shared pages, in KiB.
func (u Usage) Own() int64 { return u.Anon + u.File }

// Resident is all resident memory, in KiB.
func (u Usage) Resident() int64 { return u.Anon + u.File + u.Shmem }

// Read sums the usage of pids; those that are gone count nothing.
func Read(pids []int) Usage {
	var u Usage
	for _, pid := range pids {
		status, err1 := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		stat, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err1 != nil || err2 != nil {
			continue
		}
		p, ok := parseStat(stat)
		if !ok {
			continue
		}
		f := parseStatus(status)
		u.Anon += f["RssAnon"]
		u.File += f["RssFile"]
		u.Shmem += f["RssShmem"]
		u.Threads += int(f["Threads"])
		u.CPU += p.cpu
		u.Processes++
	}
	return u
}

// parseStatus returns the lines of /proc/PID/status whose value begins with a number.
func parseStatus(b []byte) map[string]int64 {
	m := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		k, v, ok := strings.Cut(line, ":")
		if f := strings.Fields(v); ok && len(f) > 0 {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				m[k] = n
			}
		}
	}
	return m
}

// proc is the part of /proc/PID/stat that matters here.
type proc struct {
	pid, parent int
	terminal    int // the controlling terminal, 0 for none
	cpu         time.Duration
}

// parseStat reads /proc/PID/stat. The command's name may hold spaces and
// parentheses, so the fields count from the last one.
func parseStat(b []byte) (p proc, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return p, false
	}
	f := strings.Fields(string(b[end+1:])) // f[0] is field 3 of proc(5), the state
	if len(f) < 13 {
		return p, false
	}
	num := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			ok = false
		}
		return n
	}
	ok = true
	p.pid = int(num(strings.TrimSpace(string(b[:open]))))
	p.parent = int(num(f[1]))
	p.terminal = int(num(f[4]))
	p.cpu = time.Duration(num(f[11])+num(f[12])) * tick
	return p, ok
}

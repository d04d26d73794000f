package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one entry of /proc: the start time tells a reused pid apart.
type process struct {
	PID, PPID, Group int
	State            byte
	Start            uint64
	Cmd              string
	Session          int
}

// identity tells a process from a later one with the same pid.
type identity struct {
	pid   int
	start uint64
}

func (p process) identity() identity { return identity{p.PID, p.Start} }

func (p process) String() string {
	return fmt.Sprintf("pid %d (parent %d, state %c): %s", p.PID, p.PPID, p.State, p.Cmd)
}

// readProcess reads one process; ok is false when it is gone.
func readProcess(pid int) (p process, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	end := bytes.LastIndexByte(b, ')') // the name may hold spaces and brackets
	f := strings.Fields(string(b[end+1:]))
	if end < 0 || len(f) < 20 {
		return p, false
	}
	p.PID, p.State = pid, f[0][0]
	p.PPID, _ = strconv.Atoi(f[1])
	p.Group, _ = strconv.Atoi(f[2])
	p.Session, _ = strconv.Atoi(f[3])
	p.Start, _ = strconv.ParseUint(f[19], 10, 64)
	cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	p.Cmd = strings.TrimSpace(string(bytes.ReplaceAll(cmd, []byte{0}, []byte{' '})))
	if p.Cmd == "" {
		p.Cmd = string(b[bytes.IndexByte(b, '('):][:end-bytes.IndexByte(b, '(')+1])
	}
	return p, true
}

// processes lists all of /proc.
func processes() []process {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var all []process
	for _, n := range names {
		pid, err := strconv.Atoi(filepath.Base(n))
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// descendants lists the processes below root, root excluded.
func descendants(root int) []process {
	all := processes()
	below := map[int]bool{root: true}
	var out []process
	for found := true; found; {
		found = false
		for _, p := range all {
			if below[p.PPID] && !below[p.PID] {
				below[p.PID] = true
				out = append(out, p)
				found = true
			}
		}
	}
	return out
}

// alive reports whether exactly this process still runs; a zombie does not.
func (p process) alive() bool {
	q, ok := readProcess(p.PID)
	return ok && q.Start == p.Start && q.State != 'Z' && q.State != 'X'
}

// orphans lists the living processes that came to this process as subreaper;
// it reaps those that ended.
func orphans() []process {
	var out []process
	for _, p := range processes() {
		if p.PPID != os.Getpid() {
			continue
		}
		if p.State == 'Z' {
			var ws unix.WaitStatus
			_, _ = unix.Wait4(p.PID, &ws, unix.WNOHANG, nil)
			continue
		}
		out = append(out, p)
	}
	return out
}

// withSession lists the living processes whose environment names one of the
// sessions: they belong to it even when they left its process tree.
func withSession(ids map[string]bool) []process {
	var out []process
	for _, p := range processes() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
		if err != nil || p.State == 'Z' {
			continue
		}
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if id, ok := bytes.CutPrefix(kv, []byte("PTYD_SESSION=")); ok && ids[string(id)] {
				out = append(out, p)
			}
		}
	}
	return out
}

// descriptors counts the open descriptors of a process, in all and those on a
// terminal's master side. The database's are left out: its pool of readers grows
// when some read at once, to a bound of its own.
func descriptors(pid int) (all, masters int) {
	for _, to := range openFiles(pid) {
		if strings.Contains(to, "/ptyd.db") {
			continue
		}
		all++
		if to == "/dev/ptmx" || to == "/dev/pts/ptmx" {
			masters++
		}
	}
	return all, masters
}

// openFiles is what the descriptors of a process lead to.
func openFiles(pid int) (out []string) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			out = append(out, to)
		}
	}
	return out
}

// rss returns the resident memory of a process in bytes.
func rss(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

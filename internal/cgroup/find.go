package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errNone says that the machine has no cgroup v2.
var errNone = errors.New("no cgroup v2 file system is mounted")

// mountPoint finds where cgroup v2 is mounted in a text as of /proc/self/mounts
// (fstab(5)): the first one.
func mountPoint(mounts string) (string, error) {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) >= 3 && f[2] == "cgroup2" {
			return unescape(f[1]), nil
		}
	}
	return "", errNone
}

// unescape undoes the octal escapes of blanks in /proc/self/mounts.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ownPath finds the caller's place in the v2 tree in a text as of
// /proc/self/cgroup (cgroups(7)).
func ownPath(cgroups string) (string, error) {
	for line := range strings.Lines(cgroups) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "/..") {
				return "", fmt.Errorf("the daemon's cgroup %s is outside of the mounted tree", p)
			}
			return p, nil
		}
	}
	return "", errNone
}

// here finds the mount and the cgroup of this process in it, and checks that
// the two belong together: a container may see a part of the tree, or none.
func here() (mount, own string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", "", fmt.Errorf("read the mounts: %w", err)
	}
	if mount, err = mountPoint(string(mounts)); err != nil {
		return "", "", err
	}
	mine, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", fmt.Errorf("read the own cgroup: %w", err)
	}
	if own, err = ownPath(string(mine)); err != nil {
		return "", "", err
	}
	pids, err := procsOf(filepath.Join(mount, own))
	if err != nil {
		return "", "", fmt.Errorf("read the own cgroup: %w", err)
	}
	if !slices.Contains(pids, os.Getpid()) {
		return "", "", fmt.Errorf("the cgroup %s at %s is not this daemon's: the mount shows another part of the tree", own, mount)
	}
	return mount, own, nil
}

// procsOf are the processes of one cgroup, without those below it. 0 is one
// that this process cannot see.
func procsOf(dir string) ([]int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range strings.Lines(string(b)) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, n)
		}
	}
	return pids, nil
}

// delegated reports whether systemd has marked a cgroup as given away
// (systemd.resource-control(5), Delegate=).
func delegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var b [8]byte
		if n, err := unix.Getxattr(dir, name, b[:]); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}

// nameFor is the name of a daemon's subtree: that of its state directory, which
// only one daemon at a time can have. The device and inode tell directories of
// the same path in two containers apart.
func nameFor(stateDir string) (string, error) {
	abs, err := filepath.Abs(stateDir)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Stat(abs, &st); err != nil {
		return "", fmt.Errorf("look at the state directory: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", st.Dev, st.Ino, abs))
	return "ptyd-" + hex.EncodeToString(sum[:6]), nil
}

package doctor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/cgroup"
)

const (
	perSession = 3  // terminal, memory and process
	besides    = 64 // listeners, pipes, the database, a few viewers
)

// needs is how many descriptors the configured number of sessions takes.
func (o *Options) needs() uint64 { return uint64(o.Config.SessionsTotal)*perSession + besides }

func (o *Options) store() Finding {
	const name = "descriptor store"
	if o.Status == nil || o.Status.Keeper == 0 {
		return well(name, "not in use: no keeper runs")
	}
	room, known := openFiles(o.Status.Keeper)
	from := "the keeper's limit of open files"
	if env, ok := environ(o.Status.Keeper); ok && env["FDSTORE"] != "" {
		if n, err := strconv.ParseUint(env["FDSTORE"], 10, 64); err == nil && (!known || n < room) {
			room, known, from = n, true, "the service's FileDescriptorStoreMax"
		}
	}
	if !known {
		return well(name, "its size is not known").at(Warn, "the keeper belongs to another user", "run this as the daemon's user")
	}
	return roomFor(name, room, from, o)
}

func (o *Options) descriptors() Finding {
	pid, whose := 0, "a daemon started from here"
	if o.Status != nil {
		pid, whose = o.Status.Worker, "the daemon"
	}
	room, known := openFiles(pid)
	if !known {
		return well("open files", "the limit is not known").at(Warn, "the daemon belongs to another user", "run this as the daemon's user")
	}
	return roomFor("open files", room, "the limit of "+whose, o)
}

func roomFor(name string, room uint64, from string, o *Options) Finding {
	f := well(name, "%s is %d", from, room)
	if o.ConfigErr != nil || room >= o.needs() {
		return f
	}
	fits := (room - min(room, besides)) / perSession
	f.What += fmt.Sprintf(", enough for %d sessions; sessions_total is %d", fits, o.Config.SessionsTotal)
	return f.at(Warn, "beyond that new sessions are refused", fmt.Sprintf("raise it to %d (LimitNOFILE= and FileDescriptorStoreMax= of the unit, or ulimit -Hn), or lower sessions_total", o.needs()))
}

func (o *Options) terminals() Finding {
	const name = "terminals"
	b, err := os.ReadFile("/proc/sys/kernel/pty/max")
	n, err2 := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || err2 != nil {
		return well(name, "the kernel does not say how many there may be")
	}
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return well(name, "/dev/ptmx: %v", err).at(Fail, "no session can start", "mount devpts at /dev/pts; in a unit, DevicePolicy= must allow char-pts and /dev/ptmx")
	}
	unix.Close(fd)
	f := well(name, "the kernel allows %d", n)
	if o.ConfigErr == nil && n < o.Config.SessionsTotal {
		return f.at(Warn, fmt.Sprintf("sessions_total is %d", o.Config.SessionsTotal), "raise /proc/sys/kernel/pty/max (sysctl kernel.pty.max)")
	}
	return f
}

// kernel tries what the daemon uses, instead of believing a version.
func kernel() []Finding {
	var un unix.Utsname
	_ = unix.Uname(&un)
	release := unix.ByteSliceToString(un.Release[:])
	try := func(check string, err error, l Level, why, do string) Finding {
		if err == nil {
			return well(check, "works (Linux %s)", release)
		}
		return well(check, "does not work on Linux %s: %v", release, err).at(l, why, do)
	}
	return []Finding{
		try("splice from a terminal", trySplice(), Warn, "a crash of the daemon can lose the output of one read", "use Linux 5.11 or later"),
		try("pidfd", tryPidfd(), Fail, "the daemon cannot follow its sessions' processes", "use Linux 5.10 or later, and allow pidfd_open"),
		try("pidfd info", tryPidfdInfo(), Warn, "exit statuses of sessions that end after the keeper's own death are unknown", "use Linux 6.15 or later"),
		try("memfd seals", trySeals(), Fail, "the output of sessions cannot be kept safely", "allow memfd_create"),
	}
}

func trySplice() error {
	ptmx, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ptmx)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return err
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	// There is nothing to read, which is another answer than "not possible".
	_, err = unix.Splice(ptmx, nil, p[1], nil, 1, unix.SPLICE_F_NONBLOCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EIO) {
		return nil
	}
	return err
}

func tryPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err == nil {
		err = unix.PidfdSendSignal(fd, 0, nil, 0)
		unix.Close(fd)
	}
	return err
}

func tryPidfdInfo() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// struct pidfd_info of <linux/pidfd.h>, first version: 64 bytes. The exit
	// status was added to it in 6.15: an asked bit that stays unset for a living
	// process tells nothing, so the kernel's version decides between the two.
	var info [8]uint64
	const getInfo = 0xC040FF0B // _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), getInfo, uintptr(unsafe.Pointer(&info[0]))); e != 0 {
		return e
	}
	var un unix.Utsname
	_ = unix.Uname(&un)
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(un.Release[:]), "%d.%d", &major, &minor); err != nil || major > 6 || major == 6 && minor >= 15 {
		return nil
	}
	return errors.New("no exit status in it")
}

func trySeals() error {
	fd, err := unix.MemfdCreate("ptyd-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
		unix.Close(fd)
	}
	return err
}

func (o *Options) cgroups() []Finding {
	path, why, missing := "", "", map[string]string{}
	if o.Status != nil {
		path, why, missing = o.Status.Cgroup, o.Status.NoCgroup, o.Status.Missing
	} else if !exists(o.StateDir) || exists(o.socket()) {
		return []Finding{well("cgroups", "not looked at: it takes a daemon that answers, or a state directory without one")}
	} else if t, err := cgroup.Open(cgroup.Options{StateDir: o.StateDir, Supervised: true}); err != nil {
		why = err.Error()
	} else {
		defer func() { _ = t.Close() }()
		path = t.Path()
		for _, c := range []string{cgroup.Memory, cgroup.Pids} {
			if m := t.Missing(c); m != "" {
				missing[c] = m
			}
		}
	}
	const do = "see docs/cgroups.md: Delegate=yes in the unit, or a cgroup of its own for the daemon"
	f := well("cgroups", "each session has one, below %s", path)
	if path == "" || why != "" {
		f = well("cgroups", "sessions have none: %s", why)
		if path != "" {
			f.What = why
		}
		f = f.at(Warn, "a program that leaves its session (setsid and a double fork) and clears its environment survives the session's end", do)
	}
	all := []Finding{f}
	for _, c := range []string{cgroup.Memory, cgroup.Pids} {
		f := well(c+" limits", "can be set")
		if why, gone := missing[c]; gone {
			f = well(c+" limits", "are refused: %s", why).at(Warn, "sessions that ask for such a limit do not start", do)
			if o.ConfigErr == nil && (c == cgroup.Memory && o.Config.SessionMemory > 0 || c == cgroup.Pids && o.Config.SessionPids > 0) {
				f = f.at(Fail, "the configuration sets such a limit for all sessions, so none starts", do+"; or unset session_"+c)
			}
		}
		all = append(all, f)
	}
	return all
}

// clock looks at the clock: expiry and history are by it.
func clock(now time.Time) Finding {
	f := well("clock", "%s", now.UTC().Format(time.RFC3339))
	if now.Year() < 2025 || now.Year() > 2100 {
		return f.at(Fail, "tokens, logins and certificates expire by it", "set it")
	}
	var tx unix.Timex
	if state, err := unix.Adjtimex(&tx); err == nil && state == unix.TIME_ERROR {
		f.What += ", not synchronised"
		return f.at(Warn, "tokens, logins and certificates expire by it", "run a time service, such as systemd-timesyncd; in a virtual machine the host may do it")
	}
	return f
}

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// machine is a small Linux system of its own: this machine's /usr, read-only,
// with this machine's systemd as process 1, in fresh namespaces and in a control
// group of its own. Nothing that happens in it is seen outside.
type machine struct {
	t      testing.TB
	pid    int    // of its process 1, seen from here
	root   string // its root, seen from here
	cgroup string
	dir    string       // with its console and its root
	unit   string       // the service that a part of the test is about
	ended  *atomic.Bool // process 1 has
}

const (
	// machineWord as the first argument makes the test binary the process that
	// builds a machine's root and executes systemd in it.
	machineWord = "e2e-machine"
	systemdPath = "/lib/systemd/systemd"
	// notPermitted is the exit status of a process that may not do so.
	notPermitted = 77
)

// boot starts a machine. It leaves the test out where that can't be done here.
func boot(t testing.TB) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("left out: a systemd of the test's own needs root")
	}
	if _, err := os.Stat(systemdPath); err != nil {
		t.Skip("left out: systemd is not on this machine")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("left out: nsenter is not on this machine")
	}
	m := &machine{t: t, dir: stateDir(t), unit: "ptyd", ended: new(atomic.Bool)}
	if err := m.makeCgroup(); err != nil {
		t.Skipf("left out: no control group for a systemd of the test's own: %v", err)
	}
	m.start()
	if !holds(30*time.Second, func() bool { return m.ended.Load() || m.up() }) || m.ended.Load() {
		t.Fatalf("the machine did not come up:\n%s", m.console())
	}
	return m
}

// makeCgroup makes the control group that is the machine's whole tree.
func (m *machine) makeCgroup() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			m.cgroup = filepath.Join(f[1], "ptyd-e2e-"+strconv.Itoa(os.Getpid()))
			break
		}
	}
	if m.cgroup == "" {
		return errors.New("no cgroup2 is mounted")
	}
	if err := os.Mkdir(m.cgroup, 0o755); err != nil {
		return err
	}
	m.t.Cleanup(m.removeCgroup)
	return nil
}

func (m *machine) removeCgroup() {
	_ = os.WriteFile(filepath.Join(m.cgroup, "cgroup.kill"), []byte("1"), 0)
	if !holds(10*time.Second, func() bool { // the deepest first; zombies of the dead linger a moment
		var dirs []string
		_ = filepath.WalkDir(m.cgroup, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			_ = unix.Rmdir(dirs[i])
		}
		_, err := os.Stat(m.cgroup)
		return err != nil
	}) {
		m.t.Errorf("the machine's control group %s can't be removed", m.cgroup)
	}
}

// start starts process 1. It dies with the thread that started it, which is one
// that waits for nothing else: a test run that is killed leaves no machine.
func (m *machine) start() {
	t := m.t
	root := filepath.Join(m.dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(m.dir, "console"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	group, err := os.Open(m.cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	cmd := exec.Command(selfPath(t), machineWord, root, shippedBinary)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		UseCgroupFD: true, CgroupFD: int(group.Fd()), Pdeathsig: syscall.SIGKILL,
	}
	started, exited := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			m.ended.Store(true)
		}
	}()
	if err := <-started; errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("left out: namespaces and control groups can't be made here: %v", err)
	} else if err != nil {
		t.Fatalf("start the machine: %v", err)
	}
	m.pid = cmd.Process.Pid
	m.root = fmt.Sprintf("/proc/%d/root", m.pid)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the machine's console:\n%s", tailOf(m.console(), 16<<10))
		}
		_ = cmd.Process.Kill()
		<-exited
	})
	// Until it executes systemd it may find that something is not permitted.
	holds(10*time.Second, func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.pid))
		return m.ended.Load() || string(b) == "systemd\n"
	})
	if m.ended.Load() && cmd.ProcessState.ExitCode() == notPermitted {
		t.Skipf("left out: a root of its own can't be built here: %s", m.console())
	}
}

func (m *machine) console() string {
	b, _ := os.ReadFile(filepath.Join(m.dir, "console"))
	return string(b)
}

// up tells whether systemd has started everything.
func (m *machine) up() bool {
	state := strings.TrimSpace(m.try("systemctl", "is-system-running").Stdout)
	return state == "running" || state == "degraded"
}

// in is the machine for a part of the test.
func (m *machine) in(t testing.TB) *machine {
	c := *m
	c.t = t
	return &c
}

// try runs a command in the machine.
func (m *machine) try(argv ...string) result {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", strconv.Itoa(m.pid), "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--"}, argv...)...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "PTYD_STATE_DIR=/var/lib/ptyd"}
	cmd.WaitDelay = time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		m.t.Fatalf("run %v: %v", argv, err)
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// do runs a command that has to succeed and returns what it printed.
func (m *machine) do(argv ...string) string {
	m.t.Helper()
	r := m.try(argv...)
	if r.Code != 0 {
		m.t.Fatalf("%v: %v\n%s", argv, r, tailOf(m.log(), 8<<10))
	}
	return r.Stdout
}

// show is a property of the service.
func (m *machine) show(property string) string {
	m.t.Helper()
	return strings.TrimSpace(m.do("systemctl", "show", "--value", "--property", property, m.unit))
}

// path is a file of the machine, seen from here.
func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// log is what the service has logged.
func (m *machine) log() string {
	b, _ := os.ReadFile(m.path("var/log/" + m.unit + ".log"))
	return string(b)
}

// buildMachine is the first process of a machine: it makes its root and becomes
// its systemd.
func buildMachine(root, binary string) error {
	runtime.LockOSThread()
	// Its present control group becomes the root of what it sees.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make a cgroup namespace: %w", err)
	}
	if err := unix.Sethostname([]byte("ptyd-e2e")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	for _, mnt := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"tmpfs", "", "tmpfs", 0, "mode=755"},
		{"/usr", "usr", "", unix.MS_BIND, ""},
		{"", "usr", "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""},
		{"tmpfs", "usr/local", "tmpfs", 0, "mode=755"},
		{"proc", "proc", "proc", 0, ""},
		// Settings of the one kernel that is there are not the machine's.
		{in("proc/sys"), "proc/sys", "", unix.MS_BIND, ""},
		{"", "proc/sys", "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""},
		{"sysfs", "sys", "sysfs", unix.MS_RDONLY, ""},
		{"cgroup2", "sys/fs/cgroup", "cgroup2", 0, ""},
		{"tmpfs", "run", "tmpfs", 0, "mode=755"},
		{"tmpfs", "tmp", "tmpfs", 0, "mode=1777"},
		{"tmpfs", "dev", "tmpfs", 0, "mode=755"},
		{"devpts", "dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=620,gid=5"},
		{"tmpfs", "dev/shm", "tmpfs", 0, "mode=1777"},
	} {
		if _, err := os.Stat(in(mnt.target)); err != nil {
			if err := os.MkdirAll(in(mnt.target), 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(mnt.source, in(mnt.target), mnt.kind, mnt.flags, mnt.data); err != nil {
			return fmt.Errorf("mount /%s: %w", mnt.target, err)
		}
	}
	for _, d := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := os.WriteFile(in("dev/"+d), nil, 0o666); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+d, in("dev/"+d), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount /dev/%s: %w", d, err)
		}
	}
	for link, to := range map[string]string{
		"dev/ptmx": "pts/ptmx", "dev/fd": "/proc/self/fd", "dev/stdin": "fd/0", "dev/stdout": "fd/1", "dev/stderr": "fd/2",
	} {
		if err := os.Symlink(to, in(link)); err != nil {
			return err
		}
	}
	if err := fillMachine(in, binary); err != nil {
		return err
	}
	if err := os.Mkdir(in(".old"), 0o755); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, in(".old")); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/.old", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	argv := []string{systemdPath, "--unit=basic.target", "--log-target=console", "--log-level=notice", "--show-status=no"}
	return unix.Exec(systemdPath, argv, []string{"container=ptyd-e2e", "SYSTEMD_GENERATOR_PATH=/run/none", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
}

// masked are units that a machine has no use for.
var masked = []string{
	"systemd-journald.service", "systemd-journald.socket", "systemd-journald-audit.socket", "systemd-journald-dev-log.socket",
	"systemd-journal-flush.service", "systemd-sysctl.service", "systemd-sysusers.service", "systemd-remount-fs.service",
	"systemd-tmpfiles-setup.service", "systemd-tmpfiles-setup-dev.service", "systemd-tmpfiles-clean.timer", "systemd-update-utmp.service",
	"systemd-modules-load.service", "systemd-binfmt.service", "systemd-random-seed.service", "systemd-udevd.service", "kmod-static-nodes.service",
	"dev-hugepages.mount", "dev-mqueue.mount", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
	"proc-sys-fs-binfmt_misc.automount", "modprobe@.service", "systemd-initctl.socket", "dbus.socket", "systemd-networkd.socket", "systemd-timesyncd.service",
	"systemd-ask-password-console.path",
}

// fillMachine writes the files of a machine's root.
func fillMachine(in func(string) string, binary string) error {
	for _, dir := range []string{
		"etc/systemd/system", "etc/systemd/user", "var/lib", "var/log", "var/tmp", "var/cache", "home/agent", "root", "srv", "mnt",
		"usr/local/bin", "usr/local/lib/systemd/system",
	} {
		if err := os.MkdirAll(in(dir), 0o755); err != nil {
			return err
		}
	}
	for dir, mode := range map[string]os.FileMode{"root": 0o700, "home/agent": 0o700, "var/tmp": 0o777 | os.ModeSticky} {
		if err := os.Chmod(in(dir), mode); err != nil {
			return err
		}
	}
	if err := os.Chown(in("home/agent"), 1777, 1777); err != nil {
		return err
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		if to, err := os.Readlink("/" + link); err == nil {
			if err := os.Symlink(to, in(link)); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{"etc/alternatives", "etc/pam.d", "etc/security"} {
		if _, err := os.Stat("/" + dir); err == nil {
			if err := os.CopyFS(in(dir), os.DirFS("/"+dir)); err != nil && !errors.Is(err, fs.ErrInvalid) {
				return err
			}
		}
	}
	for name, text := range map[string]string{
		"etc/passwd":     "root:x:0:0:root:/root:/bin/bash\nagent:x:1777:1777::/home/agent:/bin/bash\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
		"etc/group":      "root:x:0:\ntty:x:5:\nagent:x:1777:\nnogroup:x:65534:\n",
		"etc/machine-id": "0123456789abcdef0123456789abcdef\n",
		"etc/os-release": "ID=ptyd-e2e\n",
		// The log is read from outside, without a journal in between.
		"etc/systemd/system/ptyd.service.d/test.conf": "[Service]\nStandardOutput=append:/var/log/ptyd.log\nStandardError=append:/var/log/ptyd.log\nEnvironment=PTYD_LOG_LEVEL=debug\n",
	} {
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(in(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, unit := range masked {
		if err := os.Symlink("/dev/null", in("etc/systemd/system/"+unit)); err != nil {
			return err
		}
	}
	for _, name := range []string{"etc/ld.so.cache", "etc/nsswitch.conf", "usr/local/bin/ptyd"} {
		from := "/" + name
		if name == "usr/local/bin/ptyd" {
			from = binary
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(in(name), b, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// loopbackUp starts the only interface of a new network namespace.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	return nil
}

// machineMain runs buildMachine, which does not return where all is well.
func machineMain(args []string) int {
	err := buildMachine(args[0], args[1])
	fmt.Println(err)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENODEV) {
		return notPermitted
	}
	return 1
}

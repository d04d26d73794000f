package keeper

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// takeStored takes the descriptors that the service manager kept over the
// former keeper's death, and the sockets that it opened.
func (k *keeper) takeStored() {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n < 1 {
		return
	}
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for fd := firstFD; fd < firstFD+n; fd++ {
		unix.CloseOnExec(fd)
	}
	for i := range n {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		k.take(name, firstFD+i)
	}
	k.log.Info("descriptors taken from the service manager", zap.Int("given", n), zap.Int("kept", len(k.store.all)))
}

// take keeps one of them, or closes it and has it forgotten.
func (k *keeper) take(name string, fd int) {
	var err error
	if name == nameExits && k.exits == nil {
		if k.exits, err = notifyproto.OpenExits(fd); err == nil {
			return
		}
	} else if err = k.store.check(name, 1); err == nil {
		k.store.add(name, []int{fd})
		return
	}
	k.log.Error("a stored descriptor is of no use and is dropped", zap.String("name", name), zap.Error(err))
	_ = unix.Close(fd)
	if notifyproto.ValidName(name) && (name != nameExits || k.exits == nil) {
		k.up.send(notifyproto.Encode("FDSTOREREMOVE=1", "FDNAME="+name))
	}
}

// managed tells whether a service manager runs the keeper's unit.
func (k *keeper) managed() bool {
	unit, _ := k.o.unit()
	return k.up != nil && unit != ""
}

// unitName reads the unit out of the process's control group: the last part of
// the path that names a service, because a delegated subgroup may follow.
func unitName() (unit string, user bool) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	return unitOf(string(b))
}

func unitOf(cgroups string) (unit string, user bool) {
	for line := range strings.Lines(cgroups) {
		path, ok := strings.CutPrefix(line, "0::")
		if !ok {
			if _, path, ok = strings.Cut(line, ":name=systemd:"); !ok {
				continue
			}
		}
		unit, user = "", false
		for part := range strings.SplitSeq(strings.TrimSpace(path), "/") {
			if strings.HasSuffix(part, ".service") {
				user = user || strings.HasPrefix(unit, "user@")
				unit = strings.TrimPrefix(part, "_")
			}
		}
		if unit != "" { // else the other hierarchy may tell, where there are two
			return unit, user
		}
	}
	return "", false
}

// askManager finds out whether SIGTERM means that the unit stops or that it
// starts again. The keeper goes on meanwhile.
func (k *keeper) askManager() {
	unit, user := k.o.unit()
	k.deciding = func() {}
	k.due.in(dueJob, k.t.job)
	args := []string{"systemctl", "list-jobs", "--no-legend", "--no-pager", "--plain", "--full"}
	if user {
		args = append(args, "--user")
	}
	if err := k.systemctl(args, func(out string) { k.jobIs(jobOf(out, unit), "no job") }); err != nil {
		k.jobIs("", err.Error())
	}
}

// systemctl runs it as the keeper's own child: package os/exec would wait for
// it in competition with reap.
func (k *keeper) systemctl(args []string, then func(out string)) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	r, w, err := pipe()
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env:   CleanEnv(os.Environ()),
		Files: []uintptr{k.null.Fd(), uintptr(w), k.null.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = unix.Close(w)
	if err != nil {
		_ = r.Close()
		return err
	}
	k.helpers[pid] = func(ended) {}
	ctx, cancel := context.WithTimeout(k.ctx, k.t.job)
	k.wg.Go(func() {
		defer cancel()
		defer r.Close()
		stop := context.AfterFunc(ctx, func() { _ = r.Close() })
		defer stop()
		out, _ := io.ReadAll(io.LimitReader(r, 1<<20))
		late := ctx.Err() != nil
		k.call(func() {
			if _, lives := k.helpers[pid]; lives && late {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			then(string(out))
		})
	})
	return nil
}

// jobOf finds the kind of unit's job in `systemctl list-jobs`: lines of number,
// unit, kind, state.
func jobOf(list, unit string) string {
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) >= 3 && f[1] == unit {
			return f[2]
		}
	}
	return ""
}

// jobIs sets the goal. Only a stop ends sessions; everything else, also no
// answer, keeps them, because that can be made good later. Where nobody would
// keep them they end in order: left alone they would lose their terminals, and
// what ignores that would live on with nobody to reach it.
func (k *keeper) jobIs(kind, otherwise string) {
	if k.goal != goalServe || k.deciding == nil {
		return
	}
	switch {
	case kind == "stop":
		k.end("the unit stops")
	case !k.above:
		k.end("asked by the service manager, which keeps no descriptors")
	case kind == "":
		k.leave("asked by the service manager, " + otherwise)
	default:
		k.leave("the unit's job is " + kind)
	}
}

package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/store"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (o *Options) socket() string { return filepath.Join(o.StateDir, "ptyd.sock") }

// remote are the file systems (statfs(2)) where locks and shared memory, which
// the database needs, do not work or not always.
var remote = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.V9FS_MAGIC: "9p", unix.FUSE_SUPER_MAGIC: "FUSE", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS",
}

func (o *Options) stateDir() Finding {
	const name = "state directory"
	st, err := os.Stat(o.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return well(name, "%s is not there yet: the first start makes it", o.StateDir)
	}
	f := well(name, "%s", o.StateDir)
	if err != nil {
		f.What = err.Error()
		return f.at(Fail, "the daemon cannot start without it", "give its user access")
	}
	if !st.IsDir() {
		f.What += " is no directory"
		return f.at(Fail, "the daemon cannot start without it", "name a directory by --state-dir")
	}
	if owner := int(st.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() {
		f.What += fmt.Sprintf(" belongs to user %d, you are %d", owner, os.Geteuid())
		return f.at(Warn, "only its owner can run its daemon, and what you see may be incomplete", "run this as the daemon's user")
	}
	if m := st.Mode().Perm(); m&0o077 != 0 {
		f.What += fmt.Sprintf(" has mode %04o", m)
		return f.at(Fail, "others can reach the database and the socket; the daemon refuses such a directory", "chmod 0700 "+o.StateDir)
	}
	var sf unix.Statfs_t
	if err := unix.Statfs(o.StateDir, &sf); err != nil {
		f.What = fmt.Sprintf("its file system does not answer: %v", err)
		return f.at(Fail, "nothing can be stored", "look at the mount")
	}
	free := int64(sf.Bavail) * sf.Frsize
	f.What += fmt.Sprintf(", %d MiB free", free>>20)
	if o.ConfigErr == nil && free < o.Config.MinFree {
		return f.at(Fail, fmt.Sprintf("new sessions are refused below min_free (%s)", config.FormatSize(o.Config.MinFree)), "free some space")
	}
	if sf.Files > 0 && sf.Ffree == 0 {
		f.What += ", no inode left"
		return f.at(Fail, "no file can be made", "remove files")
	}
	if kind := remote[int64(sf.Type)]; kind != "" {
		f.What += ", on " + kind
		return f.at(Warn, "SQLite's locks and shared memory are not reliable there", "put the state directory on a local disk")
	}
	return f
}

func (o *Options) database(ctx context.Context) Finding {
	const name = "database"
	path := filepath.Join(o.StateDir, "ptyd.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return well(name, "there is none yet")
	}
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	began := time.Now()
	switch err := store.QuickCheck(ctx, path); {
	case err == nil:
		return well(name, "no damage was found, in %v", time.Since(began).Round(time.Millisecond))
	case ctx.Err() != nil:
		return well(name, "it could not be looked through within %v", checkTime).at(Warn, "damage would not be seen", "stop the daemon and look with: sqlite3 "+path+" 'PRAGMA quick_check'")
	case errors.Is(err, store.ErrNotClosed):
		return well(name, "%v", err).at(Warn, "damage would not be seen", "start the daemon, and run this again")
	case errors.Is(err, fs.ErrPermission) || unix.Access(path, unix.R_OK) != nil:
		return well(name, "it cannot be read: %v", err).at(Warn, "damage would not be seen", "run this as the daemon's user")
	default:
		return well(name, "%v", err).at(Fail, "users, tokens and the history of sessions are in it", "stop the daemon, keep a copy of the file, and restore a backup or rebuild it with: sqlite3 "+path+" .recover")
	}
}

// certSoon is how long before its end a certificate is worth a word.
const certSoon = 14 * 24 * time.Hour

func (o *Options) exposure() Finding {
	const name = "network"
	c := &o.Config
	f := well(name, "by its configuration the daemon listens on %s", c.Listen)
	switch {
	case o.ConfigErr != nil:
		return well(name, "not looked at: the configuration is refused").at(Warn, "who can reach the daemon is not known", "correct the configuration")
	case config.IsLoopback(c.Listen):
		f.What += ", for this machine alone"
		return f
	case !c.TLS():
		f.What += " without TLS"
		return f.at(Warn, "passwords, tokens and terminals are readable on the network, unless something else protects it", "set tls_cert and tls_key, or listen on 127.0.0.1 behind a proxy with TLS")
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		f.What += fmt.Sprintf("; the certificate cannot be used: %v", err)
		return f.at(Fail, "the daemon does not start with it", "correct tls_cert and tls_key")
	}
	end := pair.Leaf.NotAfter
	f.What += fmt.Sprintf(" with TLS, until %s", end.Format(time.DateOnly))
	switch left := time.Until(end); {
	case left <= 0:
		return f.at(Fail, "browsers and commands refuse an expired certificate", "renew it; the daemon reads it again at SIGHUP")
	case left < certSoon:
		return f.at(Warn, "it expires soon", "renew it; the daemon reads it again at SIGHUP")
	}
	return f
}

// environ is the environment that a process was started with (proc_pid_environ(5)).
func environ(pid int) (map[string]string, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil, false
	}
	env := map[string]string{}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if k, v, ok := strings.Cut(string(kv), "="); ok {
			env[k] = v
		}
	}
	return env, true
}

// openFiles is the limit of descriptors of a process that it could raise itself
// to (proc_pid_limits(5)); of this one where pid is 0.
func openFiles(pid int) (uint64, bool) {
	who := "self"
	if pid > 0 {
		who = strconv.Itoa(pid)
	}
	b, err := os.ReadFile("/proc/" + who + "/limits")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			f := strings.Fields(rest)
			if len(f) < 2 {
				return 0, false
			}
			if f[1] == "unlimited" {
				return 1 << 62, true
			}
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

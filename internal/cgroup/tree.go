package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The controllers that limits need.
const (
	Memory = "memory"
	Pids   = "pids"
)

// mainName is the cgroup of the daemon itself where it had to leave its own, so
// that the sessions' cgroups can have controllers.
const mainName = "main"

// Options configures a Tree.
type Options struct {
	StateDir string // names the subtree; must exist
	// Own are the daemon's processes. Where they are alone in their cgroup they
	// are moved into one of their own below it, because a cgroup that has
	// processes cannot hand controllers on. Empty: nobody is moved.
	Own []int
	// Supervised says that a service manager started the daemon: it puts new
	// processes of the daemon where it always did, so nobody is moved.
	Supervised bool
}

// Tree is the part of the cgroup tree that belongs to one daemon.
type Tree struct {
	dir     string            // in the file system
	path    string            // as /proc/PID/cgroup shows it
	missing map[string]string // a controller that sessions cannot have, and why
}

// Open makes the daemon's subtree, or takes the one that is there. The error
// says for people why there is none.
func Open(o Options) (*Tree, error) {
	mount, own, err := here()
	if err != nil {
		return nil, err
	}
	name, err := nameFor(o.StateDir)
	if err != nil {
		return nil, err
	}
	return open(mount, own, name, o)
}

func open(mount, own, name string, o Options) (*Tree, error) {
	base := own
	switch parent := filepath.Dir(own); {
	case strings.HasSuffix(own, "/"+name+"/"+mainName): // an earlier worker moved us there
		base = filepath.Dir(parent)
	case own != "/" && delegated(filepath.Join(mount, parent)) && !delegated(filepath.Join(mount, own)):
		base = parent // DelegateSubgroup=: the manager keeps its own processes out of the way
	}
	t := &Tree{path: filepath.Join(base, name), missing: map[string]string{}}
	t.dir = filepath.Join(mount, t.path)
	if err := os.Mkdir(t.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		switch {
		case errors.Is(err, unix.EROFS):
			return nil, fmt.Errorf("the cgroup file system at %s is read-only", mount)
		case errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("the cgroup %s is not delegated to the daemon's user", base)
		}
		return nil, fmt.Errorf("make a cgroup below %s: %w", base, err)
	}
	if err := unix.Access(filepath.Join(t.dir, "cgroup.procs"), unix.W_OK); err != nil {
		return nil, fmt.Errorf("the cgroup %s belongs to somebody else", t.path)
	}
	for _, c := range []string{Memory, Pids} {
		if why := handOn(filepath.Join(mount, base), base, c); why == nil {
			continue
		} else if !errors.Is(why, unix.EBUSY) {
			t.missing[c] = why.Error()
		} else if moved := t.moveOwn(filepath.Join(mount, base), o); moved != nil {
			t.missing[c] = fmt.Sprintf("the cgroup %s has processes of its own, so it cannot hand on controllers: %v", base, moved)
		} else if why := handOn(filepath.Join(mount, base), base, c); why != nil {
			t.missing[c] = why.Error()
		}
	}
	for _, c := range []string{Memory, Pids} {
		if t.missing[c] == "" {
			if why := handOn(t.dir, t.path, c); why != nil {
				t.missing[c] = why.Error()
			}
		}
	}
	return t, nil
}

// handOn gives the children of a cgroup a controller. Enabling costs those that
// do not use it next to nothing, so it is done whether limits are asked for or
// not: the use of sessions can then be shown.
func handOn(dir, path, controller string) error {
	if has(dir, "cgroup.subtree_control", controller) {
		return nil
	}
	if !has(dir, "cgroup.controllers", controller) {
		return fmt.Errorf("cgroup.controllers of %s does not hold %q", path, controller)
	}
	if err := write(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller); err != nil {
		return fmt.Errorf("hand the %s controller on in %s: %w", controller, path, err)
	}
	return nil
}

// has reports whether a file of words holds one.
func has(dir, file, word string) bool {
	b, err := os.ReadFile(filepath.Join(dir, file))
	return err == nil && slices.Contains(strings.Fields(string(b)), word)
}

// moveOwn moves the daemon's processes out of base; the error says why not.
func (t *Tree) moveOwn(base string, o Options) error {
	if o.Supervised {
		return errors.New("under systemd that needs version 254 or later (DelegateSubgroup=)")
	}
	pids, err := procsOf(base)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if !slices.Contains(o.Own, pid) {
			return errors.New("others than the daemon run in it; start the daemon in a cgroup of its own")
		}
	}
	main := filepath.Join(t.dir, mainName)
	if err := os.Mkdir(main, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, pid := range pids {
		if err := write(filepath.Join(main, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("move the daemon: %w", err)
		}
	}
	return nil
}

// Path is the subtree as /proc/PID/cgroup shows it.
func (t *Tree) Path() string { return t.path }

// Missing says why groups cannot have a controller; "" when they have it.
func (t *Tree) Missing(controller string) string { return t.missing[controller] }

// Limits bound a group; zero values are no limit.
type Limits struct {
	Memory int64 // bytes, swap included
	Pids   int   // processes and threads
}

// Create makes a group with limits. One that is there is an error.
func (t *Tree) Create(name string, l Limits) (*Group, error) {
	g := &Group{dir: filepath.Join(t.dir, name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a cgroup: %w", err)
	}
	var err error
	if l.Memory > 0 {
		err = write(filepath.Join(g.dir, "memory.max"), strconv.FormatInt(l.Memory, 10))
		// Where there is no swap there is no such file.
		if e := write(filepath.Join(g.dir, "memory.swap.max"), "0"); err == nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	if l.Pids > 0 && err == nil {
		err = write(filepath.Join(g.dir, "pids.max"), strconv.Itoa(l.Pids))
	}
	if err != nil {
		_ = g.Remove()
		return nil, fmt.Errorf("limit a cgroup: %w", err)
	}
	return g, nil
}

// Group is the group of a name, nil where there is none.
func (t *Tree) Group(name string) *Group {
	g := &Group{dir: filepath.Join(t.dir, name)}
	if _, err := os.Stat(g.dir); err != nil {
		return nil
	}
	return g
}

// Names are the names of all groups.
func (t *Tree) Names() ([]string, error) {
	all, err := os.ReadDir(t.dir)
	if err != nil {
		return nil, fmt.Errorf("list cgroups: %w", err)
	}
	var names []string
	for _, e := range all {
		if e.IsDir() && e.Name() != mainName {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Close removes the subtree where nothing is in it any more.
func (t *Tree) Close() error {
	err := os.Remove(t.dir)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil // still of use
	}
	return err
}

// write writes a control file in one call, as the kernel wants it.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

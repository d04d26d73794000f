package service

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/ptyd/ptyd/internal/problem"
)

// plainPath is what stands in a unit without quotes.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9/._+-]+$`)

// check looks at what the unit is made from.
func (s *Service) check(o *Options) error {
	if s.User && (o.Relaxed || len(o.Workspaces) > 0) {
		return problem.Field("user", "--relaxed and --workspace are for the machine's service").
			WithHint("a service of your own has your rights and restricts nothing; leave them out")
	}
	if !plainPath.MatchString(o.Binary) {
		return problem.New(problem.InvalidArgument, "the program's path %q has characters that a unit can't hold plainly", o.Binary).
			WithHint("put the program into /usr/local/bin (make install) and call it there")
	}
	if !s.User && !o.Force {
		if err := safe(o.Binary); err != nil {
			return err
		}
	}
	for i, dir := range o.Workspaces {
		clean := filepath.Clean(dir)
		switch {
		case !filepath.IsAbs(dir):
			return problem.Field("workspace", "%q is not an absolute path", dir)
		case strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }):
			return problem.Field("workspace", "%q has characters that a unit can't hold", dir)
		case clean == "/":
			return problem.Field("workspace", "/ would make the whole system writable").WithHint("name the directories where people work, or use --relaxed")
		}
		if st, err := os.Stat(filepath.Join(s.Root, clean)); err != nil || !st.IsDir() {
			return problem.Field("workspace", "%s is no directory of this machine", clean).WithHint("make it first")
		}
		o.Workspaces[i] = clean
	}
	return nil
}

// safe tells whether only root can change what root will run.
func safe(binary string) error {
	for path := binary; ; path = filepath.Dir(path) {
		st, err := os.Stat(path)
		if err != nil {
			return problem.New(problem.InvalidArgument, "the program can't be looked at: %v", err)
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok || sys.Uid != 0 || st.Mode().Perm()&0o002 != 0 || st.Mode().Perm()&0o020 != 0 && sys.Gid != 0 {
			return problem.New(problem.Conflict, "%s can be changed by others than root, and root would run %s", path, binary).
				WithHint("install the program first (make install) and call /usr/local/bin/ptyd; --force takes it as it is")
		}
		if path == "/" {
			return nil
		}
	}
}

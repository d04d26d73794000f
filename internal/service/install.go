package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ptyd/ptyd/internal/problem"
)

// Install makes the files as planned, and the service run with them. One that
// runs already is restarted where something changed, which keeps its sessions.
// It returns when the service is ready.
func (s *Service) Install(ctx context.Context, files []File) (changed bool, err error) {
	for _, f := range files {
		switch f.Action() {
		case "write", "replace":
			err = write(f.Path, f.Text)
		case "remove":
			err = os.Remove(f.Path)
		default:
			continue
		}
		if err != nil {
			return changed, problem.New(problem.Internal, "a file of the service can't be written: %v", err)
		}
		changed = true
	}
	before, err := s.State(ctx)
	if err != nil {
		return changed, err
	}
	return changed, s.start(ctx, before, changed)
}

// start has systemd take the files and run the service.
func (s *Service) start(ctx context.Context, before State, changed bool) error {
	for _, args := range steps(before, changed) {
		if _, err := s.ctl.run(ctx, args...); err != nil {
			hint := "its log: journalctl -u ptyd -n 30"
			if s.User {
				hint = "its log: journalctl --user -u ptyd -n 30"
			}
			return problem.New(problem.Unavailable, "the service is installed, and does not run: %v", err).WithHint("%s", hint)
		}
	}
	return nil
}

// steps are systemctl's arguments.
func steps(before State, changed bool) (list [][]string) {
	if changed || before.NeedReload {
		list = append(list, []string{"daemon-reload"})
	}
	if before.Enabled != "enabled" {
		list = append(list, []string{"enable", Unit})
	}
	if before.Running() && changed {
		return append(list, []string{"restart", Unit}) // sessions stay
	}
	return append(list, []string{"start", Unit})
}

// write replaces a file as a whole.
func write(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".ptyd-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Installed are the files that an installation has written and that are there.
func (s *Service) Installed() ([]string, error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	var there []string
	for _, name := range []string{Unit, tmpUnit} {
		if s.User && name == tmpUnit {
			continue
		}
		if _, here, err := read(filepath.Join(dir, name)); err != nil {
			return nil, err
		} else if here {
			there = append(there, filepath.Join(dir, name))
		}
	}
	for _, name := range []string{dropNew, dropRelaxed, dropWorkspaces} {
		path := filepath.Join(dir, Unit+".d", name)
		if text, here, err := read(path); err != nil {
			return nil, err
		} else if here && strings.Contains(text, mark) {
			there = append(there, path)
		}
	}
	return there, nil
}

// Uninstall stops and disables the service and removes its files. It returns
// those it removed.
func (s *Service) Uninstall(ctx context.Context, st State) ([]string, error) {
	files, err := s.Installed()
	if err != nil {
		return nil, err
	}
	if st.Loaded() {
		if _, err := s.ctl.run(ctx, "disable", "--now", Unit); err != nil {
			return nil, problem.New(problem.Unavailable, "the service can't be stopped: %v", err)
		}
	}
	for _, path := range files {
		if err := os.Remove(path); err != nil {
			return nil, problem.New(problem.Internal, "a file of the service can't be removed: %v", err)
		}
	}
	if dir, err := s.dir(); err == nil {
		_ = os.Remove(filepath.Join(dir, Unit+".d")) // only where it is empty now
	}
	if _, err := s.ctl.run(ctx, "daemon-reload"); err != nil {
		return files, problem.New(problem.Unavailable, "the files are removed, and systemd does not notice: %v", err).WithHint("systemctl daemon-reload")
	}
	_, _ = s.ctl.run(ctx, "reset-failed", Unit) // one that never failed is an error
	return files, nil
}

// Purge removes a state directory: one that looks like one.
func Purge(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return problem.New(problem.Internal, "the state can't be removed: %v", err)
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "ptyd.db" || e.Name() == "lock" }) {
		return problem.New(problem.Conflict, "%s does not look like ptyd's state and is left", dir).WithHint("remove it by hand if it is")
	}
	if err := os.RemoveAll(dir); err != nil {
		return problem.New(problem.Internal, "the state can't be removed: %v", err)
	}
	return nil
}

package service

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ptyd/ptyd/internal/problem"
	units "github.com/ptyd/ptyd/systemd"
)

// Unit is the service's name.
const Unit = "ptyd.service"

// tmpUnit holds the system service's /tmp.
const tmpUnit = "ptyd-tmp.service"

// Service is ptyd as a service of one systemd.
type Service struct {
	User bool   // of the caller's own systemd, not of the machine's
	Root string // where the machine's files are; "" is /
	ctl  control
}

// New returns the machine's service, or the caller's own.
func New(user bool) *Service { return &Service{User: user, ctl: systemctl{user: user}} }

// Options say how the service is to be.
type Options struct {
	Binary     string   // the program, an absolute path
	Relaxed    bool     // without the hardening that sessions inherit
	Workspaces []string // directories that sessions may write besides those of the unit
	Force      bool     // over what is there and differs
}

// File is one that belongs to the service.
type File struct {
	Path string
	Text string // what it shall hold; "": it shall not be there
	Now  string // what it holds
	Here bool   // it is there
	Own  bool   // what is there is somebody else's work and must not be lost
}

// Action is what has to be done with the file: "write", "replace", "remove" or
// "keep"; "" where there is nothing and nothing shall be.
func (f File) Action() string {
	switch {
	case f.Text == "" && !f.Here:
		return ""
	case f.Text == "":
		return "remove"
	case !f.Here:
		return "write"
	case f.Now == f.Text:
		return "keep"
	}
	return "replace"
}

// dir is where the administrator's units are, and a person's own.
func (s *Service) dir() (string, error) {
	if !s.User {
		return filepath.Join(s.Root, "/etc/systemd/system"), nil
	}
	conf, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration directory: %w", err)
	}
	return filepath.Join(conf, "systemd", "user"), nil
}

// packaged is where a package or `make install` puts units, the first wins.
func (s *Service) packaged() []string {
	scope := "system"
	if s.User {
		scope = "user"
	}
	return []string{
		filepath.Join(s.Root, "/usr/local/lib/systemd", scope), filepath.Join(s.Root, "/usr/lib/systemd", scope), filepath.Join(s.Root, "/lib/systemd", scope),
	}
}

// The names of the drop-ins. What is loaded later wins: a person's own
// override.conf comes after all of them.
const (
	dropNew        = "10-ptyd-version.conf"
	dropRelaxed    = "20-ptyd-relaxed.conf"
	dropWorkspaces = "30-ptyd-workspaces.conf"
)

// mark is what the drop-ins' first lines hold: whoever writes one of these names
// himself is not overwritten.
const mark = "Written by `ptyd service install"

// Plan tells the files of the service for a systemd of that version.
func (s *Service) Plan(o Options, version int) ([]File, error) {
	if err := s.check(&o); err != nil {
		return nil, err
	}
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	drop := filepath.Join(dir, Unit+".d")
	unit, tmp, fresh, relaxed := units.System, units.SystemTmp, "", ""
	if s.User {
		unit, tmp = units.User, ""
	}
	unit = strings.ReplaceAll(unit, units.Program, o.Binary)
	if version >= units.NewSince {
		fresh = units.New
	}
	if o.Relaxed {
		relaxed = units.Relaxed
	}
	files := []File{{Path: filepath.Join(dir, Unit), Text: s.unlessPackaged(Unit, unit)}}
	if !s.User {
		files = append(files, File{Path: filepath.Join(dir, tmpUnit), Text: s.unlessPackaged(tmpUnit, tmp)})
	}
	files = append(files, File{Path: filepath.Join(drop, dropNew), Text: fresh})
	if !s.User {
		files = append(files,
			File{Path: filepath.Join(drop, dropRelaxed), Text: relaxed},
			File{Path: filepath.Join(drop, dropWorkspaces), Text: workspacesText(o.Workspaces)})
	}
	for i := range files {
		f := &files[i]
		if f.Now, f.Here, err = read(f.Path); err != nil {
			return nil, err
		}
		isDrop := filepath.Dir(f.Path) == drop
		if f.Here && isDrop && !strings.Contains(f.Now, mark) {
			if f.Own = true; f.Text == "" {
				f.Here = false // nobody's business
			}
		}
		if f.Here && !isDrop && f.Now != f.Text && !ours(f.Now) {
			f.Own = true
		}
	}
	return files, nil
}

// Differs tells of the first file whose replacement would lose somebody's work.
func Differs(files []File) error {
	for _, f := range files {
		if f.Own && f.Here && f.Now != f.Text {
			return problem.New(problem.Conflict, "%s is there and differs from what would be written", f.Path).
				WithHint("--dry-run shows what would be written, --force replaces the file; settings of your own belong into `systemctl edit ptyd`")
		}
	}
	return nil
}

// ours tells whether a unit is as this program writes it, but for the program's
// path: it can be replaced without a loss.
func ours(text string) bool {
	for _, unit := range []string{units.System, units.User, units.SystemTmp} {
		if sameButProgram(text, unit) {
			return true
		}
	}
	return false
}

func sameButProgram(a, b string) bool {
	al, bl := strings.Split(a, "\n"), strings.Split(b, "\n")
	if len(al) != len(bl) {
		return false
	}
	for i := range al {
		if al[i] != bl[i] && !(strings.HasPrefix(al[i], "ExecStart=") && strings.HasSuffix(al[i], "/ptyd serve") && strings.HasPrefix(bl[i], "ExecStart=")) {
			return false
		}
	}
	return true
}

// unlessPackaged is text, or "" where a package brings the very same: a copy
// would hide the package's next one.
func (s *Service) unlessPackaged(name, text string) string {
	for _, dir := range s.packaged() {
		if have, here, err := read(filepath.Join(dir, name)); err == nil && here {
			if have == text {
				return ""
			}
			return text
		}
	}
	return text
}

// Workspaces are the directories that an earlier installation named.
func (s *Service) Workspaces() []string {
	dir, err := s.dir()
	if err != nil {
		return nil
	}
	text, _, _ := read(filepath.Join(dir, Unit+".d", dropWorkspaces))
	var dirs []string
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), `ReadWritePaths="-`); ok && strings.Contains(text, mark) {
			dirs = append(dirs, strings.ReplaceAll(strings.TrimSuffix(v, `"`), "%%", "%"))
		}
	}
	return dirs
}

func workspacesText(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Where sessions may write besides /home, /root and /srv. " + mark + " --workspace`.\n\n[Service]\n")
	for _, d := range dirs {
		// The dash: a directory that is gone is no reason not to start.
		fmt.Fprintf(&b, "ReadWritePaths=\"-%s\"\n", strings.ReplaceAll(d, "%", "%%"))
	}
	return b.String()
}

// read returns a file's text.
func read(path string) (text string, here bool, err error) {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, problem.New(problem.Internal, "a file of the service can't be read: %v", err)
	}
	return string(b), true, nil
}

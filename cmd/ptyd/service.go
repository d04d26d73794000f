package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/service"
)

// systemState is where the machine's service keeps its state.
const systemState = "/var/lib/ptyd"

func newService(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Make ptyd a service of systemd, and look after it",
		Long: `Make ptyd a service of systemd: of the machine, or with --user of your own. Under
systemd sessions survive also the keeper's death and "systemctl restart".`,
		Example: `  sudo ptyd service install
  ptyd service install --user
  ptyd service status
  sudo ptyd service uninstall`,
	}
	cmd.AddCommand(newServiceInstall(g), newServiceUninstall(g), newServiceStatus(g))
	return cmd
}

func newServiceInstall(g *globals) *cobra.Command {
	var (
		o      service.Options
		own    bool
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Write the units, start the service and wait until it is ready",
		Long: `Write the units that suit this machine's systemd, enable and start the service,
and wait until it is ready. Done again, it brings the units to this program's
version; a service that runs is restarted where something changed, and keeps its
sessions.

The machine's service (as root) is hardened, and sessions inherit that: the system
is read-only for them but for /home, /root and /srv, sudo and containers do not
work. --workspace names more directories that they may write; on a terminal you
are asked. --relaxed leaves out what sessions inherit. A service of your own has
your rights and restricts nothing.

Settings go into /etc/ptyd/config.toml (a service of your own:
~/.config/ptyd/config.toml), changes of the unit into "systemctl edit ptyd".`,
		Example: `  sudo ptyd service install
  sudo ptyd service install --workspace /data/projects --workspace /scratch
  sudo ptyd service install --relaxed
  ptyd service install --user
  ptyd service install --dry-run`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.BoolVar(&own, "user", false, "a service of your own, not of the machine")
	f.BoolVar(&o.Relaxed, "relaxed", false, "without the hardening that sessions inherit")
	f.StringArrayVar(&o.Workspaces, "workspace", nil, "`DIR`ectory that sessions may write besides /home, /root and /srv; may be repeated, empty takes back earlier ones")
	f.BoolVar(&o.Force, "force", false, "replace units that differ from this program's, and take a program that others than root can change")
	f.BoolVar(&dryRun, "dry-run", false, "show what would be done")
	_ = cmd.MarkFlagDirname("workspace")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s := service.New(own)
		if err := s.Ready(); err != nil && !dryRun {
			return err
		}
		var err error
		if o.Binary, err = program(); err != nil {
			return err
		}
		if o.Workspaces, err = workspaces(cmd, s, o, dryRun); err != nil {
			return err
		}
		version, err := s.Version(cmd.Context())
		if err != nil {
			return err
		}
		files, err := s.Plan(o, version)
		if err != nil {
			return err
		}
		if dryRun {
			return showPlan(cmd, g, s, version, files)
		}
		if err := service.Differs(files); err != nil && !o.Force {
			return err
		}
		changed, err := s.Install(cmd.Context(), files)
		if err != nil {
			return err
		}
		return showInstalled(cmd, g, s, version, files, changed)
	}
	return cmd
}

// program is the path of this program, as it stands in a unit.
func program() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", problem.New(problem.Internal, "the own program is not to be found: %v", err)
	}
	return filepath.EvalSymlinks(path)
}

// workspaces are the directories of the flags; else those of an earlier
// installation; else what a person at the terminal says.
func workspaces(cmd *cobra.Command, s *service.Service, o service.Options, dryRun bool) ([]string, error) {
	if cmd.Flags().Changed("workspace") {
		var dirs []string
		for _, d := range o.Workspaces {
			if d != "" {
				dirs = append(dirs, d)
			}
		}
		return dirs, nil
	}
	if s.User || o.Relaxed {
		return nil, nil
	}
	if before := s.Workspaces(); len(before) > 0 {
		note(cmd, "sessions may write %s, as before; --workspace changes that", strings.Join(before, " "))
		return before, nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if dryRun || !ok || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), "Sessions may write /home, /root and /srv. Where else do people work?\nDirectories, separated by blanks (none: just Enter): ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil, problem.New(problem.InvalidArgument, "no answer: %v", err)
	}
	return strings.Fields(line), nil
}

// plannedFile is a file as --json shows it.
type plannedFile struct {
	Path   string `json:"path"`
	Action string `json:"action"`
	Text   string `json:"text,omitempty"`
	Own    bool   `json:"differs,omitempty"`
}

// scope says whose service it is.
func scope(s *service.Service) string {
	if s.User {
		return "user"
	}
	return "system"
}

// ctl is how a person calls systemctl for the service.
func ctl(s *service.Service, verb string) string {
	if s.User {
		return "systemctl --user " + verb + " ptyd"
	}
	return "systemctl " + verb + " ptyd"
}

func showPlan(cmd *cobra.Command, g *globals, s *service.Service, version int, files []service.File) error {
	var list []plannedFile
	for _, f := range files {
		if a := f.Action(); a != "" {
			list = append(list, plannedFile{f.Path, a, f.Text, f.Own && f.Now != f.Text})
		}
	}
	result := struct {
		Scope   string        `json:"scope"`
		Systemd int           `json:"systemd"`
		Files   []plannedFile `json:"files"`
	}{scope(s), version, list}
	return show(cmd, g, result, func(w io.Writer) {
		fmt.Fprintf(w, "# systemd %d; nothing was changed.\n", version)
		for _, f := range list {
			differs := ""
			if f.Own {
				differs = " (what is there differs: only with --force)"
			}
			fmt.Fprintf(w, "\n##### %s %s%s\n%s", f.Action, f.Path, differs, f.Text)
		}
		fmt.Fprintf(w, "\n##### then: %s, %s, %s\n", strings.TrimSuffix(ctl(s, "daemon-reload"), " ptyd"), ctl(s, "enable"), ctl(s, "start"))
	})
}

// stateDirOf is the state directory of the service.
func stateDirOf(s *service.Service) string {
	if s.User {
		return config.DefaultStateDir()
	}
	return systemState
}

// ask returns the status of the service's daemon.
func ask(ctx context.Context, dir string) (st daemonStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := client.New(client.Options{StateDir: dir, Build: config.ReadBuild().Version})
	if err != nil {
		return st, err
	}
	defer c.Close()
	raw, err := c.Status(ctx)
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(raw, &st)
}

func showInstalled(cmd *cobra.Command, g *globals, s *service.Service, version int, files []service.File, changed bool) error {
	dir := stateDirOf(s)
	result := struct {
		Scope   string        `json:"scope"`
		Systemd int           `json:"systemd"`
		Changed bool          `json:"changed"`
		Files   []plannedFile `json:"files"`
		Listen  []string      `json:"listen"`
		State   string        `json:"state_dir"`
		Login   string        `json:"login"`
		Notes   []string      `json:"notes,omitempty"`
	}{Scope: scope(s), Systemd: version, Changed: changed, State: dir, Login: "ptyd login-link"}
	if dir != ownStateDir() {
		result.Login = "ptyd --state-dir " + dir + " login-link"
	}
	for _, f := range files {
		if a := f.Action(); a != "" {
			result.Files = append(result.Files, plannedFile{Path: f.Path, Action: a})
		}
	}
	if st, err := ask(cmd.Context(), dir); err == nil {
		result.Listen = st.Listen
	} else {
		result.Notes = append(result.Notes, fmt.Sprintf("the service runs, and does not answer in %s: %v", dir, err))
	}
	if s.User {
		if u, err := user.Current(); err == nil {
			if _, err := os.Stat("/var/lib/systemd/linger/" + u.Username); err != nil {
				result.Notes = append(result.Notes, "sessions end with your last logout; to keep them: loginctl enable-linger")
			}
		}
	}
	return show(cmd, g, result, func(w io.Writer) {
		for _, f := range result.Files {
			fmt.Fprintf(w, "%-8s %s\n", f.Action, f.Path)
		}
		rows := [][]string{{"ptyd runs as a service", "systemd " + fmt.Sprint(version)}}
		if len(result.Listen) > 0 {
			rows = append(rows, []string{"it listens on", strings.Join(result.Listen, " ")})
		}
		rows = append(rows,
			[]string{"log a browser in", result.Login},
			[]string{"how it is", "ptyd service status" + userFlag(s)},
			[]string{"its log", logCommand(s)},
			[]string{"settings", configFileOf(s) + ", then: " + ctl(s, "reload")},
			[]string{"restart (sessions stay)", ctl(s, "restart")},
			[]string{"stop (sessions end)", ctl(s, "stop")})
		for _, n := range result.Notes {
			rows = append(rows, []string{"note", n})
		}
		table(w, 0, rows)
	})
}

// ownStateDir is where the caller's commands look.
func ownStateDir() string {
	if d := os.Getenv("PTYD_STATE_DIR"); d != "" {
		return d
	}
	return config.DefaultStateDir()
}

func configFileOf(s *service.Service) string {
	if s.User {
		return config.DefaultFile()
	}
	return "/etc/ptyd/config.toml"
}

func userFlag(s *service.Service) string {
	if s.User {
		return " --user"
	}
	return ""
}

func logCommand(s *service.Service) string {
	if s.User {
		return "journalctl --user -u ptyd"
	}
	return "journalctl -u ptyd"
}

package service

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/ptyd/ptyd/internal/problem"
)

// control is the service manager.
type control interface {
	run(ctx context.Context, args ...string) (out string, err error)
}

// systemctl is the real one.
type systemctl struct{ user bool }

func (s systemctl) args(args ...string) []string {
	if s.user {
		return append([]string{"--user"}, args...)
	}
	return args
}

func (s systemctl) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "systemctl", s.args(args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil && errOut.Len() > 0 {
		err = fmt.Errorf("systemctl %s: %s", strings.Join(cmd.Args[1:], " "), strings.TrimSpace(errOut.String()))
	} else if err != nil {
		err = fmt.Errorf("systemctl %s: %w", strings.Join(cmd.Args[1:], " "), err)
	}
	return out.String(), err
}

// Ready tells what keeps the caller from managing the service.
func (s *Service) Ready() error {
	// sd_booted(3)
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return problem.New(problem.Unsupported, "no systemd runs this machine").
			WithHint("run `ptyd serve` under what starts services here; in a container it may be process 1 (docs/service.md)")
	}
	if !s.User {
		if os.Geteuid() != 0 {
			return problem.New(problem.Forbidden, "the machine's service needs root").
				WithHint("use sudo, or --user for a service of your own")
		}
		return nil
	}
	run := os.Getenv("XDG_RUNTIME_DIR")
	if run == "" {
		return problem.New(problem.Unsupported, "no systemd of your own: XDG_RUNTIME_DIR is not set").
			WithHint("log in as this user (su and sudo do not start one); `loginctl enable-linger` starts one without a login")
	}
	if _, err := os.Stat(run + "/systemd/private"); err != nil {
		return problem.New(problem.Unsupported, "no systemd of your own answers in %s", run).
			WithHint("install libpam-systemd and log in again")
	}
	return nil
}

// Version is systemd's.
func (s *Service) Version(ctx context.Context) (int, error) {
	out, err := s.ctl.run(ctx, "--version")
	if err != nil {
		return 0, problem.New(problem.Unsupported, "systemd's version is not to be had: %v", err)
	}
	f := strings.Fields(out) // systemd 252 (252.39-1~deb12u2)
	if len(f) < 2 || f[0] != "systemd" {
		return 0, problem.New(problem.Unsupported, "systemctl says of itself %.60q", out)
	}
	digits, _, _ := strings.Cut(f[1], "~")
	digits, _, _ = strings.Cut(digits, ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, problem.New(problem.Unsupported, "systemctl says of itself %.60q", out)
	}
	return n, nil
}

// State is what the manager says of the service.
type State struct {
	Load, Active, Sub, Enabled string
	Path                       string
	DropIns                    []string
	MainPID                    int
	Stored                     int // descriptors that it keeps
	Restarts                   int
	NeedReload                 bool
}

// Loaded tells whether the unit is there.
func (st State) Loaded() bool { return st.Load == "loaded" }

// Running tells whether it runs, starts or stops.
func (st State) Running() bool {
	return st.Active != "inactive" && st.Active != "failed" && st.Active != ""
}

// State asks the manager.
func (s *Service) State(ctx context.Context) (State, error) {
	out, err := s.ctl.run(ctx, "show", "--no-pager", "--property",
		"LoadState,ActiveState,SubState,UnitFileState,FragmentPath,DropInPaths,MainPID,NFileDescriptorStore,NRestarts,NeedDaemonReload", Unit)
	if err != nil {
		return State{}, problem.New(problem.Unavailable, "systemd does not answer: %v", err)
	}
	var st State
	for line := range strings.Lines(out) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "LoadState":
			st.Load = v
		case "ActiveState":
			st.Active = v
		case "SubState":
			st.Sub = v
		case "UnitFileState":
			st.Enabled = v
		case "FragmentPath":
			st.Path = v
		case "DropInPaths":
			st.DropIns = strings.Fields(v)
		case "MainPID":
			st.MainPID, _ = strconv.Atoi(v)
		case "NFileDescriptorStore":
			st.Stored, _ = strconv.Atoi(v)
		case "NRestarts":
			st.Restarts, _ = strconv.Atoi(v)
		case "NeedDaemonReload":
			st.NeedReload = v == "yes"
		}
	}
	return st, nil
}

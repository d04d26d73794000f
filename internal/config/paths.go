package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// DefaultStateDir is where state lives when nobody says otherwise: the
// directory systemd made for the service, /var/lib/ptyd for a system service
// without one, else ptyd in the user's XDG state directory.
func DefaultStateDir() string {
	if d := os.Getenv("STATE_DIRECTORY"); d != "" {
		// systemd joins several directories with colons; the first is the main one.
		first, _, _ := strings.Cut(d, ":")
		return first
	}
	if isSystemService() {
		return "/var/lib/ptyd"
	}
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "ptyd")
	}
	if home, err := os.UserHomeDir(); err == nil && home != "" {
		return filepath.Join(home, ".local", "state", "ptyd")
	}
	return "/var/lib/ptyd"
}

// DefaultFile is the configuration file that is read when it exists and no
// other is named.
func DefaultFile() string {
	if isSystemService() {
		return "/etc/ptyd/config.toml"
	}
	if d, err := os.UserConfigDir(); err == nil {
		return filepath.Join(d, "ptyd", "config.toml")
	}
	return "/etc/ptyd/config.toml"
}

// isSystemService reports whether the system's systemd started this very
// process, or the keeper whose worker it is. INVOCATION_ID alone does not say
// so: every program that a person starts from a desktop terminal inherits one.
// SYSTEMD_EXEC_PID names the process that systemd started, PTYD_KEEPER the
// keeper, MANAGERPID is set by a user's own manager.
func isSystemService() bool {
	started := os.Getenv("SYSTEMD_EXEC_PID")
	worker := started == os.Getenv("PTYD_KEEPER") && started == strconv.Itoa(os.Getppid())
	return os.Getenv("INVOCATION_ID") != "" && os.Getenv("MANAGERPID") == "" &&
		(worker || started == strconv.Itoa(os.Getpid()))
}

package ptymgr

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"crypto/rand"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/lazy"
	"github.com/ptyd/ptyd/internal/problem"
	"golang.org/x/sys/unix"
)

// The limits of a request, in items and bytes.
const (
	MaxName     = 128
	MaxArgs     = 1024
	MaxArgBytes = 120 << 10 // the kernel takes 128 KiB in one argument
	MaxEnv      = 512
	MaxEnvBytes = 120 << 10
	MaxLabels   = 64
	MaxLabelKey = 63
	MaxLabel    = 256
	MaxKey      = 255     // an idempotency key
	MinMemory   = 1 << 20 // a session's limit; less does not even start a shell
	MaxPids     = 1 << 22 // the kernel has no more
)

var (
	nameRE  = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	labelRE = lazy.Regexp(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`)
	idRE    = lazy.Regexp(`^s_[0-9a-z]{26}$`)
)

func looksLikeID(s string) bool { return idRE().MatchString(s) }

func checkName(name string) error {
	switch {
	case name == "":
		return problem.Field("name", "must not be empty")
	case len(name) > MaxName:
		return problem.Field("name", "has %d characters, at most %d are allowed", len(name), MaxName)
	case !nameRE().MatchString(name):
		return problem.Field("name", "%q: letters, digits, '.', '_' and '-' are allowed, the first a letter, a digit or '_'", name)
	case looksLikeID(name):
		return problem.Field("name", "%q looks like an id", name)
	}
	return nil
}

func checkLabels(l map[string]string) error {
	if len(l) > MaxLabels {
		return problem.Field("labels", "%d labels, at most %d are allowed", len(l), MaxLabels)
	}
	for k, v := range l {
		if len(k) > MaxLabelKey || !labelRE().MatchString(k) {
			return problem.Field("labels", "key %q: 1 to %d letters, digits, '.', '_', '/' and '-', with a letter or digit at both ends", k, MaxLabelKey)
		}
		if len(v) > MaxLabel || !utf8.ValidString(v) || strings.ContainsAny(v, "\x00\n") {
			return problem.Field("labels", "value of %q: at most %d bytes of UTF-8 on one line", k, MaxLabel)
		}
	}
	return nil
}

// complete checks the request and fills in what it leaves open.
func (s *Spec) complete(cfg Config) error {
	if s.Owner == "" {
		return problem.Field("owner", "must not be empty")
	}
	if s.Name != "" {
		if err := checkName(s.Name); err != nil {
			return err
		}
	}
	if err := checkLabels(s.Labels); err != nil {
		return err
	}
	if s.Shell && len(s.Argv) > 0 {
		return problem.Field("shell", "goes without argv")
	}
	if len(s.Argv) == 0 {
		s.Argv = []string{cfg.Shell}
	}
	if err := checkStrings("argv", s.Argv, MaxArgs, MaxArgBytes); err != nil {
		return err
	}
	if s.Argv[0] == "" {
		return problem.Field("argv", "the program's name is empty")
	}
	if err := checkStrings("env", s.Env, MaxEnv, MaxEnvBytes); err != nil {
		return err
	}
	for _, kv := range s.Env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return problem.Field("env", "%q is not of the form NAME=VALUE", k)
		}
	}
	if s.Cwd == "" {
		s.Cwd = cfg.Home
	}
	if err := checkCwd(s.Cwd); err != nil {
		return err
	}
	if s.Cols == 0 {
		s.Cols = 80
	}
	if s.Rows == 0 {
		s.Rows = 24
	}
	if err := checkSize(s.Cols, s.Rows); err != nil {
		return err
	}
	if s.OutputLimit == 0 {
		s.OutputLimit = cfg.OutputLimit
	}
	if s.OutputLimit < buffer.MinLimit || s.OutputLimit > cfg.OutputLimit {
		return problem.Field("output_limit", "%d bytes are not within %d and the configured %d", s.OutputLimit, buffer.MinLimit, cfg.OutputLimit)
	}
	if s.MemoryLimit == nil {
		s.MemoryLimit = &cfg.MemoryLimit
	}
	if n := *s.MemoryLimit; n != 0 && n < MinMemory {
		return problem.Field("memory_limit", "%d bytes are less than the %d that a program needs", n, MinMemory)
	}
	if s.PidsLimit == nil {
		s.PidsLimit = &cfg.PidsLimit
	}
	if n := *s.PidsLimit; n < 0 || n > MaxPids {
		return problem.Field("pids_limit", "%d is not between 0 (no limit) and %d", n, MaxPids)
	}
	if len(s.IdempotencyKey) > MaxKey || strings.ContainsFunc(s.IdempotencyKey, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return problem.Field("Idempotency-Key", "at most %d printable ASCII characters without blanks", MaxKey)
	}
	return nil
}

func checkStrings(field string, ss []string, n, size int) error {
	if len(ss) > n {
		return problem.Field(field, "%d items, at most %d are allowed", len(ss), n)
	}
	sum := 0
	for _, s := range ss {
		sum += len(s) + 1
		if strings.ContainsRune(s, 0) {
			return problem.Field(field, "holds a NUL byte")
		}
	}
	if sum > size {
		return problem.Field(field, "%d bytes, at most %d are allowed", sum, size)
	}
	return nil
}

func checkCwd(dir string) error {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) || len(dir) > unix.PathMax {
		return problem.Field("cwd", "%q is not an absolute path", dir)
	}
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return problem.Field("cwd", "%s: %v", dir, unwrapPath(err))
	case !st.IsDir():
		return problem.Field("cwd", "%s is not a directory", dir)
	case unix.Access(dir, unix.X_OK) != nil:
		return problem.Field("cwd", "%s cannot be entered", dir)
	}
	return nil
}

func unwrapPath(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	return err
}

// inventName makes a name for a session that was given none.
func inventName(program string) string {
	base := strings.Map(func(r rune) rune {
		if r < 0x80 && nameRE().MatchString("a"+string(r)) {
			return r
		}
		return -1
	}, filepath.Base(program))
	base = strings.TrimLeft(base, ".-")
	if base == "" {
		base = "session"
	}
	return base[:min(len(base), 40)] + "-" + strings.ToLower(rand.Text()[:5])
}

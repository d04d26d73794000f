package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Error is a setting that is wrong, with the place it was set.
type Error struct {
	Key   string // as in the file
	Where string // "file:line", "environment PTYD_X", "flag --x", "default"
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %v", e.Where, e.Key, e.Err) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Sources are what a configuration is made from.
type Sources struct {
	File    string            // path of the TOML file; "" is DefaultFile, if that exists
	Environ []string          // as from os.Environ
	Flags   map[string]string // key name → value, only flags that were given
}

// Load merges the sources. It reports everything that is wrong at once.
func Load(src Sources) (Config, error) {
	c := Default()
	c.origins = map[string]string{}
	var errs []error
	if err := c.loadFile(src.File); err != nil {
		errs = append(errs, err)
	}
	if err := c.loadEnviron(src.Environ); err != nil {
		errs = append(errs, err)
	}
	for _, k := range Keys {
		if v, ok := src.Flags[k.Name]; ok {
			errs = append(errs, c.set(k, "flag --"+k.Flag(), v))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	if err := c.validate(); err != nil {
		return Config{}, err
	}
	dir, err := filepath.Abs(c.StateDir)
	if err != nil {
		return Config{}, &Error{Key: "state_dir", Where: c.Origin("state_dir"), Err: err}
	}
	c.StateDir = dir
	return c, nil
}

func (c *Config) set(k Key, where, value string) error {
	if err := k.bind(c).Set(value); err != nil {
		return &Error{Key: k.Name, Where: where, Err: err}
	}
	c.origins[k.Name] = where
	return nil
}

// loadFile reads the TOML file. A file that was named must exist.
func (c *Config) loadFile(name string) error {
	named := name != ""
	if !named {
		name = DefaultFile()
	}
	data, err := os.ReadFile(name)
	if err != nil {
		if !named && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("read configuration: %w", err)
	}
	var raw map[string]toml.Primitive
	md, err := toml.Decode(string(data), &raw)
	if err != nil {
		return tomlError(name, "", err)
	}
	var errs []error
	for _, key := range md.Keys() {
		if len(key) != 1 { // inside a table, which is unknown as a whole
			continue
		}
		v := fileValue{config: c, name: key[0], where: name}
		if err := md.PrimitiveDecode(raw[key[0]], &v); err != nil {
			errs = append(errs, tomlError(name, key[0], err))
		}
	}
	// A second pass only for the lines: the decoder tells a key's position
	// with an error and not otherwise.
	for key, where := range c.origins {
		if where != name {
			continue
		}
		var l locator
		c.origins[key] = place(name, md.PrimitiveDecode(raw[key], &l))
	}
	return errors.Join(errs...)
}

// locator fails on purpose; see loadFile.
type locator struct{}

var errHere = errors.New("here")

func (*locator) UnmarshalTOML(any) error { return errHere }

func place(file string, err error) string {
	if pe, ok := errors.AsType[toml.ParseError](err); ok && pe.Position.Line > 0 {
		return file + ":" + strconv.Itoa(pe.Position.Line)
	}
	return file
}

func tomlError(file, key string, err error) error {
	msg := err
	if pe, ok := errors.AsType[toml.ParseError](err); ok {
		if key == "" {
			return fmt.Errorf("%s: %s", place(file, err), pe.Message)
		}
		msg = errors.New(pe.Message)
	}
	return &Error{Key: key, Where: place(file, err), Err: msg}
}

// fileValue sets one key from the file, with the types TOML has.
type fileValue struct {
	config *Config
	name   string
	where  string
}

// UnmarshalTOML implements toml.Unmarshaler.
func (f *fileValue) UnmarshalTOML(v any) error {
	k, ok := lookup(f.name)
	if !ok {
		return errors.New("unknown key" + suggestion(f.name))
	}
	dst := k.bind(f.config)
	if err := setTyped(dst, v); err != nil {
		return err
	}
	f.config.origins[k.Name] = f.where
	return nil
}

func setTyped(dst Value, v any) error {
	kind := dst.Type()
	switch v := v.(type) {
	case string:
		if kind == "string" || kind == "size" || kind == "duration" {
			return dst.Set(v)
		}
	case bool:
		if kind == "bool" {
			return dst.Set(strconv.FormatBool(v))
		}
	case int64:
		if kind == "int" || kind == "size" || (kind == "duration" && v == 0) {
			return dst.Set(strconv.FormatInt(v, 10))
		}
	case []any:
		if l, ok := dst.(list); ok {
			items := make([]string, len(v))
			for i, it := range v {
				s, ok := it.(string)
				if !ok {
					return fmt.Errorf("item %d is not a string", i+1)
				}
				items[i] = s
			}
			return l.SetItems(items)
		}
	}
	want := map[string]string{
		"string": "a string", "bool": "true or false", "int": "a whole number", "size": `a size such as "8MiB"`,
		"duration": `a duration such as "24h"`, "list": `a list of strings such as ["a", "b"]`,
	}[kind]
	return fmt.Errorf("must be %s", want)
}

// clientEnv are variables of other commands, and those that a session's own
// environment or an orchestrator may hold: not settings of the daemon.
var clientEnv = []string{"PTYD_CONFIG", "PTYD_SESSION", "PTYD_URL", "PTYD_TOKEN", "PTYD_TOKEN_FILE", "PTYD_DETACH_KEYS",
	// what a keeper tells its worker, and itself after an upgrade
	"PTYD_KEEPER", "PTYD_KEEPER_STATE", "PTYD_GENERATION", "PTYD_RESTARTS", "PTYD_FDSTORE_MAX", "PTYD_UPGRADE_FAILED", "PTYD_SUPERVISED",
	// what a service's unit tells the keeper
	"PTYD_FDSTORE"}

// Kubernetes describes a service called ptyd by PTYD_SERVICE_HOST, PTYD_PORT_…
var foreignEnv = []string{"PTYD_SERVICE_", "PTYD_PORT", "PTYD_TEST_"}

func (c *Config) loadEnviron(environ []string) error {
	byEnv := make(map[string]Key, len(Keys))
	for _, k := range Keys {
		byEnv[k.Env()] = k
	}
	var errs []error
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "PTYD_") || slices.Contains(clientEnv, name) ||
			slices.ContainsFunc(foreignEnv, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		k, ok := byEnv[name]
		if !ok {
			key := strings.ToLower(strings.TrimPrefix(name, "PTYD_"))
			errs = append(errs, &Error{Key: key, Where: "environment " + name, Err: errors.New("unknown key" + suggestion(key))})
			continue
		}
		if err := c.set(k, "environment "+name, value); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// suggestion names a key that name may have meant.
func suggestion(name string) string {
	best, least := "", 4 // more than three edits is another word
	for _, k := range Keys {
		if d := distance(name, k.Name); d < least {
			best, least = k.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return " (" + best + "?)"
}

// distance counts the single-letter edits between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diag+cost)
		}
	}
	return row[len(b)]
}

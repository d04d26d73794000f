package layers

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ptyd/ptyd/"

// layer says where a package stands: it imports only packages of a lower
// number. Packages of one layer meet by interfaces that daemon wires.
var layer = map[string]int{
	"internal/failpoint": 0, // below all: the places it marks are everywhere
	"internal/problem":   0, // below all: the one error type
	"internal/ident":     0, // below all: ids
	"internal/lazy":      0, // below all: what is made when it is first used

	"internal/ptymgr/stage": 0, // between fork and exec of a session
	"internal/notifyproto":  0, // what keeper and worker say to each other

	"internal/keeper":     1, // the parent process
	"internal/fdstore":    1, // the worker's half of it
	"internal/buffer":     1,
	"internal/wire":       1,
	"internal/events":     1,
	"internal/keylock":    1,
	"internal/depcache":   1,
	"internal/config":     1,
	"internal/cgroup":     1,
	"internal/checkpoint": 1, // bytes and files; knows no sessions
	"internal/vt":         1, // the emulator; pure
	"internal/vt/oracle":  2, // its tests beside xterm.js

	"internal/auth": 2, // who calls and what they may do; knows no SQL and no HTTP

	"internal/ptymgr": 3, // sessions; knows no transport

	"internal/screen": 4, // plays sessions' output to the emulator; knows no transport
	"internal/store":  4, // implements what auth and ptymgr declare

	"internal/ws":  5,
	"internal/api": 6, // mounts ws's endpoint

	"web":     0, // the built page, embedded
	"systemd": 0, // the units, embedded

	"internal/doctor":     7, // looks at a daemon and its machine
	"internal/daemon":     7, // wires everything
	"internal/client":     7, // the API from outside
	"internal/client/tty": 8, // shows a stream in a person's own terminal

	"internal/service": 8, // makes it a service of systemd

	"internal/bench": 8, // measures the daemon from outside

	"cmd/ptyd":        9,
	"cmd/ptyd-bench":  9,
	"internal/layers": 0,
	"e2e":             9,
}

// only lists outside packages that have one home, and why.
var only = map[string]struct {
	homes []string
	why   string
}{
	"database/sql":                       {[]string{"internal/store"}, "all SQL stands in one place, or a second database is out of reach"},
	"modernc.org/sqlite":                 {[]string{"internal/store"}, "all SQL stands in one place, or a second database is out of reach"},
	"github.com/gorilla/websocket":       {[]string{"internal/ws", "internal/bench"}, "write deadlines and close handling are easy to get wrong twice; bench holds the reference server"},
	"github.com/creack/pty":              {[]string{"internal/ptymgr", "internal/bench"}, "masters are raw descriptors with rules of their own; bench holds the reference server"},
	"net/http":                           {[]string{"internal/ws", "internal/api", "internal/daemon", "internal/client", "internal/bench", "cmd/ptyd", "cmd/ptyd-bench"}, "the core knows no transport, so that every transport shares it"},
	"encoding/json":                      {[]string{"internal/wire", "internal/ws", "internal/api", "internal/store", "internal/client", "internal/ptymgr", "internal/daemon", "internal/config", "internal/bench", "cmd/ptyd", "cmd/ptyd-bench"}, "no JSON on the way of a byte of output"},
	"github.com/spf13/cobra":             {[]string{"cmd/ptyd", "cmd/ptyd-bench"}, "commands and flags are the outermost layer's"},
	"github.com/BurntSushi/toml":         {[]string{"internal/config"}, "one place reads the configuration"},
	"github.com/VictoriaMetrics/metrics": {[]string{"internal/api"}, "packages tell their numbers by Stats; one place exports them"},
	"github.com/puzpuzpuz/xsync/v3":      {[]string{"internal/depcache", "internal/ptymgr", "internal/auth", "internal/ws", "internal/keylock"}, "concurrent maps hold sessions and cells, nothing else"},
	"golang.org/x/term":                  {[]string{"internal/client/tty", "internal/client", "cmd/ptyd", "internal/daemon", "internal/bench"}, "only a command has a person's terminal to itself"},
}

// benchFamily is the one group of packages that import each other freely.
const benchFamily = "internal/bench"

// family maps the packages below internal/bench to it.
func family(name string) string {
	if strings.HasPrefix(name, benchFamily+"/") {
		return benchFamily
	}
	return name
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportRules(t *testing.T) {
	all := list(t)
	if len(all) < 5 {
		t.Fatalf("go list found %d packages", len(all))
	}
	for _, p := range all {
		name := family(strings.TrimPrefix(p.ImportPath, module))
		mine, ok := layer[name]
		if !ok {
			t.Errorf("%s has no layer: give it one here", name)
			continue
		}
		for _, imp := range p.Imports {
			if theirs, inside := strings.CutPrefix(imp, module); inside {
				theirs = family(theirs)
				if theirs == name && name == benchFamily {
					continue
				}
				if l, ok := layer[theirs]; ok && l >= mine {
					t.Errorf("%s (layer %d) imports %s (layer %d): a package imports only layers below its own", name, mine, theirs, l)
				}
				continue
			}
			for prefix, rule := range only {
				if imp != prefix && !strings.HasPrefix(imp, prefix+"/") {
					continue
				}
				if !slices.Contains(rule.homes, name) {
					t.Errorf("%s imports %s, which belongs to %s: %s", name, imp, strings.Join(rule.homes, ", "), rule.why)
				}
			}
		}
	}
}

// TestOnlyCommandsImportBench keeps the reference server out of the daemon.
func TestOnlyCommandsImportBench(t *testing.T) {
	for _, p := range list(t) {
		name := family(strings.TrimPrefix(p.ImportPath, module))
		if name == "cmd/ptyd-bench" || name == benchFamily {
			continue
		}
		for _, imp := range p.Imports {
			if family(strings.TrimPrefix(imp, module)) == benchFamily {
				t.Errorf("%s imports internal/bench, which is for cmd/ptyd-bench alone", p.ImportPath)
			}
		}
	}
}

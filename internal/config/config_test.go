package config

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDocumentation(t *testing.T) {
	const name = "../../docs/configuration.md"
	want := Markdown()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md differs from the table of keys: go test ./internal/config -run TestDocumentation -update")
	}
	for _, k := range Keys {
		for _, s := range []string{"### " + k.Name + "\n", "`" + k.Env() + "`", "`--" + k.Flag() + "`", k.Doc} {
			if !strings.Contains(string(got), s) {
				t.Errorf("docs/configuration.md does not hold %q of key %s", s, k.Name)
			}
		}
	}
}

// Every exported field is reached by exactly one key, and a value that a key
// prints is one it reads.
func TestKeysCoverTheStruct(t *testing.T) {
	def := Default()
	fields := map[uintptr]string{}
	v := reflect.ValueOf(&def).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			fields[v.Field(i).Addr().Pointer()] = v.Type().Field(i).Name
		}
	}
	for _, k := range Keys {
		val := k.bind(&def)
		p := reflect.ValueOf(val).Field(0).Pointer()
		if fields[p] == "" {
			t.Errorf("key %s: its field is bound twice or is none of Config", k.Name)
		}
		delete(fields, p)
		before := val.String()
		if before == "" {
			continue
		}
		if err := val.Set(before); err != nil {
			t.Errorf("key %s: its default %q is refused: %v", k.Name, before, err)
		}
		if after := val.String(); after != before {
			t.Errorf("key %s: %q became %q", k.Name, before, after)
		}
	}
	for _, name := range fields {
		t.Errorf("field %s has no key", name)
	}
}

func TestPrecedence(t *testing.T) {
	file := writeFile(t, "# a comment\nlisten = \"127.0.0.1:1\"\nlog_level = \"warn\"\ngrace = \"1s\"\n")
	steps := []struct {
		src           Sources
		listen, where string
	}{
		{Sources{File: writeFile(t, "")}, "127.0.0.1:7373", "default"},
		{Sources{File: file}, "127.0.0.1:1", file + ":2"},
		{Sources{File: file, Environ: []string{"PTYD_LISTEN=127.0.0.1:2"}}, "127.0.0.1:2", "environment PTYD_LISTEN"},
		{Sources{File: file, Environ: []string{"PTYD_LISTEN=127.0.0.1:2"}, Flags: map[string]string{"listen": "127.0.0.1:3"}}, "127.0.0.1:3", "flag --listen"},
	}
	for _, s := range steps {
		c, err := Load(s.src)
		if err != nil {
			t.Fatal(err)
		}
		if c.Listen != s.listen || c.Origin("listen") != s.where {
			t.Errorf("got %s from %s, want %s from %s", c.Listen, c.Origin("listen"), s.listen, s.where)
		}
	}
}

func TestFileTypes(t *testing.T) {
	c, err := Load(Sources{File: writeFile(t, `
listen = "0.0.0.0:80"
insecure = true
base_path = "/a/b/"
public_url = "https://Term.Example.com/x/"
allowed_hosts = ["Box.lan:7373", "other"]
output_limit = 1048576
min_free = "1GiB"
remove_after = "1d12h"
grace = 0
sessions_total = 5
`)})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Insecure || c.BasePath != "/a/b" || c.PublicURL != "https://term.example.com/x" ||
		strings.Join(c.AllowedHosts, " ") != "box.lan:7373 other" || c.OutputLimit != 1<<20 || c.MinFree != 1<<30 ||
		c.RemoveAfter != 36*time.Hour || c.Grace != 0 || c.SessionsTotal != 5 {
		t.Errorf("read wrongly: %+v", c)
	}
	if c.SessionsPerOwner != 5 {
		t.Errorf("sessions_per_owner stayed %d above a lowered total", c.SessionsPerOwner)
	}
}

func TestErrorsNameKeyAndPlace(t *testing.T) {
	tests := []struct {
		name, file string
		env        []string
		flags      map[string]string
		want       []string // all must be in the message; FILE stands for the file's name
	}{
		{name: "unknown key", file: "\n\nlistn = \"x\"\n", want: []string{"FILE:3: listn: unknown key (listen?)"}},
		{name: "unknown table", file: "listen = \"127.0.0.1:0\"\n[limits]\nx = 1\n", want: []string{"FILE:2: limits: unknown key"}},
		{name: "syntax", file: "listen = \"a\"\nthis is not toml\n", want: []string{"FILE:2: "}},
		{name: "twice", file: "grace = \"1s\"\ngrace = \"2s\"\n", want: []string{"FILE:2: ", "grace"}},
		{name: "wrong type", file: "grace = 3\n", want: []string{"FILE:1: grace: must be a duration"}},
		{name: "wrong type of bool", file: "insecure = \"yes\"\n", want: []string{"FILE:1: insecure: must be true or false"}},
		{name: "wrong item", file: "allowed_hosts = [\"a\", 1]\n", want: []string{"FILE:1: allowed_hosts: item 2 is not a string"}},
		{name: "bad value", file: "\nlog_level = \"loud\"\n", want: []string{"FILE:2: log_level: \"loud\" is not one of debug, info, warn, error"}},
		{name: "several", file: "grace = \"x\"\noutput_limit = \"1 furlong\"\n", env: []string{"PTYD_SHELL=bash"},
			want: []string{"FILE:1: grace", "FILE:2: output_limit", "environment PTYD_SHELL: shell: \"bash\" is not an absolute path"}},
		{name: "unknown environment", env: []string{"PTYD_LOGLEVEL=x"}, want: []string{"environment PTYD_LOGLEVEL: loglevel: unknown key (log_level?)"}},
		{name: "flag", flags: map[string]string{"sessions_total": "0"}, want: []string{"flag --sessions-total: sessions_total: 0 is not between 1 and 100000"}},
		{name: "network without TLS", file: "\nlisten = \"0.0.0.0:7373\"\n", want: []string{"FILE:2: listen: 0.0.0.0:7373 is reachable from the network"}},
		{name: "every address without TLS", flags: map[string]string{"listen": ":7373"}, want: []string{"flag --listen: listen: "}},
		{name: "half of TLS", flags: map[string]string{"tls_cert": "/c.pem"}, want: []string{"flag --tls-cert: tls_cert: needs tls_key"}},
		{name: "other half of TLS", flags: map[string]string{"tls_key": "/k.pem"}, want: []string{"flag --tls-key: tls_key: needs tls_cert"}},
		{name: "owner above total", flags: map[string]string{"sessions_per_owner": "6", "sessions_total": "5"}, want: []string{"sessions_per_owner: 6 is more than sessions_total (5)"}},
		{name: "one above all", flags: map[string]string{"output_limit": "2MiB", "output_total": "1MiB"}, want: []string{"output_total: 1048576 is less than output_limit (2097152)"}},
		{name: "port", flags: map[string]string{"listen": "127.0.0.1:70000"}, want: []string{"the port is not a number"}},
		{name: "base path", flags: map[string]string{"base_path": "/a/../b"}, want: []string{"base_path: \"/a/../b\" is not a path"}},
		{name: "public url", flags: map[string]string{"public_url": "ftp://x"}, want: []string{"public_url: "}},
		{name: "public url with a user", flags: map[string]string{"public_url": "https://u:p@x"}, want: []string{"public_url: "}},
		{name: "host", flags: map[string]string{"allowed_hosts": "a,b/c"}, want: []string{"allowed_hosts: \"b/c\" is not a host name"}},
		{name: "wildcard host", flags: map[string]string{"allowed_hosts": "*"}, want: []string{"allowed_hosts: \"*\" is not a host name"}},
		{name: "network", flags: map[string]string{"trusted_proxies": "10.0.0.1,proxy"}, want: []string{"trusted_proxies: \"proxy\" is neither an address"}},
		{name: "state dir", flags: map[string]string{"state_dir": ""}, want: []string{"state_dir: must not be empty"}},
		{name: "size too large", flags: map[string]string{"output_limit": "9999999TiB"}, want: []string{"output_limit: \"9999999TiB\" is too large"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := writeFile(t, tt.file)
			_, err := Load(Sources{File: file, Environ: tt.env, Flags: tt.flags})
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range tt.want {
				if w = strings.ReplaceAll(w, "FILE", file); !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not hold %q", err, w)
				}
			}
		})
	}
}

// Every key is read from its variable and from its flag: none is shadowed.
func TestEveryKeyBySource(t *testing.T) {
	values := map[string]string{
		"listen": "127.0.0.1:1", "insecure": "true", "tls_cert": "/c", "tls_key": "/k", "base_path": "/b", "public_url": "https://p", "allowed_hosts": "a,b:1", "trusted_proxies": "10.0.0.0/8,::1/128",
		"state_dir": "/s", "min_free": "1MiB", "shell": "/sh", "sessions_per_owner": "7", "sessions_total": "8", "output_limit": "1MiB", "output_total": "2MiB", "remove_after": "1h",
		"ended_per_owner": "3", "checkpoint_interval": "5s", "checkpoint_total": "3MiB",
		"grace": "1s", "session_memory": "512MiB", "session_pids": "200", "audit_keep": "2d", "audit_max_rows": "9", "web_ttl": "1h", "link_ttl": "1m", "ping_interval": "5s", "log_level": "warn", "log_format": "json", "metrics": "false",
	}
	file := writeFile(t, "")
	var environ []string
	flags := map[string]string{}
	for _, k := range Keys {
		v, ok := values[k.Name]
		if !ok {
			t.Fatalf("no value for %s: add one", k.Name)
		}
		environ = append(environ, k.Env()+"="+v)
		flags[k.Name] = v
	}
	for name, src := range map[string]Sources{"environment": {File: file, Environ: environ}, "flag": {File: file, Flags: flags}} {
		c, err := Load(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range Keys {
			if got := k.Value(&c).String(); got != values[k.Name] || !strings.HasPrefix(c.Origin(k.Name), name) {
				t.Errorf("%s by %s: %q from %s, want %q", k.Name, name, got, c.Origin(k.Name), values[k.Name])
			}
		}
	}
}

func TestAcceptedEnvironment(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	_, err := Load(Sources{Environ: []string{"PTYD_TOKEN=x", "PTYD_SESSION=s_1", "PTYD_PORT=tcp://10.0.0.1:7373", "PTYD_SERVICE_HOST=10.0.0.1", "HOME=/", "PTYD"}})
	if err != nil {
		t.Error(err)
	}
}

func TestFileThatIsNamedMustExist(t *testing.T) {
	name := filepath.Join(t.TempDir(), "none.toml")
	if _, err := Load(Sources{File: name}); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if _, err := Load(Sources{}); err != nil {
		t.Errorf("a default file that does not exist: %v", err)
	}
}

func TestDiffAndTakeLive(t *testing.T) {
	a, b := Default(), Default()
	b.Listen, b.LogLevel, b.Grace = "127.0.0.1:1", "debug", time.Second
	live, restart := Diff(&a, &b)
	if strings.Join(live, " ") != "grace log_level" || strings.Join(restart, " ") != "listen" {
		t.Errorf("live %v, restart %v", live, restart)
	}
	a.TakeLive(&b)
	if a.Grace != time.Second || a.LogLevel != "debug" || a.Listen != "127.0.0.1:7373" {
		t.Errorf("taken over wrongly: %+v", a)
	}
}

func TestUnits(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "17": 17, "8MiB": 8 << 20, "8 MiB": 8 << 20, "2kB": 2000, "5B": 5, "1TiB": 1 << 40, "3GB": 3e9} {
		if n, err := ParseSize(s); err != nil || n != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", s, n, err, want)
		}
		if n, err := ParseSize(FormatSize(want)); err != nil || n != want {
			t.Errorf("%d printed as %s and read as %d", want, FormatSize(want), n)
		}
	}
	for _, s := range []string{"", "MiB", "-1", "1.5MiB", "1e9", "8mib", "+3"} {
		if n, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", s, n)
		}
	}
	for s, want := range map[string]time.Duration{"0": 0, "3s": 3 * time.Second, "90d": 90 * day, "1d12h": 36 * time.Hour, "1h30m": 90 * time.Minute, "24h": day, "10m": 10 * time.Minute} {
		if d, err := ParseDuration(s); err != nil || d != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", s, d, err, want)
		}
		if d, err := ParseDuration(FormatDuration(want)); err != nil || d != want {
			t.Errorf("%v printed as %s and read as %v", want, FormatDuration(want), d)
		}
	}
	for _, s := range []string{"", "3", "-3s", "d", "1d-2h", "1.5d", "999999999d", "d3s"} {
		if d, err := ParseDuration(s); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", s, d)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:1": false, ":1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost.example.com:1": false, "example.com:1": false,
	} {
		if IsLoopback(addr) != want {
			t.Errorf("IsLoopback(%q) is not %v", addr, want)
		}
	}
}

func TestDefaultPlaces(t *testing.T) {
	for _, v := range []string{"STATE_DIRECTORY", "INVOCATION_ID", "SYSTEMD_EXEC_PID", "MANAGERPID", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", "/home/u")
	pid := strconv.Itoa(os.Getpid())
	steps := []struct {
		name        string
		env         map[string]string
		state, file string
	}{
		{"a person", nil, "/home/u/.local/state/ptyd", "/home/u/.config/ptyd/config.toml"},
		{"a desktop terminal's inherited invocation", map[string]string{"INVOCATION_ID": "x", "SYSTEMD_EXEC_PID": "1"}, "/home/u/.local/state/ptyd", "/home/u/.config/ptyd/config.toml"},
		{"a user service", map[string]string{"SYSTEMD_EXEC_PID": pid, "MANAGERPID": "7"}, "/home/u/.local/state/ptyd", "/home/u/.config/ptyd/config.toml"},
		{"XDG", map[string]string{"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}, "/s/ptyd", "/c/ptyd/config.toml"},
		{"a relative XDG path is to be ignored", map[string]string{"XDG_STATE_HOME": "s"}, "/home/u/.local/state/ptyd", "/c/ptyd/config.toml"},
		{"a system service", map[string]string{"MANAGERPID": ""}, "/var/lib/ptyd", "/etc/ptyd/config.toml"},
		{"with a state directory", map[string]string{"STATE_DIRECTORY": "/var/lib/other:/var/lib/more"}, "/var/lib/other", "/etc/ptyd/config.toml"},
	}
	for _, s := range steps { // each step keeps the environment of those before
		for k, v := range s.env {
			t.Setenv(k, v)
		}
		if d := DefaultStateDir(); d != s.state {
			t.Errorf("%s: state in %s, want %s", s.name, d, s.state)
		}
		if f := DefaultFile(); f != s.file {
			t.Errorf("%s: configuration in %s, want %s", s.name, f, s.file)
		}
	}
}

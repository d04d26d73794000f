package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/config"
)

// TestRun: the whole process but for main: its one line, its signals, its log,
// and what the service manager hears.
func TestRun(t *testing.T) {
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(tempDir(t), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	told := func() string {
		t.Helper()
		if err := manager.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 256)
		n, err := manager.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		state, _, _ := strings.Cut(string(buf[:n]), "\n")
		return state
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = out.Close(), in.Close() }()
	cfg := testConfig(t)
	loads := 0
	signals := make(chan os.Signal, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- Run(context.Background(), RunOptions{
			Load: func() (config.Config, error) {
				if loads++; loads == 2 {
					return config.Config{}, errors.New("mistake in the file")
				}
				return cfg, nil
			},
			Build: config.Build{Version: "1"}, Stdout: in, Stderr: log, PrintLink: true, Signals: signals,
		})
	}()
	if s := told(); s != "READY=1" {
		t.Errorf("told %q", s)
	}
	buf := make([]byte, 1024)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	line := string(buf[:n])
	link, ok := strings.CutPrefix(line, "ptyd: open ")
	if !ok || strings.Count(line, "\n") != 1 || !strings.Contains(link, "/#login=") {
		t.Fatalf("printed %q", line)
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(link), "#login=")
	base, _, _ := strings.Cut(link, "#")
	res, err := http.Post(base+"v1/login", "application/json", strings.NewReader(`{"link":"`+secret+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("the printed link: %d", res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	for _, want := range []string{"RELOADING=1", "READY=1"} { // the second load fails, and the daemon goes on
		if want == "RELOADING=1" {
			signals <- syscall.SIGHUP
		}
		if s := told(); s != want {
			t.Errorf("told %q, want %q", s, want)
		}
	}
	signals <- syscall.SIGTERM
	if s := told(); s != "STOPPING=1" {
		t.Errorf("told %q", s)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	data, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for l := range strings.Lines(string(data)) {
		var e struct{ Msg, Time string }
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Errorf("no JSON in the log: %q", l)
		}
		if _, err := time.Parse(time.RFC3339Nano, e.Time); err != nil {
			t.Errorf("time %q", e.Time)
		}
		messages = append(messages, e.Msg)
	}
	for _, want := range []string{"ptyd is ready", "the configuration stays as it was", "ending", "ptyd has ended in order"} {
		if !slices.Contains(messages, want) {
			t.Errorf("the log lacks %q: %q", want, messages)
		}
	}
	if strings.Contains(string(data), secret) {
		t.Error("the log holds the link's secret")
	}
}

// TestNoLinkInALog: where standard output is no terminal, its line has no secret.
func TestNoLinkInALog(t *testing.T) {
	var out strings.Builder
	c := testConfig(t)
	d := startTest(t, c)
	defer stopTest(t, d)
	d.announce(t.Context(), RunOptions{Stdout: &out})
	if out.String() != "ptyd: listening on "+d.URL()+"\n" {
		t.Errorf("printed %q", out.String())
	}
}

// TestDescriptorLimit: the daemon may open as much as it is allowed to, and
// sessions get the limit that it was started with. The runtime does both.
func TestDescriptorLimit(t *testing.T) {
	cmd := exec.Command("sh", "-c", `ulimit -Sn 256 && ulimit -Hn 2000 && exec "$0" -test.run=none`, os.Args[0])
	cmd.Env = append(os.Environ(), "PTYD_TEST_HELPER=limits", "PTYD_TEST_DIR="+tempDir(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The runtime leaves one below the hard limit, by which it knows its own setting.
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{"1999", "256"}) && !slices.Equal(got, []string{"2000", "256"}) {
		t.Errorf("the daemon and a session may open %q, want 2000 and 256", got)
	}
}

// limitsHelper runs as a process of its own: it prints the daemon's limit and a
// session's.
func limitsHelper() int {
	dir := os.Getenv("PTYD_TEST_DIR")
	c, err := config.Load(config.Sources{File: os.DevNull, Flags: map[string]string{"state_dir": dir, "listen": "127.0.0.1:0"}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	d, err := Start(context.Background(), Options{Config: c, Log: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(lim.Cur)
	t := &testing.T{}
	mustCall(t, dir, "POST", "/v1/sessions", object{"argv": []string{"sh", "-c", "ulimit -Sn"}, "name": "a"}, nil)
	mustCall(t, dir, "POST", "/v1/sessions/a/wait", object{"exit": true}, nil)
	_, out := call(t, dir, "GET", "/v1/sessions/a/output", nil)
	fmt.Println(string(out))
	if err := d.Stop(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestLogFormats: readable for people, JSON for machines.
func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"console": "INFO  hello  {\"n\": 1}\n", "json": `"msg":"hello","n":1}` + "\n", "auto": `"msg":"hello","n":1}` + "\n"} {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		log, level, err := newLog(f, "warn", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("not yet")
		level.SetLevel(zap.InfoLevel)
		log.Info("hello", zap.Int("n", 1))
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(data), want) || strings.Contains(string(data), "not yet") {
			t.Errorf("%s: %q", format, data)
		}
		_ = f.Close()
	}
	if _, _, err := newLog(os.Stderr, "loud", "json"); err == nil {
		t.Error("a level that is none")
	}
}

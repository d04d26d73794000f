package daemon

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/wire"
	"github.com/ptyd/ptyd/internal/ws"
)

// testConfig is a daemon's configuration for a test.
func testConfig(t *testing.T, flags ...string) config.Config {
	t.Helper()
	given := map[string]string{"state_dir": tempDir(t), "listen": "127.0.0.1:0", "grace": "100ms"}
	for i := 0; i < len(flags); i += 2 {
		given[flags[i]] = flags[i+1]
	}
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Sources{File: file, Flags: given})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func startTest(t *testing.T, c config.Config) *Daemon {
	t.Helper()
	log := zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	d, err := Start(t.Context(), Options{Config: c, Build: config.Build{Version: "1"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stopTest(t *testing.T, d *Daemon) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// call makes a request over the daemon's socket.
func call(t *testing.T, dir, method, path string, body any) (status int, data []byte) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, "ptyd.sock"))
	}}}
	in, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var rd io.Reader
	if body != nil {
		rd = bytes.NewReader(in)
	}
	r, err := http.NewRequest(method, "http://ptyd"+path, rd)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	if data, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, data
}

func mustCall(t *testing.T, dir, method, path string, body, out any) {
	t.Helper()
	status, data := call(t, dir, method, path, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, data)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatal(err)
		}
	}
}

type object = map[string]any

// TestLife: everything is there when Start returns, and nothing is when Stop does.
func TestLife(t *testing.T) {
	c := testConfig(t)
	d := startTest(t, c)
	dir := c.StateDir
	var s struct{ ID string }
	mustCall(t, dir, "POST", "/v1/sessions", object{"argv": []string{"sh", "-c", "echo up; cat"}, "name": "a"}, &s)
	hello := wire.Hello{Min: 1, Max: 1, ClientID: strings.Repeat("0", 32)}
	conn, err := ws.Dial(t.Context(), ws.DialOptions{URL: "ws://ptyd/v1/ws", Socket: filepath.Join(dir, "ptyd.sock"), Hello: hello})
	if err != nil {
		t.Fatal(err)
	}
	if conn.Hello().Role != "admin" {
		t.Errorf("the socket's peer is %+v", conn.Hello())
	}
	waiting := waitingRequest(t, dir, "/v1/sessions/a/wait", `{"exit":true}`)
	// Another daemon is refused while this one lives.
	if _, err := takeLock(t.Context(), dir, filepath.Join(dir, "lock"), 0); err == nil || !strings.Contains(err.Error(), fmt.Sprint("pid ", os.Getpid())) {
		t.Errorf("the lock: %v", err)
	}
	if err := d.Ready(); err != nil {
		t.Error(err)
	}
	began := time.Now()
	stopTest(t, d)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the end took %v", took)
	}
	if err := d.Ready(); err == nil {
		t.Error("still ready")
	}
	// A request that only waited ended with the daemon, not after its time.
	if res, err := http.ReadResponse(bufio.NewReader(waiting), nil); err != nil {
		t.Errorf("the waiting request got no answer: %v", err)
	} else {
		_ = res.Body.Close()
	}
	_ = waiting.Close()
	var bye *ws.GoodbyeError
	for err = nil; err == nil; {
		_, err = conn.Next()
	}
	_ = conn.Close()
	if !errors.As(err, &bye) || bye.Code != wire.CloseShutdown {
		t.Errorf("the connection ended with %v, want %d", err, wire.CloseShutdown)
	}
	if _, err := os.Lstat(filepath.Join(dir, "ptyd.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
	if _, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(d.URL(), "http://"), "/")); err == nil {
		t.Error("the TCP listener stays")
	}

	// The next daemon knows how the session ended.
	next := startTest(t, c)
	defer stopTest(t, next)
	var got struct{ State, Signal string }
	mustCall(t, dir, "GET", "/v1/sessions/a", nil, &got)
	if got.State != "exited" || got.Signal == "" {
		t.Errorf("the session is %+v", got)
	}
}

// waitingRequest makes a request and returns when its handler runs: only then
// does net/http say that it wants the body.
func waitingRequest(t *testing.T, dir, path, body string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(dir, "ptyd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: ptyd\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, len(body)); err != nil {
		t.Fatal(err)
	}
	const want = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHurry: sessions that ignore TERM do not hold up an end that must be quick.
func TestHurry(t *testing.T) {
	c := testConfig(t, "grace", "5m")
	d := startTest(t, c)
	mustCall(t, c.StateDir, "POST", "/v1/sessions", object{"argv": []string{"sh", "-c", "trap '' TERM HUP; echo up; while :; do sleep 1000; done"}, "name": "a"}, nil)
	mustCall(t, c.StateDir, "POST", "/v1/sessions/a/wait", object{"text": "up"}, nil)
	ctx, hurry := context.WithCancel(context.Background())
	hurry()
	began := time.Now()
	_ = d.Stop(ctx) // may say that it was hurried
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("a hurried end took %v", took)
	}
}

// TestStartUndoes: what a failed start opened is closed again.
func TestStartUndoes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := testConfig(t, "listen", taken.Addr().String())
	log := zaptest.NewLogger(t)
	if _, err := Start(t.Context(), Options{Config: c, Log: log}); err == nil || !strings.Contains(err.Error(), "another program has this address") {
		t.Errorf("got %v", err)
	}
	c.Listen = "127.0.0.1:0"
	stopTest(t, startTest(t, c)) // lock and socket are free
	if err := os.WriteFile(filepath.Join(c.StateDir, "ptyd.db"), []byte("this is no database, however long it is"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"ptyd.db-wal", "ptyd.db-shm"} {
		_ = os.Remove(filepath.Join(c.StateDir, f))
	}
	if _, err := Start(t.Context(), Options{Config: c, Log: log}); err == nil {
		t.Error("started on a broken database")
	}
	if _, err := os.Lstat(filepath.Join(c.StateDir, "ptyd.sock")); !os.IsNotExist(err) {
		t.Errorf("a failed start leaves its socket: %v", err)
	}
}

func TestReload(t *testing.T) {
	c := testConfig(t)
	level := zap.NewAtomicLevelAt(zap.InfoLevel)
	d, err := Start(t.Context(), Options{Config: c, Log: zap.NewNop(), Level: &level})
	if err != nil {
		t.Fatal(err)
	}
	defer stopTest(t, d)
	next := c
	next.SessionsPerOwner, next.SessionsTotal, next.LogLevel, next.BasePath = 1, 1, "debug", "/elsewhere"
	if err := d.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if level.Level() != zap.DebugLevel {
		t.Errorf("the log's level is %v", level.Level())
	}
	var st struct {
		Limits struct {
			SessionsPerOwner int `json:"sessions_per_owner"`
		}
	}
	mustCall(t, c.StateDir, "GET", "/v1/status", nil, &st)
	if st.Limits.SessionsPerOwner != 1 {
		t.Errorf("status says %+v", st)
	}
	mustCall(t, c.StateDir, "POST", "/v1/sessions", object{"argv": []string{"cat"}}, nil)
	if status, data := call(t, c.StateDir, "POST", "/v1/sessions", object{"argv": []string{"cat"}}); status != 429 {
		t.Errorf("a session beyond the new limit: %d %s", status, data)
	}
	if d.config().BasePath != "" {
		t.Error("the base path changed while running")
	}
}

// TestFullDisk: new work is refused, what runs goes on.
func TestFullDisk(t *testing.T) {
	c := testConfig(t, "min_free", "1B")
	d := startTest(t, c)
	defer stopTest(t, d)
	mustCall(t, c.StateDir, "POST", "/v1/sessions", object{"argv": []string{"cat"}, "name": "runs"}, nil)
	next := c
	next.MinFree = 1 << 50 // no disk has as much
	if err := d.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if status, data := call(t, c.StateDir, "POST", "/v1/sessions", object{"argv": []string{"cat"}}); status != 507 || !strings.Contains(string(data), "1024TiB must stay free") {
		t.Errorf("%d %s", status, data)
	}
	mustCall(t, c.StateDir, "POST", "/v1/sessions/runs/input", object{"text": "still here\n"}, nil)
	mustCall(t, c.StateDir, "POST", "/v1/sessions/runs/wait", object{"text": "still here"}, nil)
	var st struct{ Disk struct{ OK bool } }
	mustCall(t, c.StateDir, "GET", "/v1/status", nil, &st)
	if st.Disk.OK {
		t.Error("status calls the disk well")
	}
	next.MinFree = 0
	if err := d.Reload(&next); err != nil {
		t.Fatal(err)
	}
	mustCall(t, c.StateDir, "POST", "/v1/sessions", object{"argv": []string{"cat"}}, nil)
}

// TestPrune: the housekeeper's work keeps the audit log within its bound.
func TestPrune(t *testing.T) {
	c := testConfig(t, "audit_max_rows", "3")
	d := startTest(t, c)
	defer stopTest(t, d)
	for i := range 6 {
		mustCall(t, c.StateDir, "POST", "/v1/groups", object{"name": fmt.Sprint("g", i)}, nil)
	}
	d.prune(t.Context())
	var rows struct{ Items []struct{ Target string } }
	mustCall(t, c.StateDir, "GET", "/v1/audit", nil, &rows)
	if len(rows.Items) != 3 || rows.Items[2].Target != "g5" {
		t.Errorf("rows %+v", rows)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writeCertificate(t, cert, key)
	c := testConfig(t, "tls_cert", cert, "tls_key", key)
	d := startTest(t, c)
	defer stopTest(t, d)
	if !strings.HasPrefix(d.URL(), "https://127.0.0.1:") {
		t.Fatalf("address %s", d.URL())
	}
	link, err := d.LoginURL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(link, "#login=")
	served := func() *x509.Certificate {
		t.Helper()
		tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate itself is compared
		res, err := tr.RoundTrip(must(http.NewRequest("GET", d.URL()+"healthz", nil)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.TLS.PeerCertificates[0]
	}
	if !served().Equal(first) {
		t.Error("another certificate is served")
	}
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	r := must(http.NewRequest("POST", d.URL()+"v1/login", strings.NewReader(`{"link":"`+secret+`"}`)))
	r.Header.Set("Content-Type", "application/json")
	res, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if cookies := res.Cookies(); res.StatusCode != 200 || len(cookies) != 1 || !cookies[0].Secure {
		t.Errorf("login: %d, cookies %v", res.StatusCode, cookies)
	}
	// A renewed certificate is taken over; a broken one is not.
	second := writeCertificate(t, cert, key)
	if err := d.Reload(&c); err != nil {
		t.Fatal(err)
	}
	if !served().Equal(second) {
		t.Error("the renewed certificate is not served")
	}
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(&c); err == nil {
		t.Error("a broken certificate was taken")
	}
	if !served().Equal(second) {
		t.Error("a broken certificate ended the good one")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func writeCertificate(t *testing.T, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	tmpl := &x509.Certificate{SerialNumber: must(rand.Int(rand.Reader, big.NewInt(1<<62))), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der := must(x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key))
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return must(x509.ParseCertificate(der))
}

func TestAbout(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 3<<29 + 1: "1.5 GiB", 1<<30 - 1: "1023.9 MiB", 1 << 50: "1.0 PiB"} {
		if got := about(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

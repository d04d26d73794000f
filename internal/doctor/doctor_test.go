package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/store"
)

// healthy are the options of a daemon that does not run yet.
func healthy(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.StateDir, c.SessionsTotal, c.MinFree = dir, 10, 1
	return Options{StateDir: dir, Version: "1", Config: c, StatusErr: errors.New("nobody")}
}

// expect looks for a finding whose check, level and text are as said, with a
// reason and an advice where it is not well.
func expect(t *testing.T, f Finding, level Level, text string) {
	t.Helper()
	if f.Level != level || !strings.Contains(f.What, text) {
		t.Errorf("%s: %s %q, want %s and %q", f.Check, f.Level, f.What, level, text)
	}
	if (f.Level == OK) != (f.Why == "" && f.Do == "") {
		t.Errorf("%s: %s, why %q, do %q", f.Check, f.Level, f.Why, f.Do)
	}
}

func TestWithoutADaemon(t *testing.T) {
	o := healthy(t)
	r := Run(context.Background(), o)
	if len(r.Findings) < 12 {
		t.Fatalf("%d findings", len(r.Findings))
	}
	for _, f := range r.Findings {
		if f.Level == Fail {
			t.Errorf("%s fails: %s", f.Check, f.What)
		}
		expect(t, f, f.Level, "")
	}
	if !r.OK {
		t.Error("not well")
	}
	o.ConfigErr = errors.New("listen: bad")
	if r := Run(context.Background(), o); r.OK || r.Findings[0].Level != Fail {
		t.Errorf("with a bad configuration: %+v", r.Findings[0])
	}
	if left, _ := os.ReadDir(o.StateDir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStateDir(t *testing.T) {
	o := healthy(t)
	expect(t, o.stateDir(), OK, "MiB free")
	if err := os.Chmod(o.StateDir, 0o755); err != nil {
		t.Fatal(err)
	}
	expect(t, o.stateDir(), Fail, "0755")
	if err := os.Chmod(o.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	o.Config.MinFree = 1 << 60
	expect(t, o.stateDir(), Fail, "free")
	o.StateDir = filepath.Join(o.StateDir, "none")
	expect(t, o.stateDir(), OK, "not there yet")
	if err := os.WriteFile(o.StateDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, o.stateDir(), Fail, "no directory")
}

func TestDaemonAndVersion(t *testing.T) {
	o := healthy(t)
	expect(t, o.daemon(), Warn, "none runs")
	if err := os.WriteFile(o.socket(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, o.daemon(), Fail, "nobody")
	o.Status = &Status{Version: "1", Worker: os.Getpid()}
	expect(t, o.daemon(), OK, "answers")
	expect(t, o.version(), OK, "1")
	expect(t, o.keeper(), Warn, "no keeper")
	o.Status.Version, o.Status.Keeper = "2", os.Getpid()
	expect(t, o.version(), Warn, "is 2")
	expect(t, o.keeper(), OK, "keeps the sessions")
}

func TestRoom(t *testing.T) {
	o := healthy(t)
	o.Status = &Status{Worker: os.Getpid(), Keeper: os.Getpid()}
	expect(t, o.descriptors(), OK, "limit")
	expect(t, o.store(), OK, "limit")
	expect(t, roomFor("x", 93, "it", &o), Warn, "enough for 9 sessions")
	expect(t, roomFor("x", 94, "it", &o), OK, "94")
	o.Config.SessionsTotal = 1 << 30
	expect(t, o.terminals(), Warn, "allows")
}

func TestDatabase(t *testing.T) {
	ctx := context.Background()
	o := healthy(t)
	expect(t, o.database(ctx), OK, "none yet")
	path := filepath.Join(o.StateDir, "ptyd.db")
	s, err := store.Open(ctx, store.Options{DSN: path})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, o.database(ctx), OK, "no damage")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	expect(t, o.database(gone), Warn, "within")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, o.database(ctx), Fail, "not a database")
}

func TestExposure(t *testing.T) {
	o := healthy(t)
	expect(t, o.exposure(), OK, "this machine alone")
	o.Config.Listen, o.Config.Insecure = "0.0.0.0:7373", true
	expect(t, o.exposure(), Warn, "without TLS")
	for left, want := range map[time.Duration]Level{-time.Hour: Fail, time.Hour: Warn, 60 * 24 * time.Hour: OK} {
		o.Config.TLSCert, o.Config.TLSKey = certificate(t, time.Now().Add(left))
		expect(t, o.exposure(), want, "with TLS")
	}
	o.Config.TLSKey = o.Config.TLSCert
	expect(t, o.exposure(), Fail, "cannot be used")
}

// certificate makes files of a certificate that ends then.
func certificate(t *testing.T, end time.Time) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-90 * 24 * time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kb, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = dir+"/cert.pem", dir+"/key.pem"
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: kb}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestCgroups(t *testing.T) {
	o := healthy(t)
	o.Status = &Status{NoCgroup: "no tree", Missing: map[string]string{"memory": "no tree", "pids": "no tree"}}
	all := o.cgroups()
	expect(t, all[0], Warn, "no tree")
	expect(t, all[1], Warn, "refused")
	o.Config.SessionPids = 10
	expect(t, o.cgroups()[2], Fail, "refused") // no session can start
	o.Status = &Status{Cgroup: "/ptyd-x"}
	for _, f := range o.cgroups() {
		expect(t, f, OK, "")
	}
}

func TestClock(t *testing.T) {
	expect(t, clock(time.Unix(0, 0)), Fail, "1970")
	if f := clock(time.Now()); f.Level == Fail {
		t.Errorf("the clock of this machine: %+v", f)
	}
}

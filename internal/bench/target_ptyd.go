package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// ptydTarget is the shipped daemon with a scratch state directory.
type ptydTarget struct {
	*process
	binary  string
	args    []string     // beside the usual ones
	local   *http.Client // over the Unix socket
	token   string
	version string
}

func (t *ptydTarget) name() string { return strings.Join(append([]string{"ptyd"}, t.args...), " ") }

func (t *ptydTarget) start(ctx context.Context, dir string) (took time.Duration, err error) {
	addr, err := freeAddr()
	if err != nil {
		return 0, err
	}
	state := filepath.Join(dir, "state")
	argv := append([]string{t.binary, "serve", "--state-dir", state, "--listen", addr,
		"--sessions-per-owner", "5000"}, t.args...) // one owner has them all here
	t.process, took, err = launch(ctx, dir, addr, "/healthz", argv...)
	if err != nil {
		return 0, err
	}
	t.local = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(state, "ptyd.sock"))
		},
	}}
	if err := t.login(ctx); err != nil {
		t.stop()
		return 0, err
	}
	return took, nil
}

// login gets a token through the Unix socket, whose peer is the first admin.
func (t *ptydTarget) login(ctx context.Context) error {
	var made struct {
		Secret string `json:"secret"`
	}
	if err := t.call(ctx, http.MethodPost, "/v1/tokens", map[string]any{"name": "bench-" + filepath.Base(t.dir) + "-" + t.addr}, &made); err != nil {
		return err
	}
	t.token = made.Secret
	var me struct {
		Version string `json:"version"`
		Build   string `json:"build"`
	}
	if err := t.call(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		return err
	}
	t.version = me.Version
	if me.Build != "" && me.Build != me.Version {
		t.version += " (" + me.Build + ")"
	}
	return nil
}

func (t *ptydTarget) stop() {
	t.local.CloseIdleConnections()
	t.process.stop()
}

func (t *ptydTarget) create(ctx context.Context, argv []string) (string, error) {
	var session struct {
		ID string `json:"id"`
	}
	err := t.call(ctx, http.MethodPost, "/v1/sessions", map[string]any{"argv": argv, "cols": 80, "rows": 24}, &session)
	return session.ID, err
}

func (t *ptydTarget) view(ctx context.Context, id string, _ uint64) (viewer, error) {
	return dialPtyd(ctx, t.addr, t.token, id)
}

func (t *ptydTarget) contact() contact { return contact{Kind: "ptyd", Addr: t.addr, Token: t.token} }

// workerStatus is what the daemon tells about the process that serves.
type workerStatus struct {
	PID     int `json:"pid"`
	Adopted int `json:"adopted"` // living sessions that it took over when it started
}

func (t *ptydTarget) worker(ctx context.Context) (workerStatus, error) {
	var st struct {
		Worker workerStatus `json:"worker"`
	}
	err := t.call(ctx, http.MethodGet, "/v1/status", nil, &st)
	return st.Worker, err
}

// call makes one request of the control API and decodes its answer.
func (t *ptydTarget) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := t.local.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, b)
	}
	return json.Unmarshal(b, out)
}

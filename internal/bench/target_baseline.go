package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// baselineTarget is the bench binary itself, serving package baseline.
type baselineTarget struct {
	*process
	label string
	self  string
}

func (t *baselineTarget) name() string { return t.label }

func (t *baselineTarget) start(ctx context.Context, dir string) (took time.Duration, err error) {
	addr, err := freeAddr()
	if err != nil {
		return 0, err
	}
	t.process, took, err = launch(ctx, dir, addr, "/", t.self, RoleBaseline, addr)
	return took, err
}

func (t *baselineTarget) create(ctx context.Context, argv []string) (string, error) {
	u := "http://" + t.addr + "/new?" + url.Values{"arg": argv}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("create: %s: %s", resp.Status, b)
	}
	return string(b), err
}

func (t *baselineTarget) view(ctx context.Context, id string, from uint64) (viewer, error) {
	return dialBaseline(ctx, t.addr, id, from)
}

func (t *baselineTarget) contact() contact { return contact{Kind: "baseline", Addr: t.addr} }

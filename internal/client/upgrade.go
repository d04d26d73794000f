package client

import (
	"context"
	"net/http"
	"time"
)

// State is what of the daemon's status tells about its processes.
type State struct {
	Keeper *struct {
		PID      int    `json:"pid"`
		Version  string `json:"version"`
		UptimeS  int64  `json:"uptime_s"`
		Path     string `json:"path"`
		Upgrades int    `json:"upgrades"`
	} `json:"keeper"`
	Worker struct {
		PID        int    `json:"pid"`
		Version    string `json:"version"`
		UptimeS    int64  `json:"uptime_s"`
		Generation int    `json:"generation"`
		Restarts   int    `json:"restarts"`
		Adopted    int    `json:"adopted"`
		Ended      int    `json:"ended"`
		Lost       int    `json:"lost"`
		Recovered  int64  `json:"bytes_recovered"`
	} `json:"worker"`
	Survives struct {
		Worker  bool `json:"worker"`
		Upgrade bool `json:"upgrade"`
		Keeper  bool `json:"keeper"`
	} `json:"survives"`
	UpgradeFailed string `json:"upgrade_failed"`
}

// State asks for it. Unlike other calls it does not wait for long: the worker
// that would answer may be the one that does not come up.
func (c *Client) State(ctx context.Context) (s State, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = c.call(ctx, request{method: http.MethodGet, path: []string{"status"}}, &s)
	return s, err
}

// Binary is a ptyd.
type Binary struct {
	Version string `json:"version"`
	Build   string `json:"build"`
	Path    string `json:"path"`
}

// Migration is a change of the database's schema.
type Migration struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Upgrade is a change of the worker that has begun.
type Upgrade struct {
	From       Binary     `json:"from"`
	To         Binary     `json:"to"`
	Migrates   *Migration `json:"migrates"`
	Generation int        `json:"generation"` // of the worker that goes
	Upgrades   int        `json:"upgrades"`   // of the keeper so far
	Sessions   int        `json:"sessions"`   // that run now
}

// Upgrade has the daemon go on with the binary at path; "" is the file that it
// was started from. It returns when that has begun.
func (c *Client) Upgrade(ctx context.Context, path string, oneWay bool) (u Upgrade, err error) {
	body := map[string]any{}
	if path != "" {
		body["path"] = path
	}
	if oneWay {
		body["one_way"] = true
	}
	_, err = c.call(ctx, request{method: http.MethodPost, path: []string{"upgrade"}, body: body}, &u)
	return u, err
}

// Restart has the daemon go on with a new worker of the same binary. It returns
// when that has begun.
func (c *Client) Restart(ctx context.Context) (u Upgrade, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: []string{"restart"}}, &u)
	return u, err
}

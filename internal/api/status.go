package api

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
)

// localHost is addr as somebody on this machine reaches it.
func localHost(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func (s *Server) status(c *call, _ nothing) (Status, error) {
	counts, err := CountSessions(c.r.Context(), s.mgr)
	if err != nil {
		return Status{}, err
	}
	out := Status{
		Version: s.Build.Version, Build: s.Build.Commit, PID: os.Getpid(),
		UptimeS: int64(time.Since(s.started) / time.Second), StartedAt: stamp{s.started},
		StateDir: s.StateDir, Sessions: counts, Viewers: s.mgr.Stats().Viewers,
		Limits: s.Daemon.Limits(), Disk: s.Daemon.Disk(), Notes: s.Daemon.Notes(),
		Cgroups: s.Daemon.Cgroups(), Checkpoints: s.Daemon.Checkpoints(),
		Listen: []string{},
	}
	p := s.Daemon.Processes(c.r.Context())
	out.Keeper, out.Worker, out.Survives, out.UpgradeFailed = p.Keeper, p.Worker, p.Survives, p.UpgradeFailed
	out.Worker.StartedAt, out.Worker.UptimeS = out.StartedAt, out.UptimeS
	if s.Addr != "" {
		out.Listen = append(out.Listen, s.LocalURL()+"/")
	}
	out.Listen = append(out.Listen, "unix:"+s.Socket)
	if s.PublicURL != "" {
		out.Listen = append(out.Listen, s.PublicURL+"/")
	}
	if out.Notes == nil {
		out.Notes = []string{}
	}
	return out, nil
}

func (s *Server) listAudit(c *call, _ nothing) (list[AuditRow], error) {
	limit, err := c.number("limit", 100, 1, 500)
	if err != nil {
		return list[AuditRow]{}, err
	}
	name := "after"
	if c.query.Has("cursor") {
		if name = "cursor"; c.query.Has("after") {
			return list[AuditRow]{}, problem.Field("cursor", "give cursor or after, not both")
		}
	}
	after, err := c.number(name, 0, 0, 1<<62)
	if err != nil {
		return list[AuditRow]{}, err
	}
	entries, err := s.Audit.ListAudit(c.r.Context(), after, int(limit)+1)
	if err != nil {
		return list[AuditRow]{}, err
	}
	next := ""
	if len(entries) > int(limit) {
		entries = entries[:limit]
		next = strconv.FormatInt(entries[limit-1].ID, 10)
	}
	rows := make([]AuditRow, len(entries))
	for i, e := range entries {
		row := AuditRow{ID: e.ID, At: stamp{e.At}, Principal: e.Principal, Via: e.Via, Action: e.Action, Target: e.Target, Detail: map[string]any{}}
		if e.Principal != "" {
			row.User = s.auth.UserName(c.r.Context(), e.Principal)
		}
		if err := json.Unmarshal(e.Detail, &row.Detail); err != nil {
			return list[AuditRow]{}, err
		}
		rows[i] = row
	}
	return page(rows, next), nil
}

// The probes say nothing but that: they are for anybody.

func (s *Server) healthz(*call, nothing) (Health, error) { return Health{Status: "ok"}, nil }

func (s *Server) readyz(*call, nothing) (Health, error) {
	if err := s.Daemon.Ready(); err != nil {
		return Health{}, problem.New(problem.Unavailable, "not ready").Because(err)
	}
	return Health{Status: "ok"}, nil
}

func (s *Server) openapi(c *call) error {
	data, err := s.document()
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	s.write(c.w, c.r, data)
	return nil
}

func (s *Server) metrics(c *call) error {
	if s.Metrics == nil {
		return problem.New(problem.NotFound, "metrics are turned off").WithHint("set metrics to true")
	}
	s.Metrics.serve(c.w)
	return nil
}

var _ http.Handler = (*Server)(nil)

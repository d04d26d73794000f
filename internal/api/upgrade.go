package api

import (
	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// upgradeDaemon goes on with another binary. A path is taken only from the
// socket's own peer: whoever can name a file to execute has all the rights of
// the daemon's user, which a stolen token must not give.
func (s *Server) upgradeDaemon(c *call, in AskedUpgrade) (Upgrade, error) {
	if in.Path != "" && c.p.Via != auth.ViaSocket {
		err := problem.New(problem.Forbidden, "a binary can only be named by the daemon's socket, without a token").
			WithHint("run ptyd upgrade beside the daemon, or put the file where the daemon was started from and name none")
		s.auditRefusal(c, err)
		return Upgrade{}, err
	}
	u, err := s.Daemon.Upgrade(c.r.Context(), in.Path, in.OneWay)
	if err != nil {
		return u, err
	}
	s.audit(c, "daemon.upgrade", u.To.Path, map[string]any{"from": u.From.Version, "to": u.To.Version, "build": u.To.Build})
	return u, nil
}

func (s *Server) restartDaemon(c *call, _ nothing) (Upgrade, error) {
	u, err := s.Daemon.Restart(c.r.Context())
	if err != nil {
		return u, err
	}
	s.audit(c, "daemon.restart", "", nil)
	return u, nil
}

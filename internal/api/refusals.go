package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/store"
)

// Refused requests are written down, but not as fast as anybody can send them:
// a handful at once, then one every few seconds. The next row says how many
// were left out.
const (
	refusalBurst = 50
	refusalEvery = 5 * time.Second
)

type refusals struct {
	// mu guards both below.
	mu     sync.Mutex
	bucket *rate.Limiter
	missed int
}

func newRefusals() *refusals {
	return &refusals{bucket: rate.NewLimiter(rate.Every(refusalEvery), refusalBurst)}
}

// take reports whether a row may be written, and how many were left out before.
func (f *refusals) take() (missed int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.bucket.Allow() {
		f.missed++
		return 0, false
	}
	missed, f.missed = f.missed, 0
	return missed, true
}

// auditRefusal writes down a refused request if it says something: a request
// without any credential is everyday life, a bad one is not.
func (s *Server) auditRefusal(c *call, err error) {
	switch problem.CodeOf(err) {
	case problem.Forbidden, problem.OriginRefused, problem.RateLimited:
	case problem.Unauthenticated:
		if _, given := c.r.Header["Authorization"]; !given && c.r.Header.Get(keyHeader) == "" {
			return
		}
	default:
		return
	}
	s.refused(c.r, c.p, string(problem.CodeOf(err)), c.route.method+" "+c.route.pattern)
}

func (s *Server) refused(r *http.Request, p auth.Principal, why, target string) {
	missed, ok := s.refusals.take()
	if !ok {
		return
	}
	detail := map[string]any{"why": why, "remote": s.remoteAddr(r)}
	if missed > 0 {
		detail["left_out_before"] = missed
	}
	s.append(r.Context(), p, "request.refused", target, detail)
}

// audit writes down what c's principal did.
func (s *Server) audit(c *call, action, target string, detail map[string]any) {
	if detail == nil {
		detail = map[string]any{}
	}
	if remote := s.remoteAddr(c.r); remote != "" {
		detail["remote"] = remote
	}
	s.append(c.r.Context(), c.p, action, target, detail)
}

// append does not fail the request: what it tells has happened already.
func (s *Server) append(ctx context.Context, p auth.Principal, action, target string, detail map[string]any) {
	data, err := json.Marshal(detail)
	if err == nil {
		err = s.Audit.AppendAudit(context.WithoutCancel(ctx), store.AuditEntry{
			At: failpoint.Now(), Principal: p.UserID, Via: p.Via, Action: action, Target: target, Detail: data,
		})
	}
	if err != nil {
		s.log.Error("audit row not written", zap.String("action", action), zap.String("target", target), zap.Error(err))
	}
}

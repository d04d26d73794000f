package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// maxWait bounds how long one request waits: below the minute after which
// proxies commonly give up.
const maxWait = 50 * time.Second

// maxOutput bounds the bytes one request reads.
const maxOutput = 1 << 20

// find resolves the {id} of the path to a session the caller may reach. To
// anybody else it is not there.
func (s *Server) find(c *call) (ptymgr.Info, error) {
	ref := c.r.PathValue("id")
	info, err := s.mgr.Resolve(c.r.Context(), c.p.UserID, ref)
	if problem.Is(err, problem.NotFound) && c.p.Role == auth.Admin {
		info, err = s.mgr.Resolve(c.r.Context(), "", ref)
	}
	if err != nil {
		return ptymgr.Info{}, err
	}
	if !c.p.CanSee(info.Owner) {
		return ptymgr.Info{}, problem.New(problem.NotFound, "there is no session %q", clip(ref))
	}
	return info, nil
}

func (s *Server) session(c *call, in ptymgr.Info) Session {
	name := c.p.UserName
	if in.Owner != c.p.UserID {
		name = s.auth.UserName(c.r.Context(), in.Owner)
	}
	out := toSession(in, name)
	out.Usage = toUsage(s.mgr.Usage(in.ID))
	return out
}

func (s *Server) createSession(c *call, in CreateSession) (Session, error) {
	switch {
	case len(in.Argv) > 0 && in.Shell:
		return Session{}, problem.Field("shell", "give argv or shell, not both")
	case len(in.Argv) == 0 && !in.Shell:
		return Session{}, problem.Field("argv", "must hold a program, or shell must be true")
	}
	key, err := oneHeader(c.r, "Idempotency-Key")
	if err != nil {
		return Session{}, err
	}
	env, err := envList(in.Env)
	if err != nil {
		return Session{}, err
	}
	info, existing, err := s.mgr.Create(c.r.Context(), ptymgr.Spec{
		Argv: in.Argv, Shell: in.Shell, Cwd: in.Cwd, Env: env, Cols: given(in.Cols), Rows: given(in.Rows), Name: in.Name,
		Labels: in.Labels, Owner: c.p.UserID, IdempotencyKey: key, OutputLimit: in.OutputLimit,
		NoCheckpoint: in.NoCheckpoint, MemoryLimit: in.Memory, PidsLimit: in.Pids,
	})
	if err != nil {
		return Session{}, err
	}
	return s.created(c, info, existing), nil
}

// created answers with a session that was made now or, by the same key, before.
func (s *Server) created(c *call, info ptymgr.Info, existing bool) Session {
	if existing {
		c.status = http.StatusOK
		c.w.Header().Set("Idempotency-Replayed", "true")
	} else {
		detail := map[string]any{"name": info.Name, "program": clip(program(info))}
		if info.RerunOf != "" {
			detail["rerun_of"] = info.RerunOf
		}
		s.audit(c, "session.create", info.ID, detail)
	}
	return s.session(c, info)
}

// runAgain starts an ended session once more, for its owner.
func (s *Server) runAgain(c *call, _ nothing) (Session, error) {
	key, err := oneHeader(c.r, "Idempotency-Key")
	if err != nil {
		return Session{}, err
	}
	old, err := s.find(c)
	if err != nil {
		return Session{}, err
	}
	info, existing, err := s.mgr.RunAgain(c.r.Context(), old.ID, key)
	if err != nil {
		return Session{}, err
	}
	return s.created(c, info, existing), nil
}

// given is the number, or 0 when it is absent.
func given(n *uint16) uint16 {
	if n == nil {
		return 0
	}
	return *n
}

// oneHeader returns a header that may be given once, "" when it is not.
func oneHeader(r *http.Request, name string) (string, error) {
	switch v := r.Header.Values(name); {
	case len(v) == 0:
		return "", nil
	case len(v) > 1 || v[0] == "":
		return "", problem.Field(name, "must be given once and not be empty")
	default:
		return v[0], nil
	}
}

// program is what a session runs, without arguments: they may hold secrets.
func program(in ptymgr.Info) string {
	if len(in.Argv) == 0 {
		return "shell"
	}
	return in.Argv[0]
}

func (s *Server) listSessions(c *call, _ nothing) (list[Session], error) {
	limit, cursor, err := c.paging()
	if err != nil {
		return list[Session]{}, err
	}
	f := ptymgr.Filter{Name: c.query.Get("name"), After: cursor, Limit: limit, Labels: map[string]string{}}
	for _, st := range c.query["state"] {
		state := ptymgr.State(st)
		if !slices.Contains([]ptymgr.State{ptymgr.Starting, ptymgr.Running, ptymgr.Exited, ptymgr.Lost}, state) {
			return list[Session]{}, problem.Field("state", "there is no state %q", clip(st))
		}
		f.States = append(f.States, state)
	}
	for _, l := range c.query["label"] {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return list[Session]{}, problem.Field("label", "%q is not KEY=VALUE", clip(l))
		}
		if old, twice := f.Labels[k]; twice && old != v {
			return page[Session](nil, ""), nil // no session has both
		}
		f.Labels[k] = v
	}
	if f.Owner, err = s.ownerFilter(c); err != nil {
		return list[Session]{}, err
	}
	infos, next, err := s.mgr.List(c.r.Context(), f)
	if err != nil {
		return list[Session]{}, err
	}
	out := make([]Session, len(infos))
	for i, in := range infos {
		out[i] = s.session(c, in)
	}
	return page(out, next), nil
}

// ownerFilter is whose sessions a list may hold: "" is everybody's.
func (s *Server) ownerFilter(c *call) (string, error) {
	owner := c.query.Get("owner")
	if owner == c.p.UserID || owner == c.p.UserName {
		return c.p.UserID, nil
	}
	if c.p.Role != auth.Admin {
		if owner != "" {
			return "", problem.New(problem.Forbidden, "only an admin may list another user's sessions")
		}
		return c.p.UserID, nil
	}
	if owner == "" || idRE().MatchString(owner) {
		return owner, nil
	}
	u, err := s.auth.User(c.r.Context(), c.p, owner)
	if err != nil {
		return "", problem.Field("owner", "there is no user %q", clip(owner)).Because(err)
	}
	return u.ID, nil
}

func (s *Server) getSession(c *call, _ nothing) (Session, error) {
	info, err := s.find(c)
	if err != nil {
		return Session{}, err
	}
	return s.session(c, info), nil
}

func (s *Server) patchSession(c *call, in PatchSession) (Session, error) {
	info, err := s.find(c)
	if err != nil {
		return Session{}, err
	}
	old := info.Labels
	if in.Labels != nil {
		if info, err = s.mgr.SetLabels(c.r.Context(), info.ID, *in.Labels); err != nil {
			return Session{}, err
		}
	}
	if in.Name != nil && *in.Name != info.Name {
		renamed, err := s.mgr.Rename(c.r.Context(), info.ID, *in.Name)
		if err != nil {
			if in.Labels != nil { // both or none
				_, back := s.mgr.SetLabels(context.WithoutCancel(c.r.Context()), info.ID, old)
				err = errors.Join(err, back)
			}
			return Session{}, err
		}
		info = renamed
	}
	return s.session(c, info), nil
}

func (s *Server) deleteSession(c *call, _ nothing) (nothing, error) {
	force, err := c.flag("force")
	if err != nil {
		return nothing{}, err
	}
	info, err := s.find(c)
	if err != nil {
		return nothing{}, err
	}
	setDeadlines(c.w, s.closeTime(nil))
	if err := s.mgr.Remove(c.r.Context(), info.ID, force); err != nil {
		return nothing{}, err
	}
	s.audit(c, "session.delete", info.ID, map[string]any{"name": info.Name, "forced": force})
	return nothing{}, nil
}

func (s *Server) resizeSession(c *call, in Resize) (Session, error) {
	info, err := s.find(c)
	if err != nil {
		return Session{}, err
	}
	if err := s.mgr.Resize(c.r.Context(), info.ID, in.Cols, in.Rows); err != nil {
		return Session{}, err
	}
	return s.getSession(c, nothing{})
}

func (s *Server) signalSession(c *call, in Signal) (nothing, error) {
	info, err := s.find(c)
	if err != nil {
		return nothing{}, err
	}
	if err := s.mgr.Signal(c.r.Context(), info.ID, in.Signal); err != nil {
		return nothing{}, err
	}
	s.audit(c, "session.signal", info.ID, map[string]any{"signal": clip(in.Signal)})
	return nothing{}, nil
}

func (s *Server) closeSession(c *call, in CloseSession) (Session, error) {
	info, err := s.find(c)
	if err != nil {
		return Session{}, err
	}
	grace := time.Duration(-1) // the configured one
	if in.GraceMS != nil {
		grace = time.Duration(*in.GraceMS) * time.Millisecond
	}
	if grace < 0 {
		grace = time.Duration(s.Daemon.Limits().GraceMS) * time.Millisecond
	}
	setDeadlines(c.w, s.closeTime(&grace))
	wasEnded := info.State.Ended()
	if info, err = s.mgr.Close(c.r.Context(), info.ID, grace); err != nil {
		return Session{}, err
	}
	if !wasEnded {
		s.audit(c, "session.close", info.ID, map[string]any{"name": info.Name})
	}
	return s.session(c, info), nil
}

// closeTime is how long a request that ends a session may take.
func (s *Server) closeTime(grace *time.Duration) time.Duration {
	g := time.Duration(s.Daemon.Limits().GraceMS) * time.Millisecond
	if grace != nil {
		g = *grace
	}
	return g + requestTime
}

func (s *Server) inputSession(c *call, in Input) (nothing, error) {
	info, err := s.find(c)
	if err != nil {
		return nothing{}, err
	}
	data, err := inputBytes(in)
	if err != nil {
		return nothing{}, err
	}
	return nothing{}, s.mgr.Input(c.r.Context(), info.ID, data)
}

func inputBytes(in Input) ([]byte, error) {
	given := 0
	for _, g := range []bool{in.Text != nil, in.Base64 != nil, in.Keys != nil} {
		if g {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, problem.Field("text", "give exactly one of text, base64 and keys")
	case in.Text != nil:
		return []byte(*in.Text), nil
	case in.Base64 != nil:
		data, err := base64.StdEncoding.DecodeString(*in.Base64)
		if err != nil {
			return nil, problem.Field("base64", "is not base64").Because(err)
		}
		return data, nil
	case len(in.Keys) > maxKeys:
		return nil, problem.Field("keys", "has %d items; at most %d are allowed", len(in.Keys), maxKeys)
	}
	return ptymgr.EncodeKeys(in.Keys)
}

func (s *Server) sessionOutput(c *call) error {
	offset, err := c.number("offset", 0, -1<<62, 1<<62)
	if err != nil {
		return err
	}
	limit, err := c.number("limit", maxOutput, 1, maxOutput)
	if err != nil {
		return err
	}
	wait, err := c.span("wait", maxWait)
	if err != nil {
		return err
	}
	info, err := s.find(c)
	if err != nil {
		return err
	}
	from := uint64(max(offset, 0))
	if offset < 0 {
		from = info.Offset - min(uint64(-offset), info.Offset)
		from = max(from, info.Oldest)
	}
	setDeadlines(c.w, wait+requestTime)
	chunk, err := s.mgr.Output(c.r.Context(), info.ID, from, int(limit), wait)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(chunk.Data)))
	for name, n := range map[string]uint64{"Ptyd-Offset": chunk.Offset, "Ptyd-Next-Offset": chunk.Next, "Ptyd-Oldest-Offset": chunk.Oldest, "Ptyd-Head-Offset": chunk.Head} {
		h.Set(name, strconv.FormatUint(n, 10))
	}
	h.Set("Ptyd-Epoch", fmt.Sprintf("%016x", chunk.Epoch))
	h.Set("Ptyd-Eof", strconv.FormatBool(chunk.EOF))
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(chunk.Data) // the client may be gone
	}
	return nil
}

func (s *Server) waitSession(c *call, in WaitFor) (WaitResult, error) {
	cond := ptymgr.Conditions{Exit: in.Exit, From: in.From}
	if in.Text != "" {
		if len(in.Text) > maxPattern {
			return WaitResult{}, problem.Field("text", "has %d bytes; at most %d are allowed", len(in.Text), maxPattern)
		}
		re, err := regexp.Compile(in.Text)
		if err != nil {
			return WaitResult{}, problem.Field("text", "is not a regular expression: %v", err)
		}
		cond.Text = re
	}
	if in.IdleMS != nil {
		cond.Idle = time.Duration(*in.IdleMS) * time.Millisecond
	}
	if !cond.Exit && cond.Text == nil && cond.Idle == 0 {
		return WaitResult{}, problem.New(problem.InvalidArgument, "give at least one of exit, text and idle_ms")
	}
	timeout := maxWait
	if in.TimeoutMS != nil {
		timeout = time.Duration(*in.TimeoutMS) * time.Millisecond
	}
	info, err := s.find(c)
	if err != nil {
		return WaitResult{}, err
	}
	setDeadlines(c.w, timeout+requestTime)
	ctx, stop := context.WithTimeout(c.r.Context(), timeout)
	defer stop()
	res, err := s.mgr.Wait(ctx, info.ID, cond)
	if err != nil {
		return WaitResult{}, err
	}
	out := WaitResult{Impossible: res.Impossible, Next: res.Next, Session: s.session(c, res.Info)}
	if res.Matched != "" {
		out.Matched = &res.Matched
	}
	if res.Matched == "text" {
		out.Match = &TextMatch{Start: res.Start, End: res.End, Text: strings.ToValidUTF8(res.Text, "\uFFFD")}
	}
	return out, nil
}

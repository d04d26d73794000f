package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/failpoint"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

func (s *Server) login(c *call, in Login) (LoggedIn, error) {
	if _, viaSocket := peer(c.r.Context()); viaSocket {
		return LoggedIn{}, problem.New(problem.InvalidArgument, "browsers log in over the TCP address")
	}
	var (
		w   auth.WebLogin
		err error
		how = "password"
	)
	switch {
	case in.Link != "" && (in.Name != "" || in.Password != ""):
		err = problem.Field("link", "give link, or name and password, not both")
	case in.Link != "":
		how = "link"
		w, err = s.auth.RedeemLink(c.r.Context(), in.Link, s.remoteAddr(c.r))
	case in.Name == "":
		err = problem.Field("name", "must be given, or link")
	default:
		w, err = s.auth.Login(c.r.Context(), in.Name, in.Password, s.remoteAddr(c.r))
	}
	switch problem.CodeOf(err) {
	case problem.Unauthenticated, problem.RateLimited:
		if err != nil {
			s.refused(c.r, auth.Principal{}, "login by "+how+": "+string(problem.CodeOf(err)), clip(in.Name))
		}
	}
	if problem.Is(err, problem.RateLimited) {
		c.w.Header().Set("Retry-After", "10")
	}
	if err != nil {
		return LoggedIn{}, err
	}
	c.p = w.Principal
	s.audit(c, "login", w.Principal.UserName, map[string]any{"by": how})
	s.setCookie(c.w, c.r, w.Cookie, w.Expires)
	return LoggedIn{Key: w.Key, User: toUserRef(w.Principal), ExpiresAt: stamp{w.Expires}}, nil
}

func (s *Server) logout(c *call, _ nothing) (nothing, error) {
	if err := s.auth.Logout(c.r.Context(), c.p); err != nil {
		return nothing{}, err
	}
	s.setCookie(c.w, c.r, "", time.Time{})
	s.audit(c, "logout", c.p.UserName, nil)
	return nothing{}, nil
}

func (s *Server) createLink(c *call, in NewLink) (Link, error) {
	secret, expires, err := s.auth.CreateLink(c.r.Context(), c.p, in.User)
	if err != nil {
		return Link{}, err
	}
	user := in.User
	if user == "" {
		user = c.p.UserName
	}
	s.audit(c, "link.create", user, nil)
	return Link{URL: s.LoginURL(c.r, secret), ExpiresAt: stamp{expires}}, nil
}

// LoginURL is the address that logs a browser in with secret, as seen by
// whoever sent r; with r nil, by somebody on this machine. The secret stands in
// the fragment, which no browser sends to any server.
func (s *Server) LoginURL(r *http.Request, secret string) string {
	return s.baseURL(r) + "/#login=" + secret
}

// baseURL is the daemon's address without a final slash, for whoever sent r.
func (s *Server) baseURL(r *http.Request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	if r != nil {
		if _, viaSocket := peer(r.Context()); !viaSocket {
			return s.urlOf(r.Host) // on the allow-list
		}
	}
	return s.LocalURL()
}

// LocalURL is the address of the TCP listener as somebody on this machine
// reaches it, without a final slash.
func (s *Server) LocalURL() string { return s.urlOf(localHost(s.Addr)) }

func (s *Server) urlOf(host string) string {
	scheme := "http"
	if s.TLS {
		scheme = "https"
	}
	return scheme + "://" + host + s.base
}

func (s *Server) createTicket(c *call, _ nothing) (Ticket, error) {
	// The time first: the ticket ends no sooner than is said.
	expires := failpoint.Now().Add(auth.TicketTTL)
	return Ticket{Ticket: s.auth.Ticket(c.p), ExpiresAt: stamp{expires}}, nil
}

func (s *Server) me(c *call, _ nothing) (Me, error) {
	return Me{User: toUserRef(c.p), Via: c.p.Via, Build: s.Build.Commit, Version: s.Build.Version, Permissions: auth.Actions(c.p.Role)}, nil
}

func (s *Server) setOwnPassword(c *call, in NewPassword) (nothing, error) {
	if err := s.auth.SetPassword(c.r.Context(), c.p, "", in.Password); err != nil {
		return nothing{}, err
	}
	s.audit(c, "user.password", c.p.UserName, map[string]any{"removed": in.Password == ""})
	return nothing{}, nil
}

func (s *Server) listTokens(c *call, _ nothing) (list[Token], error) {
	tokens, err := s.auth.Tokens(c.r.Context(), c.p)
	if err != nil {
		return list[Token]{}, err
	}
	return cut(c, tokens, func(t auth.Token) string { return t.ID }, toToken)
}

func (s *Server) createToken(c *call, in NewToken) (CreatedToken, error) {
	if in.TTL > int64(auth.MaxTokenTTL/time.Second) {
		return CreatedToken{}, problem.Field("ttl_s", "must be at most %d", int64(auth.MaxTokenTTL/time.Second))
	}
	t, secret, err := s.auth.CreateToken(c.r.Context(), c.p, auth.NewToken{
		Name: in.Name, User: in.User, Role: in.Role, TTL: time.Duration(in.TTL) * time.Second,
	})
	if err != nil {
		return CreatedToken{}, err
	}
	s.audit(c, "token.create", t.ID, map[string]any{"name": t.Name, "user": t.UserName, "role": t.Role, "expires_at": stamp{t.ExpiresAt}})
	return CreatedToken{Token: toToken(t), Secret: secret}, nil
}

func (s *Server) revokeToken(c *call, _ nothing) (nothing, error) {
	ref := c.r.PathValue("id")
	if err := s.auth.RevokeToken(c.r.Context(), c.p, ref); err != nil {
		return nothing{}, err
	}
	s.audit(c, "token.revoke", clip(ref), nil)
	return nothing{}, nil
}

// openSocket checks what an upgrade needs and hands the connection over. A
// browser cannot send headers with an upgrade: a cookie's key, or a ticket,
// comes in HELLO.
func (s *Server) openSocket(c *call) error {
	err := func() error {
		if !isUpgrade(c.r) {
			return problem.Field("Upgrade", "this address speaks WebSocket only")
		}
		if !offers(c.r, wire.Subprotocol) {
			return problem.Field("Sec-WebSocket-Protocol", "must offer %s", wire.Subprotocol)
		}
		_, bearer := c.r.Header["Authorization"]
		if _, viaSocket := peer(c.r.Context()); bearer || viaSocket {
			if err := s.checkOrigin(c.r, false); err != nil {
				return err
			}
			p, err := s.credential(c.r)
			if err != nil {
				return err
			}
			if c.p = p; !p.Can(c.route.action) {
				return problem.New(problem.Forbidden, "the role %q may not do %s", p.Role, c.route.action)
			}
			s.WS.Serve(c.w, c.r, &p, "")
			return nil
		}
		cookie, err := s.cookie(c.r)
		if err != nil {
			return err
		}
		if err := s.checkOrigin(c.r, cookie != ""); err != nil {
			return err
		}
		s.WS.Serve(c.w, c.r, nil, cookie)
		return nil
	}()
	if err != nil {
		s.auditRefusal(c, err)
	}
	return err
}

// offers reports whether an upgrade offers the subprotocol.
func offers(r *http.Request, protocol string) bool {
	for _, v := range r.Header.Values("Sec-WebSocket-Protocol") {
		if slices.ContainsFunc(strings.Split(v, ","), func(p string) bool { return strings.TrimSpace(p) == protocol }) {
			return true
		}
	}
	return false
}

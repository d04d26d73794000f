package auth

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
)

// Login checks a password. Unknown names, users without a password and disabled
// users get the same answer at the same cost as a wrong password.
func (s *Service) Login(ctx context.Context, name, password, remote string) (WebLogin, error) {
	attempt, err := s.beginLogin(name, remote)
	if err != nil {
		return WebLogin{}, err
	}
	failed := true
	defer func() { attempt(failed) }()

	if len(password) > MaxPassword {
		password = "" // never a stored one, and costs the same
	}
	a, err := s.store.AccountByName(ctx, name)
	if err != nil && !problem.Is(err, problem.NotFound) {
		failed = false
		return WebLogin{}, err
	}
	right, err := s.passwords.verify(ctx, a.PasswordHash, password)
	if err != nil {
		failed = false
		return WebLogin{}, err
	}
	if !right || a.Disabled {
		s.log.Warn("login failed", zap.String("name", loggable(name)), zap.String("remote", remote))
		return WebLogin{}, errLogin()
	}

	w, login := s.newWeb(a)
	if err := s.store.InsertWeb(ctx, w, a.PasswordHash); err != nil {
		if problem.Is(err, problem.NotFound) {
			return WebLogin{}, errLogin() // changed or disabled meanwhile
		}
		failed = false
		return WebLogin{}, err
	}
	failed = false
	login.Principal = principal(a, w.Role, ViaCookie, w.ID, w.ExpiresAt)
	return login, nil
}

// RedeemLink uses up a login link.
func (s *Service) RedeemLink(ctx context.Context, secret, remote string) (WebLogin, error) {
	attempt, ok := s.byRemote.begin(remoteKey(remote))
	if !ok {
		return WebLogin{}, errTooMany()
	}
	failed := false
	defer func() { attempt(failed) }()

	if len(secret) > maxSecretLen {
		failed = true
		return WebLogin{}, errLink()
	}
	w, login := s.newWeb(Account{})
	c, err := s.store.RedeemLink(ctx, hashSecret(secret), s.now(), w)
	if problem.Is(err, problem.NotFound) {
		failed = true
		s.log.Warn("login link refused", zap.String("remote", remote))
		return WebLogin{}, errLink()
	}
	if err != nil {
		return WebLogin{}, err
	}
	login.Principal = fromCredential(c, ViaCookie)
	login.Expires = c.ExpiresAt
	return login, nil
}

// newWeb makes the two secrets of a web login and the row that keeps their
// hashes.
func (s *Service) newWeb(a Account) (Web, WebLogin) {
	now := s.now()
	login := WebLogin{Cookie: newSecret(""), Key: newSecret(""), Expires: now.Add(s.webTTL)}
	return Web{
		ID:         ident.New("w"),
		UserID:     a.ID,
		Role:       Admin, // whatever the user's role is
		CookieHash: hashSecret(login.Cookie),
		KeyHash:    hashSecret(login.Key),
		CreatedAt:  now,
		ExpiresAt:  login.Expires,
	}, login
}

// Logout ends the web login that p came by, and what it opened.
func (s *Service) Logout(ctx context.Context, p Principal) error {
	if p.Via != ViaCookie {
		return problem.New(problem.InvalidArgument, "only a browser's login can log out")
	}
	if _, err := s.store.RevokeWeb(ctx, p.CredID, s.now()); err != nil {
		return err
	}
	s.bindings.end(func(b Principal) bool { return b.Via == ViaCookie && b.CredID == p.CredID })
	return nil
}

// CreateLink makes a login link for a user: oneself when userName is "", others
// by an admin only. The login it gives can do no more and lasts no longer than
// the token it was made with, and ends when that is revoked.
func (s *Service) CreateLink(ctx context.Context, by Principal, userName string) (secret string, expires time.Time, err error) {
	if err := need(by, LinkCreate); err != nil {
		return "", time.Time{}, err
	}
	a, err := s.target(ctx, by, userName)
	if err != nil {
		return "", time.Time{}, err
	}
	if a.Disabled {
		return "", time.Time{}, problem.New(problem.Conflict, "the user %q is disabled", a.Name)
	}
	now := s.now()
	l := Link{
		ID:        ident.New("l"),
		UserID:    a.ID,
		Role:      by.Role,
		CreatedBy: by.UserID,
		CreatedAt: now,
		ExpiresAt: now.Add(s.linkTTL),
		Until:     by.tokenEnd(),
		Origin:    by.Origin,
	}
	secret = newSecret("")
	if err := s.store.InsertLink(ctx, l, hashSecret(secret)); err != nil {
		return "", time.Time{}, originEnded(by, err)
	}
	return secret, l.ExpiresAt, nil
}

// tokenEnd is when what p makes must end at the latest: a short-lived token
// must not breed credentials that outlive it, also not by way of a web login.
// Zero: no bound.
func (p Principal) tokenEnd() time.Time {
	if p.Origin != "" {
		return p.Expires
	}
	return time.Time{}
}

// originEnded turns what the store says when by's token was revoked meanwhile
// into what by hears with the next request anyway.
func originEnded(by Principal, err error) error {
	if by.Origin != "" && problem.Is(err, problem.NotFound) {
		return problem.New(problem.Unauthenticated, "the token was revoked")
	}
	return err
}

// target returns the account that by acts on: its own when name is "", another
// one only if by is an admin. To others, a user who is not there and one who is
// look the same.
func (s *Service) target(ctx context.Context, by Principal, name string) (Account, error) {
	if name == "" || strings.EqualFold(name, by.UserName) {
		return s.store.AccountByID(ctx, by.UserID)
	}
	if by.Role != Admin {
		return Account{}, problem.New(problem.Forbidden, "only an admin may act for another user")
	}
	return s.store.AccountByName(ctx, name)
}

// beginLogin asks both limiters for room.
func (s *Service) beginLogin(name, remote string) (done func(failed bool), err error) {
	byRemote, ok := s.byRemote.begin(remoteKey(remote))
	if !ok {
		return nil, errTooMany()
	}
	byName, ok := s.byName.begin(loggable(strings.ToLower(name)))
	if !ok {
		byRemote(false)
		return nil, errTooMany()
	}
	return func(failed bool) { byRemote(failed); byName(failed) }, nil
}

// loggable cuts a name that somebody unknown sent.
func loggable(name string) string {
	if len(name) > 64 {
		return name[:64]
	}
	return name
}

func errLogin() error {
	return problem.New(problem.Unauthenticated, "wrong name or password")
}

func errLink() error {
	return problem.New(problem.Unauthenticated, "the login link is not valid: it was used, has expired, or is incomplete").
		WithHint("make a new link: each works once and for a few minutes only")
}

func errTooMany() error {
	return problem.New(problem.RateLimited, "too many failed logins").
		WithHint("wait %d seconds and try again", int(failEvery.Seconds()))
}

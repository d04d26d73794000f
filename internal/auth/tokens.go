package auth

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/problem"
)

// maxTokenName bounds a token's name in bytes.
const maxTokenName = 64

// tokenIDPrefix begins the ids of tokens, so no name may.
const tokenIDPrefix = "t_"

// CreateToken makes a bearer token and returns its secret, which is not kept.
// Its role is at most the maker's.
func (s *Service) CreateToken(ctx context.Context, by Principal, t NewToken) (Token, string, error) {
	if err := need(by, TokenManage); err != nil {
		return Token{}, "", err
	}
	if err := checkTokenName(t.Name); err != nil {
		return Token{}, "", err
	}
	a, err := s.target(ctx, by, t.User)
	if err != nil {
		return Token{}, "", err
	}
	if a.Disabled {
		return Token{}, "", problem.New(problem.Conflict, "the user %q is disabled", a.Name)
	}
	most := LesserRole(by.Role, a.Role)
	switch {
	case t.Role == "":
		t.Role = most
	case !t.Role.Valid():
		return Token{}, "", problem.Field("role", "there is no role %q", t.Role)
	case !AtMost(t.Role, most):
		return Token{}, "", problem.New(problem.Forbidden, "the role of a token for %q can be at most %q", a.Name, most)
	}
	now := s.now()
	switch {
	case t.TTL == 0:
		t.TTL = DefaultTokenTTL
	case t.TTL < 0:
		return Token{}, "", problem.Field("ttl_s", "must be positive")
	case t.TTL > MaxTokenTTL:
		return Token{}, "", problem.Field("ttl_s", "must be at most %d", int64(MaxTokenTTL/time.Second))
	}
	expires := now.Add(t.TTL)
	if end := by.tokenEnd(); !end.IsZero() && end.Before(expires) {
		expires = end
	}
	token := Token{
		ID:        ident.New("t"),
		Name:      t.Name,
		UserID:    a.ID,
		UserName:  a.Name,
		Role:      t.Role,
		CreatedAt: now,
		ExpiresAt: expires,
		Origin:    by.Origin,
	}
	secret := newSecret(tokenPrefix)
	if err := s.store.InsertToken(ctx, token, hashSecret(secret)); err != nil {
		return Token{}, "", originEnded(by, err)
	}
	s.hub.Publish(events.Change{Type: "token", ID: token.ID, Owner: token.UserID})
	return token, secret, nil
}

func checkTokenName(name string) error {
	switch {
	case len(name) > maxTokenName:
		return problem.Field("name", "must have at most %d bytes", maxTokenName)
	case !utf8.ValidString(name):
		return problem.Field("name", "must be UTF-8")
	case strings.HasPrefix(name, tokenIDPrefix):
		return problem.Field("name", "must not begin with %q as ids do", tokenIDPrefix)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.ContainsRune(name, '/'):
		return problem.Field("name", "must hold printable characters only, and no slash")
	}
	return nil
}

// Tokens lists by's tokens, or everybody's for an admin, oldest first.
func (s *Service) Tokens(ctx context.Context, by Principal) ([]Token, error) {
	if err := need(by, TokenManage); err != nil {
		return nil, err
	}
	if by.Role == Admin {
		return s.store.ListTokens(ctx, "")
	}
	return s.store.ListTokens(ctx, by.UserID)
}

// RevokeToken revokes a token by its id or its name, for good, and with it the
// tokens, links and web logins that were made with it; what they opened ends. Revoking it again is not an error. A name is looked for among by's
// own tokens first.
func (s *Service) RevokeToken(ctx context.Context, by Principal, idOrName string) error {
	tokens, err := s.Tokens(ctx, by)
	if err != nil {
		return err
	}
	t, err := pickToken(tokens, by.UserID, idOrName)
	if err != nil {
		return err
	}
	ended, err := s.store.RevokeToken(ctx, t.ID, s.now())
	if err != nil {
		return err
	}
	// The token itself also where it was revoked before: a call that did so may
	// not have come as far as this.
	s.bindings.end(func(b Principal) bool { return b.CredID == t.ID || b.CredID != "" && slices.Contains(ended, b.CredID) })
	s.hub.Publish(events.Change{Type: "token", ID: t.ID, Owner: t.UserID})
	return nil
}

// pickToken finds the one token that ref means: its id; else the valid one of
// own with that name; else the only valid one of somebody else; else a revoked
// one, so that revoking twice is no error.
func pickToken(tokens []Token, own, ref string) (Token, error) {
	var revoked *Token
	var others []Token
	for i, t := range tokens {
		switch {
		case t.ID == ref:
			return t, nil
		case ref == "" || t.Name != ref:
		case t.UserID == own && t.RevokedAt == nil:
			return t, nil // at most one, by the store's index
		case t.UserID == own:
			revoked = &tokens[i]
		case t.RevokedAt == nil:
			others = append(others, t)
		case revoked == nil:
			revoked = &tokens[i]
		}
	}
	switch {
	case len(others) == 1:
		return others[0], nil
	case len(others) > 1:
		return Token{}, problem.New(problem.Conflict, "%d users have a token %q", len(others), ref).
			WithHint("give its id instead")
	case revoked != nil:
		return *revoked, nil
	default:
		return Token{}, problem.New(problem.NotFound, "there is no token %q", ref)
	}
}

package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/ident"
	"github.com/ptyd/ptyd/internal/lazy"
	"github.com/ptyd/ptyd/internal/problem"
)

// Lifetimes where the options say nothing.
const (
	DefaultLinkTTL  = 5 * time.Minute
	DefaultWebTTL   = 30 * 24 * time.Hour
	DefaultTokenTTL = 90 * 24 * time.Hour
	// MaxTokenTTL bounds what can be asked for: a token that never ends is
	// forgotten, not kept.
	MaxTokenTTL = 10 * 365 * 24 * time.Hour
)

// touchEvery is how often the last use of a token is written.
const touchEvery = time.Minute

// Options configures a Service.
type Options struct {
	Store   Store
	Now     func() time.Time // nil is time.Now
	LinkTTL time.Duration    // 0 is DefaultLinkTTL
	WebTTL  time.Duration    // 0 is DefaultWebTTL
	Log     *zap.Logger      // nil logs nothing
	// OwnerUID is the Unix user who owns the state directory: the first admin.
	OwnerUID int
	// Hub hears of changed users, groups and tokens; nil when nobody watches.
	Hub *events.Hub
	// Passwords is the cost of a password's hash; zero is DefaultPasswordCost.
	Passwords PasswordCost
}

// Service authenticates callers and manages users and their credentials. It is
// safe for concurrent use.
type Service struct {
	store    Store
	now      func() time.Time
	linkTTL  time.Duration
	webTTL   time.Duration
	log      *zap.Logger
	hub      *events.Hub
	ownerUID int

	passwords *passwords
	byName    *limiter
	byRemote  *limiter
	bindings  bindings
	tickets   tickets

	// names maps user ids to names, which never change.
	names sync.Map
}

// New returns a Service on o.Store.
func New(o Options) (*Service, error) {
	if o.Store == nil {
		return nil, errors.New("make auth service: no store")
	}
	if o.OwnerUID < 0 {
		return nil, fmt.Errorf("make auth service: owner uid %d", o.OwnerUID)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.LinkTTL <= 0 {
		o.LinkTTL = DefaultLinkTTL
	}
	if o.WebTTL <= 0 {
		o.WebTTL = DefaultWebTTL
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Hub == nil {
		o.Hub = events.NewHub()
	}
	if o.Passwords == (PasswordCost{}) {
		o.Passwords = DefaultPasswordCost
	}
	return &Service{
		store:     o.Store,
		now:       func() time.Time { return o.Now().UTC().Truncate(time.Microsecond) },
		linkTTL:   o.LinkTTL,
		webTTL:    o.WebTTL,
		log:       o.Log,
		hub:       o.Hub,
		ownerUID:  o.OwnerUID,
		passwords: newPasswords(o.Passwords),
		byName:    newLimiter(o.Now),
		byRemote:  newLimiter(o.Now),
		bindings:  bindings{set: make(map[*binding]struct{})},
		tickets:   tickets{byHash: make(map[string]ticket)},
	}, nil
}

// EnsureOwner makes the user of OwnerUID, an admin, unless it exists. Several
// processes may do it at once.
func (s *Service) EnsureOwner(ctx context.Context) error {
	if _, err := s.store.AccountByUID(ctx, s.ownerUID); !problem.Is(err, problem.NotFound) {
		return err
	}
	fallback := "uid" + strconv.Itoa(s.ownerUID)
	for _, name := range []string{loginName(s.ownerUID, fallback), fallback} {
		uid := s.ownerUID
		u := User{ID: ident.New("u"), Name: name, UID: &uid, Role: Admin, CreatedAt: s.now()}
		_, err := s.store.EnsureUser(ctx, u)
		if problem.Is(err, problem.NotFound) {
			continue // the name belongs to a user with another uid
		}
		return err
	}
	return fmt.Errorf("make the first admin: the names for uid %d are taken", s.ownerUID)
}

func loginName(uid int, fallback string) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil || !namePattern().MatchString(u.Username) {
		return fallback
	}
	return u.Username
}

// namePattern is what names of users and groups look like: what Unix login
// names and mail addresses need, nothing that needs quoting, and 64 characters
// so that lists stay readable.
var namePattern = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}$`)

// Peer returns the principal of a peer of the Unix socket.
func (s *Service) Peer(ctx context.Context, uid int) (Principal, error) {
	if uid == 0 {
		uid = s.ownerUID // root reads and writes the state anyway
	}
	a, err := s.store.AccountByUID(ctx, uid)
	if problem.Is(err, problem.NotFound) {
		return Principal{}, problem.New(problem.Unauthenticated, "no user of ptyd has the uid %d", uid).
			WithHint("the owner of the daemon can add one with: ptyd user add NAME --uid %d", uid)
	}
	if err != nil {
		return Principal{}, err
	}
	if a.Disabled {
		return Principal{}, errDisabled()
	}
	return principal(a, Admin, ViaSocket, "", time.Time{}), nil
}

// Token returns the principal of a bearer token.
func (s *Service) Token(ctx context.Context, secret string) (Principal, error) {
	if len(secret) > maxSecretLen {
		return Principal{}, errBadToken()
	}
	c, err := s.store.TokenByHash(ctx, hashSecret(secret))
	if problem.Is(err, problem.NotFound) {
		return Principal{}, errBadToken()
	}
	if err != nil {
		return Principal{}, err
	}
	p, err := s.check(c, ViaToken)
	if err != nil {
		return Principal{}, err
	}
	if now := s.now(); c.LastUsedAt == nil || now.Sub(*c.LastUsedAt) >= touchEvery {
		s.store.TouchToken(c.ID, now)
	}
	return p, nil
}

// Cookie returns the principal of a web login. Either half alone is refused.
func (s *Service) Cookie(ctx context.Context, cookie, key string) (Principal, error) {
	if cookie == "" || key == "" || len(cookie) > maxSecretLen || len(key) > maxSecretLen {
		return Principal{}, errBadLogin()
	}
	c, err := s.store.WebByHash(ctx, hashSecret(cookie))
	if problem.Is(err, problem.NotFound) {
		return Principal{}, errBadLogin()
	}
	if err != nil {
		return Principal{}, err
	}
	if subtle.ConstantTimeCompare(c.KeyHash, hashSecret(key)) != 1 {
		return Principal{}, errBadLogin()
	}
	return s.check(c, ViaCookie)
}

// check turns a credential whose secret was proven into a principal.
func (s *Service) check(c Credential, via string) (Principal, error) {
	what := "the token"
	if via == ViaCookie {
		what = "the login"
	}
	switch {
	case c.RevokedAt != nil:
		return Principal{}, problem.New(problem.Unauthenticated, "%s was revoked", what)
	case !s.now().Before(c.ExpiresAt):
		return Principal{}, problem.New(problem.Unauthenticated, "%s has expired", what)
	case c.Account.Disabled:
		return Principal{}, errDisabled()
	}
	return fromCredential(c, via), nil
}

func fromCredential(c Credential, via string) Principal {
	p := principal(c.Account, c.Role, via, c.ID, c.ExpiresAt)
	if p.Origin = c.Origin; via == ViaToken {
		p.Origin = c.ID
	}
	return p
}

func principal(a Account, made Role, via, cred string, expires time.Time) Principal {
	return Principal{
		UserID:   a.ID,
		UserName: a.Name,
		Role:     LesserRole(made, a.Role),
		Via:      via,
		CredID:   cred,
		Groups:   a.Groups,
		Expires:  expires,
	}
}

// again returns the principal that p's credential gives now.
func (s *Service) again(ctx context.Context, p Principal) (Principal, error) {
	now, err := s.lookAgain(ctx, p)
	if problem.Is(err, problem.NotFound) {
		err = errBadLogin()
	}
	return now, err
}

func (s *Service) lookAgain(ctx context.Context, p Principal) (Principal, error) {
	switch p.Via {
	case ViaSocket:
		a, err := s.store.AccountByID(ctx, p.UserID)
		if err != nil {
			return Principal{}, err
		}
		if a.Disabled {
			return Principal{}, errDisabled()
		}
		return principal(a, Admin, ViaSocket, "", time.Time{}), nil
	case ViaToken:
		c, err := s.store.TokenByID(ctx, p.CredID)
		if err != nil {
			return Principal{}, err
		}
		return s.check(c, ViaToken)
	case ViaCookie:
		c, err := s.store.WebByID(ctx, p.CredID)
		if err != nil {
			return Principal{}, err
		}
		return s.check(c, ViaCookie)
	default:
		return Principal{}, errBadLogin()
	}
}

func errBadToken() error {
	return problem.New(problem.Unauthenticated, "the token is not valid")
}

func errBadLogin() error {
	return problem.New(problem.Unauthenticated, "not logged in")
}

func errDisabled() error {
	return problem.New(problem.Unauthenticated, "the user is disabled")
}

// need refuses p unless its role may do a.
func need(p Principal, a Action) error {
	if p.Can(a) {
		return nil
	}
	return problem.New(problem.Forbidden, "the role %q may not do %s", p.Role, a)
}

package auth

import (
	"context"
	"time"
)

// Store keeps users and credentials. Every method that reads before it writes
// is one transaction. An absent row is a problem.NotFound error; a taken name
// is problem.NameTaken. Times are in microseconds.
type Store interface {
	// EnsureUser inserts u unless a user with its uid or name exists, and
	// returns the user with u.UID; NotFound when u's name belongs to a user
	// with another uid. Safe to run from several processes at once.
	EnsureUser(ctx context.Context, u User) (User, error)
	// InsertUser adds u; NameTaken when its name (in any case), Conflict when
	// its uid is taken. passwordHash "" is no password.
	InsertUser(ctx context.Context, u User, passwordHash string) error
	AccountByName(ctx context.Context, name string) (Account, error)
	AccountByUID(ctx context.Context, uid int) (Account, error)
	AccountByID(ctx context.Context, id string) (Account, error)
	ListUsers(ctx context.Context) ([]User, error)
	UpdateUser(ctx context.Context, id string, c UserChange) error

	InsertGroup(ctx context.Context, g Group) error
	DeleteGroup(ctx context.Context, name string) error
	ListGroups(ctx context.Context) ([]Group, error)
	// AddGroupMember is idempotent; NotFound when group or user is absent.
	AddGroupMember(ctx context.Context, group, user string) error
	// RemoveGroupMember is idempotent; NotFound when the group is absent.
	RemoveGroupMember(ctx context.Context, group, user string) error

	// InsertToken adds t; NameTaken when its user has a valid token of the name,
	// NotFound when t.Origin was revoked.
	InsertToken(ctx context.Context, t Token, hash []byte) error
	TokenByHash(ctx context.Context, hash []byte) (Credential, error)
	TokenByID(ctx context.Context, id string) (Credential, error)
	// ListTokens lists the tokens of one user, or of all when userID is "".
	ListTokens(ctx context.Context, userID string) ([]Token, error)
	// RevokeToken ends a token and all that descends from it by Origin, and
	// returns the ids of the tokens and web logins that this call ended.
	RevokeToken(ctx context.Context, id string, at time.Time) (ended []string, err error)
	// TouchToken notes a use. It may be lost in a crash and does not wait.
	TouchToken(id string, at time.Time)

	// InsertWeb adds a web login of a user who proved to know the password with
	// this hash; NotFound when the user is disabled or the hash is no longer
	// theirs.
	InsertWeb(ctx context.Context, w Web, passwordHash string) error
	WebByHash(ctx context.Context, cookieHash []byte) (Credential, error)
	WebByID(ctx context.Context, id string) (Credential, error)
	RevokeWeb(ctx context.Context, id string, at time.Time) (first bool, err error)

	// InsertLink adds l; NotFound when l.Origin was revoked.
	InsertLink(ctx context.Context, l Link, hash []byte) error
	// RedeemLink uses up the link with hash and adds the web login w for its
	// user, with the link's role and origin and at most the link's Until, both or
	// neither. NotFound when there is no such link, or it was used, has expired
	// at now, its origin was revoked, or its user is disabled. One of many concurrent callers wins.
	RedeemLink(ctx context.Context, hash []byte, now time.Time, w Web) (Credential, error)
}

// Account is a user with what is needed to check them.
type Account struct {
	User
	Groups       []string
	PasswordHash string // PHC text; "" for none
}

// Credential is a token or a web login with its user as it is now.
type Credential struct {
	ID         string
	Role       Role   // what it was made for
	Origin     string // id of the token it was made with, "" for none
	KeyHash    []byte
	ExpiresAt  time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
	Account    Account
}

// UserChange holds what to change; nil members stay.
type UserChange struct {
	Role         *Role
	Disabled     *bool
	PasswordHash *string
	// EndWebLogins revokes the user's web logins, but for KeepWeb, in the same
	// transaction.
	EndWebLogins bool
	KeepWeb      string
	At           time.Time // of the revocations
}

// Web is a web login to be stored.
type Web struct {
	ID         string
	UserID     string // ignored by RedeemLink
	Role       Role   // ignored by RedeemLink
	CookieHash []byte
	KeyHash    []byte
	CreatedAt  time.Time
	ExpiresAt  time.Time
}

// Link is a login link without its secret.
type Link struct {
	ID        string
	UserID    string
	Role      Role   // of the login it gives
	CreatedBy string // user id
	CreatedAt time.Time
	ExpiresAt time.Time
	Until     time.Time // the login ends by then; zero: no bound beyond WebTTL
	Origin    string    // id of the token it was made with, "" for none
}

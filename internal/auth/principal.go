package auth

import "time"

// How a principal came in.
const (
	ViaSocket = "socket"
	ViaToken  = "token"
	ViaCookie = "cookie"
)

// Principal is an authenticated caller. Its role holds at the moment it was
// made; whatever outlives one request registers by Service.Bind.
type Principal struct {
	UserID   string
	UserName string
	Role     Role
	Via      string // ViaSocket, ViaToken, ViaCookie
	CredID   string // the token's or web login's id; "" on the socket
	Groups   []string
	Expires  time.Time // when the credential ends; zero on the socket
	// Origin is the token that what this principal makes ends with: the token
	// they came by, or the one their web login was made with; "" for none.
	Origin string
}

// CanSee reports whether p reaches what belongs to the user with id owner.
func (p Principal) CanSee(owner string) bool {
	return p.Role == Admin || (owner != "" && owner == p.UserID)
}

// Can reports whether p's role may do a.
func (p Principal) Can(a Action) bool { return Allowed(p.Role, a) }

// User is a person that ptyd knows.
type User struct {
	ID          string
	Name        string
	UID         *int // the Unix user whose socket peers are this user
	Role        Role
	Disabled    bool
	HasPassword bool
	CreatedAt   time.Time
}

// NewUser is what a user is made of.
type NewUser struct {
	Name     string
	Role     Role // "" is Operator
	UID      *int
	Password string // "" for none: login by link or token only
}

// Group is a named set of users.
type Group struct {
	ID        string
	Name      string
	Members   []string // user names
	CreatedAt time.Time
}

// Token is a bearer token without its secret.
type Token struct {
	ID         string
	Name       string
	UserID     string
	UserName   string
	Role       Role
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedAt  *time.Time
	LastUsedAt *time.Time
	Origin     string // id of the token it was made with, "" for none; not listed
}

// NewToken is what a token is made of.
type NewToken struct {
	Name string
	User string        // a user's name; "" is the maker
	Role Role          // "" is the lesser of the maker's and the user's
	TTL  time.Duration // 0 is DefaultTokenTTL
}

// WebLogin is a browser's login. Cookie and Key are worthless without each
// other: the cookie travels with every request to the host, whatever the port,
// and the key stays in the storage of one origin.
type WebLogin struct {
	Cookie    string
	Key       string
	Principal Principal
	Expires   time.Time
}

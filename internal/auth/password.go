package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/ptyd/ptyd/internal/problem"
)

// Bounds of a password. The upper one only keeps a request from being work.
const (
	MinPassword = 12
	MaxPassword = 1024
)

// hashesAtOnce bounds the memory that password checks take: two hashes of 64
// MiB. Whoever comes third waits.
const hashesAtOnce = 2

// PasswordCost is the cost of one argon2id hash.
type PasswordCost struct {
	MemoryKiB uint32
	Time      uint32
	Threads   uint8
}

// DefaultPasswordCost takes about 0.1 s of one core: well above what OWASP asks
// for at least (19 MiB, 2 passes), in order to make a stolen database slow to
// search.
var DefaultPasswordCost = PasswordCost{MemoryKiB: 64 << 10, Time: 3, Threads: 1}

const (
	saltLen = 16
	keyLen  = 32
)

// passwords hashes and verifies, a bounded number at once.
type passwords struct {
	cost PasswordCost
	slot chan struct{}
}

func newPasswords(c PasswordCost) *passwords {
	return &passwords{cost: c, slot: make(chan struct{}, hashesAtOnce)}
}

func checkPassword(password string) error {
	switch {
	case len(password) < MinPassword:
		return problem.Field("password", "must have at least %d bytes", MinPassword)
	case len(password) > MaxPassword:
		return problem.Field("password", "must have at most %d bytes", MaxPassword)
	}
	return nil
}

// hash returns the PHC text of password.
func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // never fails
	key, err := p.derive(ctx, password, salt, p.cost, keyLen)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		p.cost.MemoryKiB, p.cost.Time, p.cost.Threads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key)), nil
}

// verify reports whether password is the one of phc. An empty phc (no such
// user, or one without a password) costs the same and is never right.
func (p *passwords) verify(ctx context.Context, phc, password string) (bool, error) {
	if phc == "" {
		_, err := p.derive(ctx, password, make([]byte, saltLen), p.cost, keyLen)
		return false, err
	}
	cost, salt, want, err := parsePHC(phc)
	if err != nil {
		return false, err
	}
	got, err := p.derive(ctx, password, salt, cost, uint32(len(want)))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

func (p *passwords) derive(ctx context.Context, password string, salt []byte, c PasswordCost, n uint32) ([]byte, error) {
	select {
	case p.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-p.slot }()
	return argon2.IDKey([]byte(password), salt, c.Time, c.MemoryKiB, c.Threads, n), nil
}

var errPHC = errors.New("the stored password hash is damaged")

func parsePHC(phc string) (c PasswordCost, salt, key []byte, err error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, errPHC
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.MemoryKiB, &c.Time, &c.Threads); err != nil || n != 3 {
		return c, nil, nil, errPHC
	}
	if c.Time == 0 || c.Threads == 0 {
		return c, nil, nil, errPHC // argon2 panics on these
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(salt) == 0 {
		return c, nil, nil, errPHC
	}
	if key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(key) == 0 {
		return c, nil, nil, errPHC
	}
	return c, salt, key, nil
}

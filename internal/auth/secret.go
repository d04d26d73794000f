package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// secretBytes is the entropy of tokens, links, tickets and both halves of a web
// login: more than anybody can guess at, whatever the rate.
const secretBytes = 32

// tokenPrefix marks a bearer token, so that scanners of leaked secrets find it.
const tokenPrefix = "ptyd_"

// maxSecretLen bounds what is hashed for a caller who is nobody yet.
const maxSecretLen = 256

func newSecret(prefix string) string {
	var b [secretBytes]byte
	// crypto/rand.Read never fails: the runtime ends the process instead.
	_, _ = rand.Read(b[:])
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

func hashSecret(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

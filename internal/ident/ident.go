package ident

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// alphabet is Crockford's base 32 in lower case: no i, l, o, u, so that an id
// read aloud or copied by hand survives. It ascends in ASCII, therefore text
// order is numeric order.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// bodyLen is the length of 128 bits in base 32.
const bodyLen = 26

// New returns kind, an underscore and 26 characters: 48 bits of Unix
// milliseconds, then 80 random bits. Two ids of one millisecond sort in no
// particular order.
func New(kind string) string {
	return at(kind, time.Now())
}

func at(kind string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	// crypto/rand.Read never fails: the runtime ends the process instead.
	_, _ = rand.Read(b[6:])

	out := make([]byte, len(kind)+1+bodyLen)
	copy(out, kind)
	out[len(kind)] = '_'
	encode(out[len(kind)+1:], b)
	return string(out)
}

// encode writes the 128 bits of b as 26 digits, the first of which holds the
// top 3 bits.
func encode(dst []byte, b [16]byte) {
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	for i := bodyLen - 1; i >= 0; i-- {
		dst[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
}

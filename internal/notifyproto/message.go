package notifyproto

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// The keys of ptyd's own messages, beside those of sd_notify.
const (
	// KeyUpgrade asks the keeper to go on with the binary at the value, an
	// absolute path. Sent with Ask: an answer that is not empty is the reason
	// of a refusal.
	KeyUpgrade = "X_PTYD_UPGRADE"
	// KeyRestart asks the keeper for a new worker of the same binary.
	KeyRestart = "X_PTYD_RESTART"
	// KeyStatus asks the keeper what it is. Sent with Ask; no answer comes from
	// a keeper that does not know the key.
	KeyStatus = "X_PTYD_STATUS"
)

const (
	// MaxMessage bounds a datagram's text; it is systemd's own bound.
	MaxMessage = 4096
	// MaxFDs bounds the descriptors of one datagram; it is the kernel's bound
	// for one control message (SCM_MAX_FD).
	MaxFDs = 253
	// MaxName bounds a stored descriptor's name; it is systemd's bound.
	MaxName = 255
)

// ErrMalformed is wrapped by every error about a datagram's content. The
// datagram is gone, its descriptors are closed, and the next one can be read.
var ErrMalformed = errors.New("malformed datagram")

// Message is a datagram as it was received. Whoever receives it owns FDs; they
// are close-on-exec.
type Message struct {
	Vars map[string]string
	FDs  []int
}

// Close closes the message's descriptors.
func (m *Message) Close() {
	for _, fd := range m.FDs {
		_ = unix.Close(fd)
	}
	m.FDs = nil
}

// Encode joins assignments ("READY=1") to a datagram. A line break inside one
// would be a second assignment and becomes a space; so does a zero byte, which
// no receiver accepts.
func Encode(vars ...string) []byte {
	clean := strings.NewReplacer("\n", " ", "\x00", " ")
	var b bytes.Buffer
	for i, v := range vars {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(clean.Replace(v))
	}
	return b.Bytes()
}

// Decode takes a datagram apart. It is strict: a line that is no assignment, a
// key that comes twice, and a zero byte are errors, because the senders are
// ptyd's own and half an understood message is worse than none.
func Decode(b []byte) (map[string]string, error) {
	if len(b) > MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(b))
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, fmt.Errorf("%w: a zero byte", ErrMalformed)
	}
	vars := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(b), "\n"), "\n") {
		key, value, ok := strings.Cut(line, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%w: %.40q is no assignment", ErrMalformed, line)
		}
		if _, twice := vars[key]; twice {
			return nil, fmt.Errorf("%w: %.40q comes twice", ErrMalformed, key)
		}
		vars[key] = value
	}
	return vars, nil
}

// ValidName tells whether a descriptor can be stored under s: printable ASCII
// without the colon that separates names in LISTEN_FDNAMES.
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == ':' {
			return false
		}
	}
	return true
}

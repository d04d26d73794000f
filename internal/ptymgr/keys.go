package ptymgr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ptyd/ptyd/internal/problem"
)

// keyBytes are the bytes of named keys as xterm sends them in normal cursor
// mode (XTerm Control Sequences, "PC-Style Function Keys").
var keyBytes = map[string]string{
	"enter": "\r", "return": "\r", "tab": "\t", "esc": "\x1b", "escape": "\x1b", "space": " ",
	"backspace": "\x7f", "bspace": "\x7f", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
	"home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~", "pgup": "\x1b[5~", "pagedown": "\x1b[6~", "pgdn": "\x1b[6~",
	"insert": "\x1b[2~", "delete": "\x1b[3~", "del": "\x1b[3~", "s-tab": "\x1b[Z", "backtab": "\x1b[Z",
	"f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~", "f7": "\x1b[18~",
	"f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}

// modified are the keys that take modifiers as a parameter: CSI 1;m X and CSI n;m ~.
var modified = map[string][2]string{
	"up": {"1", "A"}, "down": {"1", "B"}, "right": {"1", "C"}, "left": {"1", "D"}, "home": {"1", "H"}, "end": {"1", "F"},
	"pageup": {"5", "~"}, "pgup": {"5", "~"}, "pagedown": {"6", "~"}, "pgdn": {"6", "~"}, "insert": {"2", "~"}, "delete": {"3", "~"}, "del": {"3", "~"},
	"f1": {"1", "P"}, "f2": {"1", "Q"}, "f3": {"1", "R"}, "f4": {"1", "S"}, "f5": {"15", "~"}, "f6": {"17", "~"}, "f7": {"18", "~"},
	"f8": {"19", "~"}, "f9": {"20", "~"}, "f10": {"21", "~"}, "f11": {"23", "~"}, "f12": {"24", "~"},
}

// EncodeKeys turns names of keys into what a terminal sends for them: Enter,
// Tab, Esc, Space, Backspace, Up, Down, Left, Right, Home, End, PageUp,
// PageDown, Insert, Delete, F1 to F12, single characters, and these with the
// modifiers C- (control), M- (alt) and S- (shift), such as C-c, M-x, C-M-a,
// S-Tab, C-Right. Names are not case-sensitive, characters are.
func EncodeKeys(keys []string) ([]byte, error) {
	var out []byte
	for _, k := range keys {
		b, err := encodeKey(k)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

func encodeKey(key string) ([]byte, error) {
	bad := func() ([]byte, error) {
		return nil, problem.Field("keys", "%q is no key", key).WithHint("such as Enter, Tab, Esc, Up, F1, C-c, M-x, S-Tab or a single character")
	}
	if s, ok := keyBytes[strings.ToLower(key)]; ok {
		return []byte(s), nil
	}
	if utf8.RuneCountInString(key) == 1 && utf8.ValidString(key) {
		return []byte(key), nil
	}
	var ctrl, meta, shift bool
	base := key
	for len(base) > 2 && base[1] == '-' {
		switch base[0] {
		case 'C', 'c':
			ctrl = true
		case 'M', 'm', 'A', 'a':
			meta = true
		case 'S', 's':
			shift = true
		default:
			return bad()
		}
		base = base[2:]
	}
	if base == key {
		return bad()
	}
	if m, ok := modified[strings.ToLower(base)]; ok {
		n := 1
		for i, on := range []bool{shift, meta, ctrl} {
			if on {
				n += 1 << i
			}
		}
		return fmt.Appendf(nil, "\x1b[%s;%d%s", m[0], n, m[1]), nil
	}
	var b []byte
	if s, ok := keyBytes[strings.ToLower(base)]; ok && !shift {
		b = []byte(s)
	} else if utf8.RuneCountInString(base) == 1 && utf8.ValidString(base) && !shift {
		b = []byte(base)
	} else {
		return bad()
	}
	if ctrl {
		c, ok := control(b)
		if !ok {
			return bad()
		}
		b = []byte{c}
	}
	if meta {
		b = append([]byte{0x1b}, b...)
	}
	return b, nil
}

// control is the byte that Ctrl makes of a key.
func control(b []byte) (byte, bool) {
	if len(b) != 1 {
		return 0, false
	}
	switch c := b[0]; {
	case c >= 'a' && c <= 'z':
		return c - 'a' + 1, true
	case c >= '@' && c <= '_':
		return c - '@', true
	case c == ' ' || c == '2':
		return 0, true
	case c == '?' || c == 0x7f:
		return 0x7f, true
	case c == '/':
		return 0x1f, true
	}
	return 0, false
}

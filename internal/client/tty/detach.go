package tty

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// DefaultDetachKeys is Ctrl-\ pressed twice: the one control key that no
	// editor or shell needs twice in a row.
	DefaultDetachKeys = `C-\,C-\`
	// detachPause is how long the beginning of the detach keys waits for the
	// rest before the session gets it.
	detachPause = 500 * time.Millisecond
	// maxKey is the longest form in which a terminal sends one key.
	maxKey = 48
)

// Key is one key of the detach keys, in all the forms in which terminals send it.
type Key struct {
	plain byte // as terminals have always sent it
	code  int  // its number in the kitty protocol and in modifyOtherKeys
	ctrl  bool
}

// ParseDetachKeys reads keys such as `C-\,C-\`, `C-a,d`, `^]` or `ctrl-p,ctrl-q`.
// "none" gives none.
func ParseDetachKeys(s string) ([]Key, error) {
	if s == "none" {
		return nil, nil
	}
	var keys []Key
	for _, name := range strings.Split(s, ",") {
		rest := name
		k := Key{}
		for _, prefix := range []string{"C-", "c-", "ctrl-", "Ctrl-", "^"} {
			if after, ok := strings.CutPrefix(name, prefix); ok && after != "" {
				rest, k.ctrl = after, true
				break
			}
		}
		if rest == "Space" || rest == "space" {
			rest = " "
		}
		if len(rest) != 1 || rest[0] < 0x20 || rest[0] >= utf8.RuneSelf-1 {
			return nil, fmt.Errorf("%q is no key: write C- and a character, such as C-], or a character", name)
		}
		c := rest[0]
		if k.ctrl && c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		k.plain, k.code = c, int(c)
		if k.ctrl {
			switch {
			case c >= 'a' && c <= 'z', c >= '[' && c <= '_', c == '@':
				k.plain = c & 0x1f
			case c == ' ':
				k.plain = 0
			case c == '?':
				k.plain = 0x7f
			default:
				return nil, fmt.Errorf("%q is no key: terminals do not send Ctrl with %q", name, rest)
			}
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// match is how a piece of input relates to a key.
type match uint8

const (
	matchNo      match = iota
	matchYes           // it is the key
	matchNeutral       // it accompanies keys: a release, or a modifier by itself
)

// match compares one piece of input with k.
func (k Key) match(piece []byte) match {
	if len(piece) == 1 {
		if piece[0] == k.plain {
			return matchYes
		}
		return matchNo
	}
	var s scanner
	if n, ev := s.next(piece); ev != evSequence || n != len(piece) || s.seq.kind != kindCSI {
		return matchNo
	}
	q := &s.seq
	code, mods, kind := 0, 1, 1
	switch {
	case q.is(0, "", 'u'):
		// code:shifted:base ; modifiers:event ; text
		code = q.param(0, 0)
		base := code
		field, sub := 0, 0
		for i := range q.params {
			if i > 0 {
				if q.sub[i] {
					sub++
				} else {
					field, sub = field+1, 0
				}
			}
			switch {
			case field == 0 && sub == 2:
				base = q.param(i, base)
			case field == 1 && sub == 0:
				mods = q.param(i, 1)
			case field == 1 && sub == 1:
				kind = q.param(i, 1)
			}
		}
		if kind == 3 || code >= 57441 && code <= 57454 {
			return matchNeutral
		}
		if base == k.code {
			code = base // where it is on a keyboard of another alphabet
		}
	case q.is(0, "", '~') && q.param(0, 0) == 27 && len(q.params) == 3:
		mods, code = q.param(1, 1), q.param(2, 0)
	default:
		return matchNo
	}
	const locks, ctrl = 64 | 128, 4
	want := 0
	if k.ctrl {
		want = ctrl
	}
	if code == k.code && (mods-1)&^locks == want {
		return matchYes
	}
	return matchNo
}

// detacher looks for the detach keys in input. It holds back what may be their
// beginning.
type detacher struct {
	keys    []Key
	held    [][]byte // pieces that match the first keys
	partial []byte   // the beginning of a piece
}

// feed takes input and returns what the session gets of it, and whether the
// detach keys were pressed; what came before them is part of the input still.
func (d *detacher) feed(p []byte) (pass []byte, detached bool) {
	if len(d.keys) == 0 {
		return p, false
	}
	in := append(d.partial, p...)
	d.partial = nil
	for len(in) > 0 {
		n := 0
		for len(d.held) == 0 && n < len(in) && in[n] != 0x1b && in[n] != d.keys[0].plain {
			n++
		}
		if n > 0 { // most of all input
			pass = append(pass, in[:n]...)
			in = in[n:]
			continue
		}
		if n = pieceLen(in); n == 0 {
			d.partial = slices.Clone(in)
			break
		}
		d.held = append(d.held, slices.Clone(in[:n]))
		in = in[n:]
		for len(d.held) > 0 {
			ok, all := d.prefix()
			if all {
				d.held = nil
				return pass, true
			}
			if ok {
				break
			}
			pass = append(pass, d.held[0]...)
			d.held = d.held[1:]
		}
	}
	return pass, false
}

// prefix reports whether what is held begins the detach keys, and whether it
// is all of them.
func (d *detacher) prefix() (ok, all bool) {
	at := 0
	for i, piece := range d.held {
		switch d.keys[at].match(piece) {
		case matchYes:
			if at++; at == len(d.keys) {
				return true, true
			}
		case matchNeutral:
			if i == 0 {
				return false, false
			}
		case matchNo:
			return false, false
		}
	}
	return true, false
}

// waiting reports whether something is held back.
func (d *detacher) waiting() bool { return len(d.held) > 0 || len(d.partial) > 0 }

// expire gives up what is held back: the session gets it.
func (d *detacher) expire() []byte {
	var pass []byte
	for _, piece := range d.held {
		pass = append(pass, piece...)
	}
	pass = append(pass, d.partial...)
	d.held, d.partial = nil, nil
	return pass
}

// pieceLen is how long the first piece of input is: a byte, or a sequence in
// which terminals send keys. 0 means that it is not whole yet.
func pieceLen(in []byte) int {
	// ESC [ alone is Alt-[ as well: only a parameter shows that more follows.
	if len(in) < 3 || in[0] != 0x1b || in[1] != '[' || in[2] < '0' || in[2] > '9' {
		return 1
	}
	for i := 2; i < len(in); i++ {
		switch c := in[i]; {
		case c >= 0x40 && c < 0x7f:
			return i + 1
		case c < 0x20 || c >= 0x7f || i > maxKey:
			return 1
		}
	}
	return 0
}

// pump passes input from in on to write until in is closed or the detach keys
// are pressed.
func pump(ctx context.Context, keys []Key, in <-chan []byte, write func([]byte) error) (detached bool, err error) {
	d := detacher{keys: keys}
	timer := time.NewTimer(detachPause)
	timer.Stop()
	defer timer.Stop()
	for {
		var pass []byte
		ended := false
		select {
		case p, ok := <-in:
			if !ok {
				pass, ended = d.expire(), true
				break
			}
			pass, detached = d.feed(p)
			if d.waiting() {
				timer.Reset(detachPause)
			} else {
				timer.Stop()
			}
		case <-timer.C:
			pass = d.expire()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		if len(pass) > 0 {
			if err := write(pass); err != nil {
				return detached, err
			}
		}
		if detached || ended {
			return detached, nil
		}
	}
}

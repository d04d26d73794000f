package oracle

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/vt"
)

// subject is our emulator with the replies that it gave.
type subject struct {
	*vt.Terminal
	replies []string
}

func newSubject(cols, rows, scrollback int) *subject {
	if scrollback == 0 {
		scrollback = -1
	}
	return &subject{Terminal: vt.New(vt.Options{Cols: cols, Rows: rows, ScrollbackLines: scrollback})}
}

// play makes a terminal and plays the stream on it.
func (s stream) play() *subject {
	t := newSubject(s.cols, s.rows, s.scrollback)
	t.play(s)
	return t
}

func (t *subject) play(s stream) {
	for _, k := range s.tokens {
		if k.resizes() {
			t.Resize(k.cols, k.rows)
			continue
		}
		t.Write(k.b)
		for _, r := range t.TakeReplies() {
			t.replies = append(t.replies, string(r))
		}
	}
}

// state is the terminal's state in the reference's form.
func (t *subject) state(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t.State()); err != nil {
		tb.Fatal(err)
	}
	out := bytes.TrimRight(b.Bytes(), "}\n")
	b.Truncate(len(out))
	var r []string
	for _, s := range t.replies {
		if known(s) {
			r = append(r, s)
		}
	}
	b.WriteString(`,"replies":`)
	if err := enc.Encode(strings.Join(r, "")); err != nil {
		tb.Fatal(err)
	}
	b.Truncate(b.Len() - 1)
	b.WriteByte('}')
	return b.Bytes()
}

// known says whether xterm.js without a window gives this reply too. It knows
// no colours, no XTVERSION, no DA3, no kitty keyboard and no window reports.
func known(reply string) bool {
	for _, prefix := range []string{"\x1b]", "\x1bP>|", "\x1bP!|", "\x1bP0+r", "\x1bP1+r", "\x1b[?997"} {
		if strings.HasPrefix(reply, prefix) {
			return false
		}
	}
	return !strings.HasSuffix(reply, "t") && !strings.HasSuffix(reply, "u")
}

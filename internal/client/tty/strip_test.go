package tty

import (
	"testing"
	"unicode/utf8"
)

func TestStripper(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "hello\nworld\n", "hello\nworld\n"},
		{"line ends of a terminal", "a\r\nb\r\n", "a\nb\n"},
		{"doubled line ends", "a\r\r\nb\r\r\r\n", "a\nb\n"},
		{"empty lines", "\r\n\r\n", "\n\n"},
		{"progress", "10%\r20%\r\n", "10%\n20%\n"},
		{"return at a line's beginning", "\rx\r\n", "x\n"},
		{"prompt without a line end", "password: ", "password: "},
		{"colours", "\x1b[1;31mred\x1b[0m plain", "red plain"},
		{"title", "\x1b]0;title\x07$ \x1b]2;x\x1b\\ls", "$ ls"},
		{"strings", "a\x1bPq#0;2;0;0;0\x1b\\b\x1b_Gx\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e", "abcde"},
		{"charsets", "\x1b(Ba\x1b)0b\x1b%Gc\x1b#8", "abc"},
		{"bells and backspaces", "a\x07b\x08\x08c\x00\x7f", "abc"},
		{"tabs", "a\tb", "a\tb"},
		{"accents", "é漢🙂\r\n", "é漢🙂\n"},
		{"no UTF-8", "a\xff\xfeb\xc3", "a\uFFFD\uFFFDb\uFFFD"},
		{"broken character", "a\xe6\xbcb\xe6\r\n", "a\uFFFD\uFFFDb\uFFFD\n"},
		{"eight-bit controls as characters", "a\u009b31mb", "a31mb"},
		{"a control inside a sequence", "a\x1b[3\n1mb", "a\nb"},
		{"a cancelled sequence", "a\x1b[3\x18b", "ab"},
		{"an open sequence", "a\x1b[3", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var whole Stripper
			if got := string(whole.Flush(whole.Append(nil, []byte(c.in)))); got != c.want {
				t.Errorf("whole: %q, want %q", got, c.want)
			}
			var cut Stripper
			var got []byte
			for i := range len(c.in) {
				got = cut.Append(got, []byte(c.in[i:i+1]))
			}
			if got = cut.Flush(got); string(got) != c.want {
				t.Errorf("byte by byte: %q, want %q", got, c.want)
			}
		})
	}
	s := Stripper{Cut: true}
	if got := string(s.Append(nil, []byte("\xbc\xa2x\xbc"))) + string(s.Flush(nil)); got != "x\uFFFD" {
		t.Errorf("from the middle of a character: %q", got)
	}
}

// FuzzStripper: the text is UTF-8 without controls, however the stream is cut.
func FuzzStripper(f *testing.F) {
	f.Add([]byte("a\r\n\x1b[1mb\x1b]0;x\x07\xe6\xbc\xa2\xff"), 1)
	f.Add([]byte("\u009b\xc2\x9b\r\r\n\x1b\x1b[\x18"), 2)
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		var whole, cut Stripper
		want := whole.Flush(whole.Append(nil, p))
		size = 1 + int(uint(size)%uint(max(len(p), 1)))
		var got []byte
		for i := 0; i < len(p); i += size {
			got = cut.Append(got, p[i:min(i+size, len(p))])
		}
		if got = cut.Flush(got); string(got) != string(want) {
			t.Fatalf("depends on the cut: %q and %q", got, want)
		}
		if !utf8.Valid(want) {
			t.Fatalf("%q is no UTF-8", want)
		}
		for _, r := range string(want) {
			if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q holds the control %U", want, r)
			}
		}
	})
}

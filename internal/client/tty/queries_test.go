package tty

import (
	"bytes"
	"testing"
)

func TestQueriesAreTakenOut(t *testing.T) {
	for _, q := range []string{
		"\x1b[c", "\x1b[0c", "\x1b[>c", "\x1b[=0c", "\x1bZ", "\x05", "\x1b[5n", "\x1b[6n", "\x1b[?6n", "\x1b[?996n",
		"\x1b[?2026$p", "\x1b[4$p", "\x1b[>q", "\x1b[>0q", "\x1b[?u", "\x1b[14t", "\x1b[18t", "\x1b[21t",
		"\x1b]10;?\x07", "\x1b]11;?\x1b\\", "\x1b]4;1;?\x07", "\x1b]4;1;?;2;?\x07", "\x1b]52;c;?\x07",
		"\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b[x", "\x1b[?4m", "\x1b[1;1;1;1;1;1*y", "\x1b_Gi=1,a=q\x1b\\",
	} {
		stays := "a\x1b[1mb"
		in := []byte(stays + q + "c\r\n")
		want := stays + "c\r\n"
		var whole, cut Queries
		if got := whole.Flush(whole.Append(nil, in)); string(got) != want {
			t.Errorf("%q: %q, want %q", q, got, want)
		}
		var got []byte
		for i := range in {
			got = cut.Append(got, in[i:i+1])
		}
		if got = cut.Flush(got); string(got) != want {
			t.Errorf("%q byte by byte: %q, want %q", q, got, want)
		}
	}
}

func TestAllElseStays(t *testing.T) {
	for _, s := range []string{
		"\x1b[?1049h\x1b[>1u\x1b[<u\x1b[=1u\x1b[>4;2m\x1b[>4n\x1b[4m\x1b[2;3r\x1b[5 q\x1b[8;24;80t\x1b[22;0t",
		"\x1b]0;who?\x07\x1b]2;what?\x1b\\\x1b]8;;http://x/?\x07\x1b]11;#000\x07\x1b]4;1;red\x07\x1b]133;A\x07",
		"\x1bPq#0;2;0;0;0#0~~\x1b\\\x1b_other\x1b\\\x1b(0\x1b7\x1b8\x1bc\a\b\t\r\n",
		"\x1b[3\x1b[c\x1b[\x18x\x1b[1\n2m",
		"\x1b]52;c;" + string(bytes.Repeat([]byte("QUJD"), 5000)) + "\x07after",
		"\x1b]2;x\x1b[1mbold", "open \x1b[12",
	} {
		want := s
		if s == "\x1b[3\x1b[c\x1b[\x18x\x1b[1\n2m" {
			want = "\x1b[3\x1b[\x18x\x1b[1\n2m"
		}
		for size := 1; size <= len(s); size += 1 + size/3 {
			var f Queries
			var got []byte
			for i := 0; i < len(s); i += size {
				got = f.Append(got, []byte(s[i:min(i+size, len(s))]))
			}
			if got = f.Flush(got); string(got) != want {
				t.Errorf("pieces of %d: %.200q, want %.200q", size, got, want)
			}
		}
	}
}

// FuzzQueries: what stays is a part of what came, in order, and holds no
// question any more, however the stream is cut.
func FuzzQueries(f *testing.F) {
	f.Add([]byte("a\x1b[c\x1b]11;?\x07\x1b[?1049h\x05\x1bP$q\x1b\\"), 1)
	f.Add([]byte("\x1b[\x1b[c\x1b]\x1b]10;?\x1b\\"), 2)
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		var whole, cut Queries
		want := whole.Flush(whole.Append(nil, p))
		size = 1 + int(uint(size)%uint(max(len(p), 1)))
		var got []byte
		for i := 0; i < len(p); i += size {
			got = cut.Append(got, p[i:min(i+size, len(p))])
		}
		if got = cut.Flush(got); string(got) != string(want) {
			t.Fatalf("depends on the cut: %q and %q", got, want)
		}
		rest := p
		for _, b := range want {
			i := bytes.IndexByte(rest, b)
			if i < 0 {
				t.Fatalf("%q is no part of %q", want, p)
			}
			rest = rest[i+1:]
		}
	})
}

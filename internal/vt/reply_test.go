package vt

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func replies(t *Terminal) string { return string(bytes.Join(t.TakeReplies(), nil)) }

func TestReplies(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[6n":                            "\x1b[1;1R",
		"\x1b[3;4H\x1b[6n\x1b[?6n":           "\x1b[3;4R\x1b[?3;4R",
		"\x1b[5n":                            "\x1b[0n",
		"\x1b[c":                             "\x1b[?1;2c",
		"\x1b[0c\x1b[>c":                     "\x1b[?1;2c\x1b[>0;276;0c",
		"\x1b[1c":                            "",
		"\x1b[=c":                            "\x1bP!|00000000\x1b\\",
		"\x1b[>q":                            "\x1bP>|ptyd test\x1b\\",
		"\x1b[?u":                            "\x1b[?0u",
		"\x1b[>5u\x1b[?u":                    "\x1b[?5u",
		"\x1b[>5u\x1b[>1u\x1b[<u\x1b[?u":     "\x1b[?5u",
		"\x1b[=3;1u\x1b[=4;2u\x1b[?u":        "\x1b[?7u",
		"\x1b[=3u\x1b[?1049h\x1b[?u":         "\x1b[?0u",
		"\x1b[?7$p\x1b[?2004$p":              "\x1b[?7;1$y\x1b[?2004;2$y",
		"\x1b[?9999$p\x1b[4$p":               "\x1b[?9999;0$y\x1b[4;2$y",
		"\x1b[?2026h\x1b[?2026$p":            "\x1b[?2026;1$y",
		"\x1b[2;3r\x1bP$qr\x1b\\":            "\x1bP1$r2;3r\x1b\\",
		"\x1b[1;31m\x1bP$qm\x1b\\":           "\x1bP1$r0;1;31m\x1b\\",
		"\x1b[5 q\x1bP$q q\x1b\\":            "\x1bP1$r5 q\x1b\\",
		"\x1bP$qx\x1b\\":                     "\x1bP0$r\x1b\\",
		"\x1b]10;?\x07\x1b]11;?\x07":         "\x1b]10;rgb:ffff/ffff/ffff\x1b\\\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b]4;1;?\x07":                     "\x1b]4;1;rgb:cccc/0000/0000\x1b\\",
		"\x1b]4;1;#123456;1;?\x07":           "\x1b]4;1;rgb:1212/3434/5656\x1b\\",
		"\x1b]12;rgb:1/2/3\x07\x1b]12;?\x07": "\x1b]12;rgb:1111/2222/3333\x1b\\",
		"\x1b[18t":                           "\x1b[8;4;10t",
		"\x1b[14t\x1b[16t":                   "\x1b[4;68;90t\x1b[6;17;9t",
		// What a program set as title it could make the shell run.
		"\x1b]2;rm -rf\x07\x1b[21t\x1b[20t": "",
		"\x1b]52;c;?\x07":                   "",
	} {
		vt := New(Options{Cols: 10, Rows: 4, Version: "ptyd test"})
		vt.Write([]byte(in))
		if got := replies(vt); got != want {
			t.Errorf("%q is answered %q, not %q", in, got, want)
		}
	}
}

func TestRepliesAreBounded(t *testing.T) {
	vt := New(Options{Cols: 10, Rows: 4})
	vt.Write(bytes.Repeat([]byte("\x1b[6n"), 10_000))
	size := 0
	for _, r := range vt.TakeReplies() {
		if string(r) != "\x1b[1;1R" {
			t.Fatalf("a reply in part: %q", r)
		}
		size += len(r)
	}
	if size > MaxReplyBytes || size < MaxReplyBytes-10 {
		t.Errorf("%d bytes of replies wait", size)
	}
	if n := vt.Counters().DroppedReplies; n != uint64(10_000-size/6) {
		t.Errorf("%d replies dropped, %d taken", n, size/6)
	}
}

// A stream that is played again must not be answered again.
func TestSuppressReplies(t *testing.T) {
	for _, in := range []string{"\x1b[6n", "\x1bP$qr\x1b\\", "\u009b6n", "\x1b]10;?\u009c"} {
		stream := strings.Repeat("ab"+in, 3)
		one := len(stream) / 3
		for cut := range len(stream) {
			vt := New(Options{Cols: 10, Rows: 4})
			vt.SetOffset(1000)
			vt.SuppressReplies(int64(1000 + 2*one))
			vt.Write([]byte(stream[:cut]))
			vt.Write([]byte(stream[cut:]))
			if n := len(vt.TakeReplies()); n != 1 {
				t.Fatalf("%q cut at %d: %d replies beyond the offset, not 1", in, cut, n)
			}
			if vt.Offset() != int64(1000+len(stream)) {
				t.Fatalf("offset %d", vt.Offset())
			}
		}
	}
}

func TestEvents(t *testing.T) {
	vt := New(Options{Cols: 10, Rows: 4})
	vt.Write([]byte("\x1b]0;one\x07\x07\x1b]52;c;aGk=\x1b\\\x1b]7;file://h/d\x07\x1b]133;D;2\x07"))
	got := ""
	for _, e := range vt.TakeEvents() {
		got += fmt.Sprintf("%d %s %s; ", e.Kind, e.Text, e.Data)
	}
	if want := "1 one ; 2  ; 4 c aGk=; 3 file://h/d ; 5 D;2 file://h/d; "; got != want {
		t.Errorf("events %q, not %q", got, want)
	}
	vt.Write(bytes.Repeat([]byte{7}, 5000))
	if n := len(vt.TakeEvents()); n != MaxEvents {
		t.Errorf("%d events wait", n)
	}
	if c := vt.Counters(); c.Bells != 5001 || c.DroppedEvents != 5000-MaxEvents {
		t.Errorf("%+v", c)
	}
}

// The saved cursor keeps its place on the screen when the scrollback is full,
// whether of lines or of bytes.
func TestSavedCursorInFullScrollback(t *testing.T) {
	for name, o := range map[string]Options{
		"lines": {Cols: 80, Rows: 5, ScrollbackLines: 10},
		"bytes": {Cols: 80, Rows: 5, ScrollbackBytes: 3 * blockSize},
	} {
		vt := New(o)
		line := []byte(strings.Repeat("x", 70) + "\r\n")
		for range 5000 {
			vt.Write(line)
		}
		vt.Write([]byte("\x1b[3;7H\x1b7\x1b[5;1H"))
		before := vt.HistoryLen()
		for range 2000 {
			vt.Write(line)
		}
		vt.Write([]byte("\x1b8\x1b[6n"))
		// Where the scrollback grew meanwhile, the cursor went up with the text.
		row := max(3-(vt.HistoryLen()-before), 1)
		if want := fmt.Sprintf("\x1b[%d;7R", row); name == "lines" && replies(vt) != want {
			t.Errorf("%s: not at %q", name, want)
		}
		if s := vt.normal.saved.y; s > vt.HistoryLen()+2 {
			t.Errorf("%s: saved at line %d of %d", name, s, vt.HistoryLen())
		}
	}
}

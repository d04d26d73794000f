package tty

import (
	"bytes"
	"strings"
	"testing"
)

func TestModesUndoWhatOutputChanged(t *testing.T) {
	for _, c := range []struct{ name, output, undo string }{
		{"plain text", "hello\r\nworld \xc3\xa9\t\a", ""},
		{"cursor and clearing", "\x1b[2J\x1b[H\x1b[5;7Hx\x1b[K\x1b[1A\x1b7\x1b8", ""},
		{"alternate screen", "\x1b[?1049h", "\x1b[?1049l"},
		{"old alternate screens", "\x1b[?47h", "\x1b[?47l"},
		{"alternate screen left", "\x1b[?1049h...\x1b[?1049l", ""},
		{"left by another number", "\x1b[?1049h...\x1b[?47l", ""},
		{"several modes at once", "\x1b[?1000;1006;2004h", "\x1b[?1000l\x1b[?1006l\x1b[?2004l"},
		{"some of them off again", "\x1b[?1000;1002;1006h\x1b[?1002;1000l", "\x1b[?1006l"},
		{"mouse and focus", "\x1b[?9h\x1b[?1004h\x1b[?1015h\x1b[?1016h", "\x1b[?9l\x1b[?1004l\x1b[?1015l\x1b[?1016l"},
		{"cursor hidden", "\x1b[?25l", "\x1b[?25h"},
		{"cursor hidden and shown", "\x1b[?25l\x1b[?25h", ""},
		{"no wrapping", "\x1b[?7l", "\x1b[?7h"},
		{"application keys", "\x1b[?1h\x1b=", "\x1b[?1l\x1b>"},
		{"keypad by its mode", "\x1b[?66h", "\x1b>"},
		{"keypad back", "\x1b=\x1b>", ""},
		{"cursor shape", "\x1b[5 q", "\x1b[0 q"},
		{"cursor shape back", "\x1b[5 q\x1b[ q", ""},
		{"kitty keyboard", "\x1b[>1u\x1b[>5u", "\x1b[<2u"},
		{"kitty keyboard popped", "\x1b[>1u\x1b[>5u\x1b[<2u", ""},
		{"kitty keyboard set", "\x1b[=5;1u", "\x1b[=0;1u"},
		{"kitty keyboard set in an entry", "\x1b[>1u\x1b[=5u\x1b[<u", ""},
		{"kitty keyboard on both screens", "\x1b[>1u\x1b[?1049h\x1b[>3u", "\x1b[<1u\x1b[?1049l\x1b[<1u"},
		{"a query of the kitty keyboard", "\x1b[?u", ""},
		{"modifyOtherKeys", "\x1b[>4;2m", "\x1b[>4m"},
		{"modifyOtherKeys off", "\x1b[>4;2m\x1b[>4;0m", ""},
		{"modifyOtherKeys reset", "\x1b[>4;2m\x1b[>4m", ""},
		{"modifyOtherKeys disabled", "\x1b[>4n", "\x1b[>4m"},
		{"scroll region", "\x1b[2;10r", "\x1b7\x1b[r\x1b8"},
		{"scroll region of the whole screen", "\x1b[2;10r\x1b[1;24r", ""},
		{"scroll region reset", "\x1b[2;10r\x1b[r", ""},
		{"origin mode", "\x1b[?6h", "\x1b[?6l\x1b[999;1H"},
		{"line drawing", "\x1b(0lqk", "\x1b(B"},
		{"line drawing in G1", "\x1b)0\x0elqk", "\x1b)B\x0f"},
		{"line drawing over", "\x1b(0lqk\x1b(B", ""},
		{"colour", "\x1b[1;31mred", "\x1b[m"},
		{"colour over", "\x1b[1;31mred\x1b[0m", ""},
		{"colour over by parts", "\x1b[1;2;3;4;5;7;8;9;21;38;5;1;48:2::1:2:3;58;2;1;2;3;53m\x1b[22;23;24;25;27;28;29;39;49;59;55m", ""},
		{"no underline by a colon", "\x1b[4:3m\x1b[4:0m", ""},
		{"a colour's number is no attribute", "\x1b[38;5;1m\x1b[39m\x1b[48;2;1;4;7m\x1b[49m", ""},
		{"insert mode", "\x1b[4h", "\x1b[4l"},
		{"synchronised output", "\x1b[?2026h\x1b[?25l", "\x1b[?2026l\x1b[?25h"},
		{"colours of the terminal", "\x1b]11;#000000\x07\x1b]4;1;red\x1b\\", "\x1b]104\x1b\\\x1b]111\x1b\\"},
		{"colours asked for", "\x1b]11;?\x07\x1b]4;1;?\x1b\\", ""},
		{"colours reset", "\x1b]12;red\x07\x1b]112\x07", ""},
		{"hyperlink", "\x1b]8;;http://x/\x1b\\text", "\x1b]8;;\x1b\\"},
		{"hyperlink over", "\x1b]8;id=1;http://x/\x1b\\text\x1b]8;;\x1b\\", ""},
		{"title stack", "\x1b[22;0;0t", popTitle},
		{"title stack popped", "\x1b[22t\x1b[23t", ""},
		{"saved and restored mode", "\x1b[?1001s\x1b[?1001h\x1b[?1001r", ""},
		{"modes nobody knows the start of", "\x1b[?1034h\x1b[?1007l\x1b[?1048h", ""},
		{"everything begins anew", "\x1b[?1049h\x1b[>1u\x1b[31m\x1bc", ""},
		{"soft reset", "\x1b[?1h\x1b=\x1b[4h\x1b[31m\x1b(0\x1b[2;3r\x1b[?25l\x1b[!p", ""},
		{"an open sequence", "\x1b[?104", "\x18"},
		{"an open string", "\x1b]52;c;aGVsbG8", "\x18"},
		{"a cancelled sequence", "\x1b[?1049\x18h", ""},
		{"a control inside a sequence", "\x1b[?10\r49h", "\x1b[?1049l"},
		{"a mode inside a string", "\x1bPq\x1b[?1049h", "\x1b[?1049l"},
		{"a mode as text of a string", "\x1b]2;[?1049h\x07", popTitle},
		{"too many parameters", "\x1b[?" + strings.Repeat("1;", 100) + "2004h", "\x1b[?1l\x1b[?2004l"},
		{"a huge number", "\x1b[?99999999999999999999h\x1b[99999999999999;9999999r", "\x1b7\x1b[r\x1b8\x1b[?65535l"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Modes{Rows: 24}
			m.Filter([]byte(c.output))
			if got := string(m.Undo()); got != c.undo {
				t.Errorf("whole: undo is %q, want %q", got, c.undo)
			}
			var cut Modes
			cut.Rows = 24
			var out []byte
			for i := range len(c.output) {
				out = append(out, cut.Filter([]byte(c.output[i:i+1]))...)
			}
			out = append(out, cut.held...)
			if got := strings.ReplaceAll(string(out), pushTitle, ""); got != c.output {
				t.Errorf("byte by byte: output is %q, want %q", got, c.output)
			}
			if got := string(cut.Undo()); got != c.undo {
				t.Errorf("byte by byte: undo is %q, want %q", got, c.undo)
			}
		})
	}
}

func TestModesSaveTheTitleBeforeTheFirst(t *testing.T) {
	for _, c := range []struct{ name, output, want string }{
		{"title", "a\x1b]0;b\x07c\x1b]2;d\x07", "a" + pushTitle + "\x1b]0;b\x07c\x1b]2;d\x07"},
		{"icon name", "\x1b]1;b\x1b\\", pushTitle + "\x1b]1;b\x1b\\"},
		{"no title", "\x1b]10;?\x07\x1b]133;A\x07\x1b]7;file:///\x07", "\x1b]10;?\x07\x1b]133;A\x07\x1b]7;file:///\x07"},
		{"title inside an open sequence", "\x1b[3\x1b]2;x\x07", "\x1b[3" + pushTitle + "\x1b]2;x\x07"},
		{"title inside an open string", "\x1b]52;c;\x1b]2;x\x07", "\x1b]52;c;" + pushTitle + "\x1b]2;x\x07"},
		{"popped, then another", "\x1b]2;x\x07\x1b[23t\x1b]2;y\x07", pushTitle + "\x1b]2;x\x07\x1b[23t\x1b]2;y\x07"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.output); size++ {
				var m Modes
				var got []byte
				for rest := c.output; rest != ""; {
					n := min(size, len(rest))
					got = append(got, m.Filter([]byte(rest[:n]))...)
					rest = rest[n:]
				}
				got = append(got, m.Rest()...)
				want := c.want
				if c.name == "popped, then another" && size < len(c.output) {
					// Within one piece the push is spared.
					if n := bytes.Count(got, []byte(pushTitle)); n < 1 || n > 2 {
						t.Errorf("pieces of %d: %d titles saved", size, n)
					}
					continue
				}
				if string(got) != want {
					t.Errorf("pieces of %d: %q, want %q", size, got, want)
				}
			}
		})
	}
}

// FuzzModes: nothing panics; the result does not depend on how the stream was
// cut; nothing but titles is inserted; what Undo writes leaves nothing to undo.
func FuzzModes(f *testing.F) {
	for _, s := range []string{
		"\x1b[?1049h\x1b[>1u\x1b[=3;2u\x1b[?1000;2004h\x1b[5 q\x1b[2;3r\x1b(0\x0e\x1b[1;38:5:3mx",
		"\x1b]0;t\x07\x1b]4;1;red\x1b\\\x1b]8;;x\x07\x1b[22t\x1b[23;0t\x1b[?6h\x1b[?69h",
		"\x1bP$q\x1b\\\x1b_G\x1b\\\x1b[?25l\x1b[!p\x1bc\x1b[>4;2m\x1b[>4n\x1b]9;4;1\x07\x1b]22;x\x07",
		"\x1b]\x1b]2;\x1b", "\x1b]52;\x1b\x1b]0;x", "\x1b%@\x1b[20h\x1b[?2026h\x1b[?7l\x1b[?1s\x1b[?1r",
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		var whole, cut Modes
		out := append([]byte(nil), whole.Filter(append([]byte(nil), p...))...)
		size = 1 + max(size, -size)%max(len(p), 1)
		if size < 1 {
			size = 1
		}
		var pieces []byte
		for i := 0; i < len(p); i += size {
			pieces = append(pieces, cut.Filter(append([]byte(nil), p[i:min(i+size, len(p))]...))...)
		}
		rest := append([]byte(nil), whole.held...)
		pieces = append(pieces, cut.held...)
		u, v := whole.Undo(), cut.Undo()
		// A title that is cancelled may have been saved before that was known,
		// after which nothing is held back.
		strip := strings.NewReplacer(popTitle, "", "\x18", "").Replace
		if strip(string(u)) != strip(string(v)) {
			t.Fatalf("undo depends on the cut: %q and %q", u, v)
		}
		clean := strings.ReplaceAll(string(p), pushTitle, "")
		if got := strings.ReplaceAll(string(out)+string(rest), pushTitle, ""); got != clean {
			t.Fatalf("output is %q, want %q", got, clean)
		}
		if got := strings.ReplaceAll(string(pieces), pushTitle, ""); got != clean {
			t.Fatalf("output in pieces is %q, want %q", got, clean)
		}
		if bytes.Contains(p, []byte(pushTitle)) || bytes.Contains(p, []byte("t")) {
			return // the stream plays with the stack itself
		}
		var after Modes
		after.Filter(append(append([]byte(nil), out...), u...))
		after.titled, after.titles = false, 0
		if w := after.Undo(); len(w) != 0 {
			t.Fatalf("after the undo %q there is still %q", u, w)
		}
	})
}

package oracle

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

var recordFlag = flag.Bool("record", false, "record the programs anew into testdata (as root, with all of them installed)")

const recordings = "testdata/recorded.json.gz"

// recording is what a program printed, with the changes of size between.
type recording struct {
	Name   string `json:"name"`
	Cols   int    `json:"cols"`
	Rows   int    `json:"rows"`
	Tokens []struct {
		B    []byte `json:"b,omitempty"`
		Cols int    `json:"cols,omitempty"`
		Rows int    `json:"rows,omitempty"`
	} `json:"tokens"`
}

func (r recording) stream(scrollback int) stream {
	s := stream{cols: r.Cols, rows: r.Rows, scrollback: scrollback}
	for _, k := range r.Tokens {
		s.tokens = append(s.tokens, token{b: k.B, cols: k.Cols, rows: k.Rows})
	}
	return s
}

// script is a program and what is typed: keys, or "size COLSxROWS".
type script struct {
	name, need string
	argv       []string
	keys       []string
}

// A shell of its own namespaces: what is recorded tells nothing of the machine.
func sh(command string) []string {
	return []string{"unshare", "--pid", "--fork", "--mount-proc", "--uts", "--net", "sh", "-c", "hostname host; exec " + command}
}

var scripts = []script{
	{"vim", "vim", sh("vim -u NONE -N -c 'set number hlsearch incsearch ruler showcmd' -c 'syntax on' code.c"),
		[]string{"\x06", "\x06", "\x02", "/return\r", "n", "n", "ggVjjj", "\x1b", ":split\r", ":vsplit\r", "\x17\x17", "iwide \u4e2d\u6587 text\x1b", "size 100x30",
			"\x05\x05\x05\x19", "u", "size 60x20", ":%s/int/long/g\r", "G", ":q\r", ":qa!\r"}},
	{"less", "less", sh("less -R log.txt"), []string{" ", " ", "b", "/ERROR\r", "n", "n", "N", "G", "g", "size 50x15", " ", "size 90x30", "j", "k", "jjjj", "q"}},
	{"man", "man", sh("man -P 'less -R' ls"), []string{" ", " ", "b", "/sort\r", "n", "size 60x20", " ", "q"}},
	{"htop", "htop", sh("htop"), []string{"\x1b[B", "\x1b[B", "t", "size 120x35", "\x1bOP", "q", "\x1bOQ", "\x1b", "size 60x18", "q"}},
	{"top", "top", sh("top -d 0.3"), []string{"1", "z", "x", "size 100x30", "m", "t", "q"}},
	{"mc", "mc", sh("mc -a -u . src"), []string{"\x1b[B", "\x1b[B", "\x1b[B", "\t", "\x1b[B", "size 100x30", "\x1bOR", "\x1bOR", "\x1b9", "\x1b[B", "\x1b", "\x1b", "size 70x20", "ls\r", "\x0f", "\x0f", "\x1b0", "\r"}},
	{"tmux", "tmux", sh("tmux -L rec -f /dev/null new -s s 'env PS1=\"$ \" bash --norc'"),
		[]string{"ls --color -l\r", "\x02%", "cat utf8.txt\r", "\x02\"", "seq 1 60\r", "\x02o", "\x02z", "size 110x32", "\x02z", "\x02c", "echo window\r", "\x02n", "\x02[", "\x1b[5~", "q", "size 70x20", "\x02d"}},
	{"git", "git", sh("git -c color.ui=always -c core.pager='less -R' log --graph --stat"), []string{" ", " ", "b", "size 60x15", " ", "/work\r", "q"}},
	{"bash", "bash", sh("env PS1='\\[\\e[1;32m\\]\\u@host\\[\\e[0m\\]:\\[\\e[34m\\]\\w\\[\\e[0m\\]\\$ ' bash --norc"),
		[]string{"ls --color -la\r", "echo long " + strings.Repeat("line ", 30), "\x01", "\x0b", "\x19\r", "cat utf8.txt\r", "\x12ls", "\r", "size 40x12", "printf 'a\\tb\\tc\\n'\r", "e\t\t", "\x15", "size 100x30", "clear\r", "exit\r"}},
	{"fish", "fish", sh("fish --no-config"), []string{"ls -l\r", "echo hel", "lo\r", "cat ut\t\r", "ec", "\x1b[C", "\x15", "size 50x15", "seq 1 40\r", "ls --\t", "\t", "\x1b", "\x15", "size 90x25", "exit\r"}},
	{"zsh", "zsh", sh("zsh -f"), []string{"PROMPT='%F{green}%n%f %~ %# ' RPROMPT='%T'\r", "ls --color\r", "echo long " + strings.Repeat("text ", 25) + "\r", "autoload -U compinit; compinit -u\r", "ls \t\t\t", "\x03", "size 45x12", "cat utf8.txt\r", "size 90x25", "exit\r"}},
	{"nano", "nano", sh("nano --ignorercfiles -c code.c"), []string{"\x16", "\x16", "text \u4e2d\u6587 e\u0301 \u2026\r", "\x0b\x0b", "\x15", "size 100x30", "\x17int\r", "size 60x16", "\x18", "n"}},
	{"dialogs", "bash", sh("bash screens.sh"), []string{"", "size 60x20", "", "size 100x30", ""}},
}

// record runs a script in a terminal that our emulator answers for.
func record(t *testing.T, s script, dir string) recording {
	t.Helper()
	const cols, rows = 80, 24
	r := recording{Name: s.name, Cols: cols, Rows: rows}
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "USER=user", "LOGNAME=user",
		"HOME=" + dir, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "SHELL=/bin/bash", "TMUX_TMPDIR=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	term := newSubject(cols, rows, 1000)
	chunks := make(chan []byte, 100)
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 4096)
			n, err := master.Read(b)
			if n > 0 {
				chunks <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	add := func(b []byte, cols, rows int) {
		r.Tokens = append(r.Tokens, struct {
			B    []byte `json:"b,omitempty"`
			Cols int    `json:"cols,omitempty"`
			Rows int    `json:"rows,omitempty"`
		}{b, cols, rows})
	}
	// until nothing comes for a while; true when the program has ended.
	drain := func(quiet, most time.Duration) bool {
		deadline := time.After(most)
		for {
			select {
			case b, ok := <-chunks:
				if !ok {
					return true
				}
				term.Write(b)
				for _, reply := range term.TakeReplies() {
					_, _ = master.Write(reply)
				}
				if n := len(r.Tokens); n > 0 && r.Tokens[n-1].Cols == 0 {
					r.Tokens[n-1].B = append(r.Tokens[n-1].B, b...)
				} else {
					add(b, 0, 0)
				}
			case <-time.After(quiet):
				return false
			case <-deadline:
				return false
			}
		}
	}
	ended := drain(700*time.Millisecond, 3*time.Second)
	for _, k := range s.keys {
		if ended {
			break
		}
		var c, w int
		if n, _ := fmt.Sscanf(k, "size %dx%d", &c, &w); n == 2 {
			add(nil, c, w)
			term.Resize(c, w)
			_ = pty.Setsize(master, &pty.Winsize{Cols: uint16(c), Rows: uint16(w)})
		} else {
			_, _ = master.WriteString(k)
		}
		ended = drain(250*time.Millisecond, 1500*time.Millisecond)
	}
	if !ended {
		_ = cmd.Process.Kill()
		drain(time.Second, 3*time.Second)
	}
	_ = cmd.Wait()
	return r
}

// prepare fills a directory with what the programs show.
func prepare(t *testing.T, dir string) {
	t.Helper()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var code, log strings.Builder
	for i := range 60 {
		fmt.Fprintf(&code, "/* step %d: \u2014 \u201cquoted\u201d \u2026 */\nint f%d(int n)\n{\n\tfor (int i = 0; i < n; i++)\n\t\tprintf(\"%%d\\n\", i * %d);\n\treturn n + %d; // %s\n}\n\n", i, i, i, i, strings.Repeat("word ", i%20))
		fmt.Fprintf(&log, "\x1b[2m12:%02d:00\x1b[0m \x1b[%dmINFO\x1b[0m request %d took \x1b[38;5;%dm%dms\x1b[0m %s\n", i, 32+i%3, i, 16+i*3, i*7, strings.Repeat("path/", i%9))
		if i%7 == 0 {
			fmt.Fprintf(&log, "\x1b[1;31mERROR\x1b[0m \x1b[48;2;40;0;0mfailed\x1b[0m \x1b]8;;http://host/%d\x1b\\link\x1b]8;;\x1b\\ \u4e2d\u6587\u5b57\u7b26 \U0001f600\n", i)
		}
	}
	write("code.c", code.String())
	write("log.txt", log.String())
	write("utf8.txt", "plain\nna\u00efve caf\u00e9 \u2014 \u201cquotes\u201d \u2026\n\u4e2d\u6587\u5b57\u7b26 \ud55c\uad6d\uc5b4 \u65e5\u672c\u8a9e \uff21\uff22\uff23\n\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f\ne\u0301 a\u0308 o\u0302\u0323\n\u2554\u2550\u2550\u2557\n\u2551\u2588\u2592\u2551\n\u255a\u2550\u2550\u255d\n"+
		"\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0928\u092e\u0938\u094d\u0924\u0947 \u0645\u0631\u062d\u0628\u0627\n"+strings.Repeat("\u6f22\u5b57", 45)+"\n")
	write("screens.sh", `printf '\e[?1049h\e[2J'; for i in $(seq 1 20); do printf '\e[%d;%dH\e[48;5;%dm box %d \e[0m' $i $((i*3)) $((i*9)) $i; done
read -t 1; printf '\e[5;15r\e[5;1H'; seq 1 30; printf '\e[r\e[?6h\e[3;3Hq\e[?6l\e(0lqqqk\r\nx   x\r\nmqqqj\e(B'; read -t 1
printf '\e[?1049l'; for i in $(seq 1 40); do printf '\e[3%dmline %d\e[0m \e[4:3;58:2::255:0:0mcurly\e[0m \e[9mstrike\e[0m\n' $((i%8)) $i; done
read -t 1; for i in $(seq 0 5 100); do printf '\rprogress %3d%% [%-50s]' $i "$(printf '%*s' $((i/2)) | tr ' ' '#')"; done; echo; printf '\e]0;title\a\e[?25l'; read -t 1; printf '\e[?25h'
`)
	for _, d := range []string{"docs", "src", "build", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("run.sh", "#!/bin/sh\n")
	_ = os.Chmod(filepath.Join(dir, "run.sh"), 0o755)
	_ = os.Symlink("code.c", filepath.Join(dir, "link"))
	var repo strings.Builder
	repo.WriteString("git init -q . && git config user.name user && git config user.email user@host && git add code.c log.txt && git commit -qm 'first: the code'")
	for i := range 12 {
		fmt.Fprintf(&repo, " && echo %d >> code.c && git commit -qam 'work %d: a change of what there was, \u201cquoted\u201d'", i, i)
		if i == 5 {
			repo.WriteString(" && git checkout -qb side && echo s >> log.txt && git commit -qam side && git checkout -q - && git merge -q --no-edit side")
		}
	}
	cmd := exec.Command("sh", "-c", repo.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git: %v\n%s", err, out)
	}
}

// recordAll runs all scripts whose programs are here.
func recordAll(t *testing.T) []recording {
	t.Helper()
	dir, err := os.MkdirTemp("", "rec")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	prepare(t, dir)
	var out []recording
	for _, s := range scripts {
		if _, err := exec.LookPath(s.need); err != nil {
			t.Logf("left out: %s is not installed", s.need)
			continue
		}
		r := record(t, s, dir)
		n := 0
		for _, k := range r.Tokens {
			n += len(k.B)
		}
		t.Logf("%s: %d bytes", s.name, n)
		out = append(out, r)
	}
	return out
}

// loadRecordings reads testdata, after recording it anew where that is asked.
func loadRecordings(t *testing.T) []recording {
	t.Helper()
	if *recordFlag {
		*recordFlag = false // once a run
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err := json.NewEncoder(z).Encode(recordAll(t)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(recordings), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(recordings, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(recordings)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []recording
	if err := json.NewDecoder(z).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

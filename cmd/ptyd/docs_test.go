package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// everyCommand calls f with each command of the tree.
func everyCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		everyCommand(sub, f)
	}
}

func TestDocsAreUpToDate(t *testing.T) {
	got, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, markdown(docsRoot())) {
		t.Error("docs/cli.md is not what the commands say: run go generate ./cmd/ptyd")
	}
}

// TestDocsDoNotDependOnWhoWritesThem: defaults come from the environment.
func TestDocsDoNotDependOnWhoWritesThem(t *testing.T) {
	before := markdown(docsRoot())
	t.Setenv("HOME", "/somewhere")
	t.Setenv("XDG_STATE_HOME", "/else")
	t.Setenv("PTYD_DETACH_KEYS", "C-x")
	t.Setenv("PTYD_LISTEN", "127.0.0.1:1")
	if !bytes.Equal(before, markdown(docsRoot())) {
		t.Error("the documentation depends on the environment")
	}
	if os.Getenv("HOME") != "/somewhere" {
		t.Error("the environment is not what it was")
	}
}

func TestEveryCommandIsExplained(t *testing.T) {
	everyCommand(docsRoot(), func(cmd *cobra.Command) {
		if cmd.Name() == "help" || !cmd.HasParent() {
			return
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short text %q", cmd.CommandPath(), cmd.Short)
		}
		if !cmd.IsAdditionalHelpTopicCommand() && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Long, "\n") {
			if len([]rune(line)) > 82 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), len([]rune(line)), line)
			}
		}
	})
}

func TestGenDocs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dist")
	run(t, call{args: []string{"gen-docs", dir}}).ok(t)
	md, err := os.ReadFile(filepath.Join(dir, "cli.md"))
	if err != nil || !bytes.Equal(md, markdown(docsRoot())) {
		t.Errorf("cli.md: %d bytes, %v", len(md), err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man", "man1", "*.1"))
	if err != nil || len(pages) < 30 {
		t.Errorf("%d manual pages, %v", len(pages), err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "man", "man1", "ptyd-user-add.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH PTYD\\-USER\\-ADD 1", ".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", "\\-\\-password\\-file FILE", ".SH EXAMPLES", ".BR ptyd\\-user (1)"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		return // what the pages are made of is checked above
	}
	for _, p := range pages {
		if out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", p).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", filepath.Base(p), err, out)
		}
	}
}

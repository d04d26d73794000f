package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ptyd/ptyd/internal/config"
)

//go:generate go run . gen-docs --markdown-only ../../docs

// docsHome stands for the home of whoever reads the documentation.
const docsHome = "/home/ptyd-docs"

// newGenDocs writes the documentation of all commands.
func newGenDocs() *cobra.Command {
	var markdownOnly bool
	cmd := &cobra.Command{
		Use:    "gen-docs DIR",
		Hidden: true,
		Short:  "Write the documentation of all commands",
		Long: `Write the documentation of all commands: DIR/cli.md, and a manual page each in
DIR/man/man1.`,
		Example: `  ptyd gen-docs dist
  man -M dist/man ptyd-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			root := docsRoot()
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(args[0], "cli.md"), markdown(root), 0o644); err != nil || markdownOnly {
				return err
			}
			dir := filepath.Join(args[0], "man", "man1")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for _, cmd := range documented(root) {
				name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
				if err := os.WriteFile(filepath.Join(dir, name), manPage(cmd), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&markdownOnly, "markdown-only", false, "write cli.md alone")
	return cmd
}

// docsRoot is the tree of commands as it is where nothing is set: defaults in
// the documentation must not be those of whoever wrote it.
func docsRoot() *cobra.Command {
	before := os.Environ()
	os.Clearenv()
	_ = os.Setenv("HOME", docsHome)
	defer func() {
		os.Clearenv()
		for _, kv := range before {
			k, v, _ := strings.Cut(kv, "=")
			_ = os.Setenv(k, v)
		}
	}()
	root := newRoot()
	root.InitDefaultHelpCmd()
	return root
}

// documented are the commands that have documentation, each before those below it.
func documented(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" || sub.IsAdditionalHelpTopicCommand() && !sub.Hidden {
			list = append(list, documented(sub)...)
		}
	}
	return list
}

// paragraph is a part of a long text. Fixed ones keep their lines.
type paragraph struct {
	text  string
	fixed bool
}

// paragraphs splits a text at its blank lines; what is indented is fixed.
func paragraphs(text string) []paragraph {
	var out []paragraph
	for _, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if p != "" {
			out = append(out, paragraph{strings.Trim(p, "\n"), strings.HasPrefix(p, "  ")})
		}
	}
	return out
}

// option is a flag as the documentation shows it.
type option struct {
	name, usage string
}

// options are the documented flags of a set.
func options(flags *pflag.FlagSet) []option {
	var out []option
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		switch f.DefValue {
		case "", "0", "false", "[]", "0s":
		default:
			if !isGlobal(f.Name) {
				usage += fmt.Sprintf(" (default %s)", f.DefValue)
			}
		}
		out = append(out, option{name, strings.ReplaceAll(usage, docsHome, "~")})
	})
	return out
}

// isGlobal reports whether a flag is one of those that every command takes:
// their defaults come from where the command runs.
func isGlobal(name string) bool {
	switch name {
	case "state-dir", "url", "token-file", "json":
		return true
	}
	return false
}

// useLine is how a command is written.
func useLine(cmd *cobra.Command) string {
	line := cmd.CommandPath()
	if _, args, ok := strings.Cut(cmd.Use, " "); ok {
		line += " " + args
	}
	if cmd.HasAvailableSubCommands() {
		line += " COMMAND"
	}
	return line
}

// markdown is docs/cli.md.
func markdown(root *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Made by `go generate ./cmd/ptyd` from the commands' own help. Do not edit. -->\n")
	fmt.Fprintf(&b, "# The commands of ptyd\n\n%s.\n\n", root.Short)
	fmt.Fprintf(&b, "Every command has `--help`. These options go before or after any command:\n\n")
	writeOptions(&b, options(root.PersistentFlags()))
	fmt.Fprintf(&b, "| command | |\n|---|---|\n")
	for _, cmd := range documented(root)[1:] {
		path := cmd.CommandPath()
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), cmd.Short)
	}
	for _, cmd := range documented(root)[1:] {
		fmt.Fprintf(&b, "\n## %s\n\n", cmd.CommandPath())
		if cmd.Runnable() {
			fmt.Fprintf(&b, "    %s\n\n", useLine(cmd))
		}
		text := cmd.Long
		if text == "" {
			text = cmd.Short + "."
		}
		for _, p := range paragraphs(text) {
			if p.fixed {
				fmt.Fprintf(&b, "```text\n%s\n```\n\n", p.text)
			} else {
				fmt.Fprintf(&b, "%s\n\n", markdownText(p.text))
			}
		}
		writeOptions(&b, options(cmd.NonInheritedFlags()))
		if cmd.Example != "" {
			fmt.Fprintf(&b, "Examples:\n\n```sh\n%s\n```\n", unindent(cmd.Example))
		}
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

// markdownText escapes what Markdown would take for its own.
func markdownText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `<`, `\<`, `*`, `\*`, `_`, `\_`).Replace(s)
}

func writeOptions(b *bytes.Buffer, list []option) {
	for _, o := range list {
		fmt.Fprintf(b, "- `%s`: %s\n", o.name, markdownText(o.usage))
	}
	if len(list) > 0 {
		fmt.Fprintln(b)
	}
}

// unindent takes two spaces off each line of an example.
func unindent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}

// manPage is the manual page of one command.
func manPage(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"ptyd %s\" \"ptyd\"\n.nh\n.ad l\n", roff(strings.ToUpper(name)), roff(config.ReadBuild().Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	if cmd.Runnable() {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(useLine(cmd)))
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n")
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	for i, p := range paragraphs(text) {
		if i > 0 {
			fmt.Fprintln(&b, ".PP")
		}
		if p.fixed {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(p.text))
		} else {
			fmt.Fprintln(&b, roff(p.text))
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(&b, ".SH COMMANDS")
		for _, sub := range documented(cmd)[1:] {
			if sub.Parent() == cmd {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	for _, part := range []struct {
		title string
		list  []option
	}{{"OPTIONS", options(cmd.NonInheritedFlags())}, {"GLOBAL OPTIONS", options(cmd.InheritedFlags())}} {
		if len(part.list) == 0 {
			continue
		}
		fmt.Fprintf(&b, ".SH %s\n", part.title)
		for _, o := range part.list {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(o.name), roff(o.usage))
		}
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(unindent(cmd.Example)))
	}
	var see []string
	if p := cmd.Parent(); p != nil {
		see = append(see, strings.ReplaceAll(p.CommandPath(), " ", "-"))
	}
	for _, sub := range documented(cmd)[1:] {
		if sub.Parent() == cmd {
			see = append(see, strings.ReplaceAll(sub.CommandPath(), " ", "-"))
		}
	}
	fmt.Fprintln(&b, ".SH SEE ALSO")
	for i, s := range see {
		comma := ","
		if i == len(see)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(s), comma)
	}
	return b.Bytes()
}

// roff escapes text for a manual page.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

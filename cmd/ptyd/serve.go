package main

import (
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/daemon"
	"github.com/ptyd/ptyd/web"
)

func newServe(g *globals) *cobra.Command {
	var (
		file      string
		printLink bool
		worker    bool
		alone     bool
		stay      bool
		canAdopt  bool
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `Run the daemon: it keeps terminals alive, serves the page and the API on a TCP
address, and the command line by a socket in the state directory.

Two processes run: the one that you started keeps the terminals, and starts the
other, the worker, which does all the work. When the worker dies or is replaced,
sessions go on; see "ptyd status".

It prints one line when it is ready. On a terminal that line is a link that logs
your browser in, once. Logs go to standard error. SIGTERM and Ctrl-C end it and
all sessions in order, and ask first where somebody sits at its terminal and
sessions run; the second time they do not ask, then they hurry. SIGHUP makes it
read its configuration again. When its terminal closes its sessions end, unless
it was started with --stay or nohup. docs/upgrading.md says what survives what.

Each setting is also a key of the configuration file and an environment
variable: --sessions-total is sessions_total and PTYD_SESSIONS_TOTAL. Flags win
over the environment, the environment over the file.`,
		Example: `  ptyd serve
  ptyd serve --listen 127.0.0.1:0 --state-dir /tmp/scratch
  ptyd serve --listen 0.0.0.0:7373 --tls-cert /etc/ptyd/cert.pem --tls-key /etc/ptyd/key.pem
  ptyd serve --base-path /terminals --public-url https://example.com/terminals
  PTYD_LOG_LEVEL=debug ptyd serve --remove-after 1h`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", os.Getenv("PTYD_CONFIG"), "TOML file with settings (PTYD_CONFIG; default "+config.DefaultFile()+", if it exists)")
	flags.BoolVar(&printLink, "print-link", false, "print the login link even where standard output is no terminal")
	flags.BoolVar(&alone, "no-keeper", false, "run without a keeper: sessions end with the daemon")
	flags.BoolVar(&stay, "stay", false, "keep the sessions when the terminal that this was started from closes (nohup implies it)")
	flags.BoolVar(&worker, "worker", false, "be the worker of a keeper (the keeper gives this)")
	flags.BoolVar(&canAdopt, "can-adopt", false, "say what could be taken over from another release, as JSON (an upgrade asks this)")
	for _, name := range []string{"worker", "can-adopt"} {
		_ = flags.MarkHidden(name) // it exists
	}
	given := addSettings(flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("state-dir") {
			given["state_dir"] = g.StateDir
		}
		load := func() (config.Config, error) {
			return config.Load(config.Sources{File: file, Environ: os.Environ(), Flags: given})
		}
		if canAdopt {
			return sayTakeover(cmd, load)
		}
		if !worker && !alone {
			code, err := daemon.Keep(cmd.Context(), daemon.KeepOptions{
				Load: load, Args: append(slices.Clone(os.Args[1:]), "--worker"), Stderr: os.Stderr, Build: config.ReadBuild(),
				Stay: stay, Confirm: confirmEnd,
			})
			if err == nil && code != 0 {
				err = &exitError{Status: code}
			}
			return err
		}
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, daemon.KeeperDied)
		defer signal.Stop(signals)
		// A log that nobody reads any more must not end the daemon. Not ignored
		// but caught: sessions would inherit an ignored signal.
		pipe := make(chan os.Signal, 1)
		signal.Notify(pipe, syscall.SIGPIPE)
		defer signal.Stop(pipe)

		var page fs.FS
		if files, built := web.FS(); built {
			page = files
		}
		return daemon.Run(cmd.Context(), daemon.RunOptions{
			Load: load, Build: config.ReadBuild(), Page: page, Stdout: os.Stdout, Stderr: os.Stderr,
			PrintLink: printLink || term.IsTerminal(int(os.Stdout.Fd())), Signals: signals,
			Args: os.Args[1:],
		})
	}
	return cmd
}

// sayTakeover answers what an upgrade asks of this binary before it follows
// another: with the same arguments and configuration as its worker would have.
func sayTakeover(cmd *cobra.Command, load func() (config.Config, error)) error {
	if _, err := load(); err != nil {
		return err
	}
	t, err := daemon.OwnTakeover(config.ReadBuild())
	if err != nil {
		return err
	}
	return emit(cmd, jsonLine(t))
}

// addSettings registers a flag for every key of the configuration but
// state_dir, which is a global flag. The map fills with those that are given.
func addSettings(flags *pflag.FlagSet) map[string]string {
	given := map[string]string{}
	for _, k := range config.Keys {
		if k.Name == "state_dir" {
			continue
		}
		def := config.Default()
		v := k.Value(&def)
		f := flags.VarPF(&setting{key: k, text: v.String(), kind: v.Type(), given: given}, k.Flag(), "", strings.ReplaceAll(k.Doc, "`", "")+" ("+k.Env()+")")
		if v.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	return given
}

// setting is the flag of one key. It only notes what was given: whether that is
// right is said by config.Load, together with all other mistakes.
type setting struct {
	key   config.Key
	text  string
	kind  string
	given map[string]string
}

func (s *setting) Set(text string) error {
	s.text = text
	s.given[s.key.Name] = text
	return nil
}
func (s *setting) String() string { return s.text }
func (s *setting) Type() string   { return s.kind }

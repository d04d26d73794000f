// Command ptyd-bench measures the ptyd binary beside a bare terminal server.
// It reports; it fails only when something could not be measured or a byte
// was wrong, never because of a time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ptyd/ptyd/internal/bench"
)

func main() {
	if played, err := bench.Role(os.Args[1:]); played {
		exit(err)
		return
	}
	exit(run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ptyd-bench:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		ptyd   = flag.String("ptyd", "bin/ptyd", "the daemon's `binary`")
		tests  = flag.String("tests", "all", "comma-separated `list` of "+strings.Join(bench.TestNames(), ", "))
		reps   = flag.Int("reps", 0, "repetitions of each measurement (0: as many as usual)")
		short  = flag.Bool("short", false, "a quick look, in less than a minute")
		out    = flag.String("o", "out/bench.json", "write the results to this `file`")
		self   = flag.Bool("selfcheck", false, "measure the baseline against itself: ratios should be near 1")
		readme = flag.String("update-readme", "", "measure nothing: put the results of -o into this `file`, between its marks")
	)
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if *readme != "" {
		rep, err := bench.ReadReport(*out)
		if err != nil {
			return err
		}
		return bench.UpdateReadme(*readme, rep)
	}
	binary, err := filepath.Abs(*ptyd) // the daemon runs in a folder of its own
	if err != nil {
		return err
	}
	o := bench.Options{Ptyd: binary, Reps: *reps, Short: *short, SelfCheck: *self, Log: os.Stderr}
	if o.Tests, err = bench.ParseTests(*tests); err != nil {
		return err
	}
	if o.Self, err = os.Executable(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rep, err := bench.Run(ctx, o)
	if rep == nil {
		return err
	}
	fmt.Print(rep.Table())
	if werr := rep.Write(*out); werr != nil {
		return werr
	}
	return err
}

package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// restoreOnSignal brings a terminal's settings back when a signal ends the
// process, until the returned function is called.
func restoreOnSignal(fd int, before *term.State) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case sig := <-signals:
			_ = term.Restore(fd, before)
			os.Exit(128 + int(sig.(unix.Signal)))
		case <-over:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		<-ended
	}
}

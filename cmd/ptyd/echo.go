package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// hideInput switches echo off. It is done before anything is asked, so that
// what is typed early is not shown either.
func hideInput(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

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

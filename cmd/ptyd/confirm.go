package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// confirmEnd asks the person at the terminal whether the sessions shall end.
// Where nobody sits there it is not asked, and they end as the signal said.
func confirmEnd(ctx context.Context, sessions int) bool {
	// Its own open file: the terminal's other users keep their blocking reads.
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return true
	}
	defer tty.Close()
	raw, err := tty.SyscallConn()
	if err != nil {
		return true
	}
	// In the background a question would stop this process (SIGTTIN), and
	// whoever sits there is busy with something else.
	front := 0
	if e := raw.Control(func(fd uintptr) { front, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }); e != nil || err != nil || front != unix.Getpgrp() {
		return true
	}
	defer context.AfterFunc(ctx, func() { _ = tty.SetReadDeadline(time.Unix(1, 0)) })()
	what := "1 session runs. End it?"
	if sessions != 1 {
		what = fmt.Sprintf("%d sessions run. End them?", sessions)
	}
	fmt.Fprintf(tty, "\nptyd: %s [y/N] ", what)
	line, err := bufio.NewReader(tty).ReadString('\n')
	switch answer := strings.ToLower(strings.TrimSpace(line)); {
	case ctx.Err() != nil:
		fmt.Fprintln(tty)
		return false // decided otherwise
	case err == nil && (answer == "y" || answer == "yes"):
		return true
	default:
		fmt.Fprintln(tty, "ptyd: it goes on; Ctrl-C twice ends it without a question")
		return false
	}
}

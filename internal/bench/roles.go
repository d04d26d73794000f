package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ptyd/ptyd/internal/bench/baseline"
	"github.com/ptyd/ptyd/internal/bench/workload"
)

// The first argument of a bench binary that plays another part.
const (
	RoleBaseline = "as-baseline" // ADDRESS: serve package baseline until standard input ends
	RoleChild    = "as-child"    // MODE…: be the program inside a terminal
	RoleFlood    = "as-flood"    // view the sessions that standard input's first line names, until it ends
)

// Role runs the part that args ask for; played is false when they ask for none.
func Role(args []string) (played bool, err error) {
	switch {
	case len(args) == 2 && args[0] == RoleBaseline:
		return true, serveBaseline(args[1], os.Stdin)
	case len(args) > 1 && args[0] == RoleChild:
		return true, workload.Main(args[1:])
	case len(args) == 1 && args[0] == RoleFlood:
		return true, viewFloods(os.Stdin, os.Stdout)
	}
	return false, nil
}

// serveBaseline ends without ceremony: what runs in its terminals gets a
// hangup from the kernel.
func serveBaseline(addr string, stdin io.Reader) error {
	failed := make(chan error, 1)
	srv := &http.Server{Addr: addr, Handler: baseline.New()}
	go func() { failed <- srv.ListenAndServe() }()
	go func() {
		io.Copy(io.Discard, stdin)
		failed <- nil
	}()
	return <-failed
}

// viewFloods starts the flood in each session and views it, says "ready" once
// all of them flow, and at the end how many bytes per second came in all.
func viewFloods(stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n') // not an argument: it holds a token
	if err != nil {
		return err
	}
	var c contact
	if err := json.Unmarshal(line, &c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var total atomic.Int64
	flowing := make(chan error, len(c.IDs))
	for _, id := range c.IDs {
		v, err := c.view(ctx, id)
		if err != nil {
			return err
		}
		defer v.close()
		if err := awaitReady(v); err != nil {
			return err
		}
		go func() {
			if err := v.input([]byte("g")); err != nil {
				flowing <- err
				return
			}
			for n := 0; ; {
				_, p, err := v.next()
				if err != nil {
					flowing <- err
					return
				}
				total.Add(int64(len(p)))
				if n < 64<<10 && n+len(p) >= 64<<10 {
					flowing <- nil
				}
				n += len(p)
			}
		}()
	}
	for range c.IDs {
		if err := <-flowing; err != nil {
			return err
		}
	}
	begin, before := time.Now(), total.Load()
	fmt.Fprintln(stdout, "ready")
	io.Copy(io.Discard, in)
	fmt.Fprintln(stdout, float64(total.Load()-before)/time.Since(begin).Seconds())
	return nil
}

// floods is the other process, seen from the measuring one.
type floods struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// startFloods makes n flooding sessions and a process that views them.
func startFloods(ctx context.Context, t target, self string, n int) (*floods, error) {
	c := t.contact()
	for range n {
		id, err := t.create(ctx, child(self, workload.Flood(0)))
		if err != nil {
			return nil, err
		}
		c.IDs = append(c.IDs, id)
	}
	f := &floods{cmd: exec.CommandContext(ctx, self, RoleFlood)}
	f.cmd.Stderr = os.Stderr
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewReader(stdout)
	if f.stdin, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(f.stdin).Encode(c); err != nil {
		f.stdin.Close()
		f.cmd.Wait()
		return nil, fmt.Errorf("viewing the floods: %w", err)
	}
	if line, err := f.out.ReadString('\n'); err != nil || line != "ready\n" {
		f.stdin.Close()
		f.cmd.Wait()
		return nil, fmt.Errorf("viewing the floods: %q, %w", line, err)
	}
	return f, nil
}

// stop ends the viewing and returns the bytes per second that it received.
func (f *floods) stop() (rate float64, err error) {
	f.stdin.Close()
	_, scanErr := fmt.Fscan(f.out, &rate)
	if err := f.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("viewing the floods: %w", err)
	}
	return rate, scanErr
}

// child is the command of a workload.
func child(self string, mode []string) []string {
	return append([]string{self, RoleChild}, mode...)
}

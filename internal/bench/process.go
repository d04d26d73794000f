package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ptyd/ptyd/internal/bench/procfs"
)

const (
	startLimit = 20 * time.Second // a server that has not answered by then will not
	stopLimit  = 60 * time.Second // ending thousands of sessions in order takes a while
)

// process is a server that runs, with a folder of its own.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer // closing it ends the baseline
	dir   string
	addr  string // host:port
	done  chan struct{}
	err   error // of Wait; valid once done is closed
}

// launch starts argv and waits for its first HTTP answer on path. It returns
// how long that took from just before the start.
func launch(ctx context.Context, dir, addr, path string, argv ...string) (*process, time.Duration, error) {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), dir: dir, addr: addr, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Dir = dir
	p.cmd.Env = cleanEnv(os.Environ(), dir)
	// A session of its own: no controlling terminal, by which procfs.Server
	// tells it from the programs in its terminals. It must not outlive us.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, 0, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if err := p.awaitAnswer(ctx, path); err != nil {
		p.stop()
		return nil, 0, fmt.Errorf("start %s: %w%s", filepath.Base(argv[0]), err, p.logTail())
	}
	return p, time.Since(begin), nil
}

// cleanEnv is env without what would configure the daemon: a person's own
// settings must not be measured.
func cleanEnv(env []string, dir string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "PTYD_") && !strings.HasPrefix(kv, "XDG_CONFIG_HOME=") {
			out = append(out, kv)
		}
	}
	return append(out, "XDG_CONFIG_HOME="+dir)
}

// awaitAnswer asks until the server answers. Looking must cost little: it
// shares the machine with what starts.
func (p *process) awaitAnswer(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	var dialer net.Dialer
	for {
		c, err := dialer.DialContext(ctx, "tcp", p.addr)
		if err == nil {
			return ask(ctx, c, p.addr, path)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-p.done:
			return fmt.Errorf("it ended: %v", p.err)
		case <-look.C:
		}
	}
}

// ask makes one request on c and wants status 200.
func ask(ctx context.Context, c net.Conn, host, path string) error {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	req, err := http.NewRequest(http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return err
	}
	req.Close = true
	if err := req.Write(c); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return nil
}

// stop ends the server and waits for it.
func (p *process) stop() {
	p.stdin.Close()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) usage() procfs.Usage { return procfs.Read(procfs.Server(p.cmd.Process.Pid)) }

// logTail is the end of what the server wrote, for error messages.
func (p *process) logTail() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil || len(b) == 0 {
		return ""
	}
	return "; it wrote:\n" + string(b[max(0, len(b)-1000):])
}

// freeAddr picks a port on the loopback address that is free now.
func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

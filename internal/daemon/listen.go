package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/ptyd/ptyd/internal/api"
)

// maxSocketPath is what a Unix socket's address holds, less its final zero.
const maxSocketPath = 107

// listenUnix opens the socket at path. The caller holds the state directory's
// lock, so a socket that is there belongs to nobody any more.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path has %d bytes, and a socket's can have %d: choose a shorter --state-dir", path, len(path), maxSocketPath)
	}
	if st, err := os.Lstat(path); err == nil {
		if st.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("listen on %s: a file that is no socket is in the way", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of an earlier daemon: %w", err)
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	// Between these two calls the directory's own mode keeps others out. The
	// umask is not touched: it is the process's, and sessions inherit it.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close the socket to others: %w", err), l.Close())
	}
	return l, nil
}

func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: another program has this address; choose another by --listen, port 0 picks a free one", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// unknownUID is nobody's: a peer that cannot be told is served nothing.
const unknownUID = -1

// withPeer puts the uid of a Unix socket's peer into its connection's context.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return api.WithPeer(ctx, peerUID(c))
}

// peerUID is the uid that the kernel noted when the peer connected.
func peerUID(c net.Conn) int {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return unknownUID
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return unknownUID
	}
	uid := unknownUID
	err = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			uid = int(cred.Uid)
		}
	})
	if err != nil {
		return unknownUID
	}
	return uid
}

// certificate is the TLS certificate, which a reload can replace.
type certificate struct {
	cert, key string
	loaded    atomic.Pointer[tls.Certificate]
}

// load reads the files. On an error the certificate stays as it was.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("load tls_cert and tls_key: %w", err)
	}
	c.loaded.Store(&pair)
	return nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.loaded.Load(), nil },
		// A WebSocket needs a connection of its own, which HTTP/2 does not give.
		NextProtos: []string{"http/1.1"},
	}
}

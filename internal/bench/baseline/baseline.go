package baseline

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/creack/pty"
	"github.com/gorilla/websocket"
)

// Server serves POST /new?arg=…&arg=…, which answers a new session's id, and
// /ws?id=…, which views it: binary messages both ways, the first one empty.
type Server struct {
	mu       sync.Mutex // guards sessions
	sessions map[string]*session
}

type session struct {
	tty   *os.File
	start sync.Once // the first viewer starts the reading, so that it misses nothing

	// mu guards viewers, and is held while they are written to: this is the
	// plain design that a slow viewer stops.
	mu      sync.Mutex
	viewers map[*websocket.Conn]struct{}
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// New returns a server without sessions.
func New() *Server { return &Server{sessions: map[string]*session{}} }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/new":
		id, err := s.create(r.URL.Query()["arg"])
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		io.WriteString(w, id)
	case "/ws":
		s.mu.Lock()
		ss := s.sessions[r.URL.Query().Get("id")]
		s.mu.Unlock()
		if ss == nil {
			http.NotFound(w, r)
			return
		}
		ss.view(w, r)
	default:
		io.WriteString(w, "baseline\n")
	}
}

func (s *Server) create(argv []string) (string, error) {
	if len(argv) == 0 {
		return "", fmt.Errorf("no arguments")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	tty, err := pty.Start(cmd)
	if err != nil {
		return "", err
	}
	go cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strconv.Itoa(len(s.sessions))
	s.sessions[id] = &session{tty: tty, viewers: map[*websocket.Conn]struct{}{}}
	return id, nil
}

func (s *session) view(w http.ResponseWriter, r *http.Request) {
	c, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	defer c.Close()
	s.mu.Lock()
	s.viewers[c] = struct{}{}
	c.WriteMessage(websocket.BinaryMessage, nil) // tells the viewer that it is in from here on
	s.mu.Unlock()
	s.start.Do(func() { go s.pump() })
	for {
		_, in, err := c.NextReader()
		if err != nil {
			break
		}
		io.Copy(s.tty, in)
	}
	s.mu.Lock()
	delete(s.viewers, c)
	s.mu.Unlock()
}

// pump moves output from the terminal to every viewer until the program is gone.
func (s *session) pump() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		for c := range s.viewers {
			if err != nil {
				c.Close()
			} else {
				c.WriteMessage(websocket.BinaryMessage, buf[:n])
			}
		}
		s.mu.Unlock()
		if err != nil {
			s.tty.Close()
			return
		}
	}
}

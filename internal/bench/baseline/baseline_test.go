package baseline

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSession(t *testing.T, base string, argv ...string) string {
	t.Helper()
	resp, err := http.Post(base+"/new?"+url.Values{"arg": argv}.Encode(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("new: %v %s %s", err, resp.Status, b)
	}
	return string(b)
}

func view(t *testing.T, base, id string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(base, "http")+"/ws?id="+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, p, err := c.ReadMessage(); err != nil || len(p) != 0 {
		t.Fatalf("the first message: %q, %v", p, err)
	}
	return c
}

// readAll reads to the end of the session.
func readAll(c *websocket.Conn) string {
	var all strings.Builder
	for {
		_, p, err := c.ReadMessage()
		if err != nil {
			return all.String()
		}
		all.Write(p)
	}
}

func TestTwoViewersSeeOneSession(t *testing.T) {
	ts := httptest.NewServer(New())
	defer ts.Close()
	defer http.DefaultClient.CloseIdleConnections()
	id := newSession(t, ts.URL, "sh", "-c", "stty -echo; echo go; read line; echo got $line")
	a := view(t, ts.URL, id)
	if _, p, err := a.ReadMessage(); err != nil || string(p) != "go\r\n" {
		t.Fatalf("first output %q, %v", p, err)
	}
	b := view(t, ts.URL, id)
	if err := b.WriteMessage(websocket.BinaryMessage, []byte("this\n")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*websocket.Conn{a, b} {
		if got := readAll(c); got != "got this\r\n" {
			t.Errorf("viewer read %q", got)
		}
	}
}

func TestRefusals(t *testing.T) {
	ts := httptest.NewServer(New())
	defer ts.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for path, want := range map[string]int{
		"/":           http.StatusOK,
		"/new":        http.StatusBadRequest,
		"/new?arg=/x": http.StatusBadRequest,
		"/ws?id=none": http.StatusNotFound,
	} {
		resp, err := http.Get(ts.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, resp.Status, want)
		}
	}
}

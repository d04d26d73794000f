package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/problem"
)

// Who has not said who they are can make the daemon hold little.
func TestStrangersSendLittle(t *testing.T) {
	e := newEnv(t)
	login := func(size int) req {
		in := `{"link":"` + strings.Repeat("x", size-len(`{"link":""}`)) + `"}`
		return req{method: "POST", path: "/v1/login", body: in}
	}
	e.want(login(maxStrangerBody), 401, problem.Unauthenticated)
	e.want(login(maxStrangerBody+1), 413, problem.TooLarge)
}

// A body that does not come is waited for only so long; who is known has more
// time.
func TestStrangersAreNotWaitedFor(t *testing.T) {
	e := newEnv(t, func(o *Options) { o.strangerTime = 300 * time.Millisecond })
	token := e.user("anna", "operator")
	open := func(path, header string) net.Conn {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", e.addr)
		check(t, err)
		t.Cleanup(func() { _ = c.Close() })
		check(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 16\r\n%s\r\n", path, e.addr, header)
		check(t, err)
		return c
	}
	known := open("/v1/sessions", "Authorization: Bearer "+token+"\r\n")
	for path, status := range map[string]int{"/v1/login": 400, "/v1/sessions": 401} {
		stranger := open(path, "")
		r := bufio.NewReader(stranger)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if res.StatusCode != status {
			t.Errorf("%s: %s", path, res.Status)
		}
		if _, err := io.Copy(io.Discard, r); err != nil { // until the daemon hangs up
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := io.WriteString(known, `{"argv":["true"]`[:16])
	check(t, err)
	res, err := http.ReadResponse(bufio.NewReader(known), nil)
	check(t, err)
	defer func() { _ = res.Body.Close() }()
	if p, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(p), "it ends early") {
		t.Errorf("who is known: %s %v", p, err)
	}
}

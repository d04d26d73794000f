package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// browser is what a logged-in page holds: both halves of its credential.
type browser struct {
	Cookie *http.Cookie
	Key    string
}

// link makes a login link and returns the secret in its fragment.
func (d *Daemon) link(user string) string {
	d.t.Helper()
	body := spec{}
	if user != "" {
		body["user"] = user
	}
	var r struct{ URL string }
	d.call(request{Method: "POST", Path: "/v1/login-links", Body: body}).into(d.t, &r)
	u, err := url.Parse(r.URL)
	if err != nil {
		d.t.Fatal(err)
	}
	secret, ok := strings.CutPrefix(u.Fragment, "login=")
	if !ok || u.RawQuery != "" || secret == "" {
		d.t.Fatalf("the link is %q", r.URL)
	}
	return secret
}

// login exchanges a body for a browser's credential.
func (d *Daemon) login(t testing.TB, body spec) browser {
	t.Helper()
	a := d.call(request{Method: "POST", Path: "/v1/login", TCP: true, Body: body, Header: map[string]string{"Origin": d.URL}})
	var r struct{ Key string }
	a.into(t, &r)
	cookies := (&http.Response{Header: a.Header}).Cookies()
	if len(cookies) != 1 || r.Key == "" {
		t.Fatalf("login gave cookies %v and key of %d characters", cookies, len(r.Key))
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(c.Name, "ptyd_") || c.Domain != "" {
		t.Errorf("the cookie is %+v", c)
	}
	if strings.Contains(c.Value, r.Key) || strings.Contains(r.Key, c.Value) {
		t.Error("one half of the credential holds the other")
	}
	return browser{Cookie: &http.Cookie{Name: c.Name, Value: c.Value}, Key: r.Key}
}

// loginByLink is what opening a login link does.
func (d *Daemon) loginByLink(t testing.TB) browser {
	t.Helper()
	return d.login(t, spec{"link": d.link("")})
}

package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

const password = "correct horse battery"

func TestLogin(t *testing.T) {
	w := newWorld(t)
	if _, err := w.AddUser(t.Context(), w.owner, auth.NewUser{Name: "ann", Password: password}); err != nil {
		t.Fatal(err)
	}
	w.add(t, "nopassword", auth.Operator)
	if _, err := w.AddUser(t.Context(), w.owner, auth.NewUser{Name: "gone", Password: password}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.SetDisabled(t.Context(), w.owner, "gone", true), "")

	var texts []string
	for i, tc := range []struct{ name, password string }{
		{"ann", "wrong password"}, {"ann", ""}, {"ann", password + strings.Repeat("x", 2000)},
		{"nobody", password}, {"nopassword", ""}, {"nopassword", password}, {"gone", password}, {"", ""},
	} {
		_, err := w.Login(t.Context(), tc.name, tc.password, fmt.Sprint("remote", i))
		wantCode(t, err, problem.Unauthenticated)
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("answers differ: %q, %q", text, texts[0])
		}
	}
	for _, name := range []string{"ann", "ANN"} {
		login, err := w.Login(t.Context(), name, password, "192.0.2.1:5")
		wantCode(t, err, "")
		p, err := w.Cookie(t.Context(), login.Cookie, login.Key)
		if err != nil || p.UserName != "ann" || p.Role != auth.Operator || p.Via != auth.ViaCookie || p.CredID != login.Principal.CredID ||
			p.UserID != login.Principal.UserID || !p.Expires.Equal(w.clock.Now().Add(auth.DefaultWebTTL)) {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

// Cookies ignore ports, so a cookie alone, or with another login's key, is
// worth nothing.
func TestBothHalvesAreNeeded(t *testing.T) {
	w := newWorld(t)
	wantCode(t, w.SetPassword(t.Context(), w.owner, "", password), "")
	a, err := w.Login(t.Context(), "uid12345", password, "r")
	wantCode(t, err, "")
	b, err := w.Login(t.Context(), "uid12345", password, "r")
	wantCode(t, err, "")
	for _, tc := range []struct{ cookie, key string }{
		{a.Cookie, ""}, {"", a.Key}, {"", ""}, {a.Cookie, b.Key}, {b.Cookie, a.Key}, {a.Key, a.Cookie}, {a.Cookie, a.Cookie},
		{a.Cookie, a.Key + " "}, {a.Cookie, strings.Repeat("x", 1<<20)}, {strings.Repeat("x", 1<<20), a.Key},
	} {
		wantCode(t, second(w.Cookie(t.Context(), tc.cookie, tc.key)), problem.Unauthenticated)
	}
	wantCode(t, second(w.Cookie(t.Context(), a.Cookie, a.Key)), "")
	// Neither half is a token or a link.
	for _, secret := range []string{a.Cookie, a.Key} {
		wantCode(t, second(w.Token(t.Context(), secret)), problem.Unauthenticated)
		wantCode(t, second(w.RedeemLink(t.Context(), secret, "r")), problem.Unauthenticated)
	}
}

func TestWebLoginEnds(t *testing.T) {
	w := newWorld(t)
	ann, err := w.AddUser(t.Context(), w.owner, auth.NewUser{Name: "ann", Password: password})
	wantCode(t, err, "")
	login := func() auth.WebLogin {
		t.Helper()
		l, err := w.Login(t.Context(), ann.Name, password, "r")
		wantCode(t, err, "")
		return l
	}
	alive := func(l auth.WebLogin) bool {
		_, err := w.Cookie(t.Context(), l.Cookie, l.Key)
		return err == nil
	}
	a, b := login(), login()
	for range 2 {
		wantCode(t, w.Logout(t.Context(), a.Principal), "")
	}
	if alive(a) || !alive(b) {
		t.Error("logging out ended the wrong login")
	}
	wantCode(t, w.Logout(t.Context(), w.owner), problem.InvalidArgument)

	// Her own change keeps the login it came by; an admin's ends all.
	a = login()
	wantCode(t, w.SetPassword(t.Context(), b.Principal, "ann", password+"2"), "")
	if alive(a) || !alive(b) {
		t.Error("after her own change")
	}
	wantCode(t, w.SetPassword(t.Context(), w.owner, "ann", password), "")
	if alive(b) {
		t.Error("after an admin's change")
	}
	a = login()
	w.clock.add(auth.DefaultWebTTL)
	if alive(a) {
		t.Error("outlived its time")
	}
	wantCode(t, w.SetPassword(t.Context(), w.owner, "ann", ""), "")
	wantCode(t, second(w.Login(t.Context(), "ann", "", "r")), problem.Unauthenticated)
}

func TestLoginsAreLimited(t *testing.T) {
	w := newWorld(t)
	wantCode(t, w.SetPassword(t.Context(), w.owner, "", password), "")
	fail := func(name, remote string) error { return second(w.Login(t.Context(), name, "wrong password", remote)) }
	t.Run("by remote", func(t *testing.T) {
		for i := range 10 {
			wantCode(t, fail(fmt.Sprint("n", i), fmt.Sprintf("192.0.2.1:%d", i)), problem.Unauthenticated)
		}
		wantCode(t, fail("n", "192.0.2.1:99"), problem.RateLimited)
		wantCode(t, second(w.Login(t.Context(), "uid12345", password, "192.0.2.1:1")), problem.RateLimited)
		wantCode(t, second(w.RedeemLink(t.Context(), "x", "192.0.2.1:1")), problem.RateLimited)
		wantCode(t, second(w.Login(t.Context(), "uid12345", password, "192.0.2.2:1")), "")
	})
	t.Run("by name", func(t *testing.T) {
		for i := range 10 {
			wantCode(t, fail("uid12345", fmt.Sprintf("192.0.3.%d:1", i)), problem.Unauthenticated)
		}
		wantCode(t, second(w.Login(t.Context(), "UID12345", password, "192.0.4.1:1")), problem.RateLimited)
		// The refusal is no failure of the remote's.
		wantCode(t, second(w.Login(t.Context(), "nobody", password, "192.0.4.1:1")), problem.Unauthenticated)
	})
	t.Run("over in a while", func(t *testing.T) {
		w.clock.add(10 * time.Second)
		wantCode(t, second(w.Login(t.Context(), "uid12345", password, "192.0.2.1:1")), "")
	})
	t.Run("links by remote", func(t *testing.T) {
		for range 10 {
			wantCode(t, second(w.RedeemLink(t.Context(), "x", "r")), problem.Unauthenticated)
		}
		wantCode(t, second(w.RedeemLink(t.Context(), "x", "r")), problem.RateLimited)
	})
}

func TestLink(t *testing.T) {
	w := newWorld(t)
	ann := w.add(t, "ann", auth.Operator)
	viewer := w.add(t, "vic", auth.Viewer)
	for _, tc := range []struct {
		by   auth.Principal
		user string
		want string
		code problem.Code
	}{
		{ann, "", "ann", ""}, {ann, "Ann", "ann", ""}, {ann, "vic", "", problem.Forbidden},
		{viewer, "", "", problem.Forbidden}, {w.owner, "vic", "vic", ""}, {w.owner, "none", "", problem.NotFound},
	} {
		link, expires, err := w.CreateLink(t.Context(), tc.by, tc.user)
		wantCode(t, err, tc.code)
		if err != nil {
			continue
		}
		if !expires.Equal(w.clock.Now().Add(auth.DefaultLinkTTL)) {
			t.Errorf("expires %v", expires)
		}
		login, err := w.RedeemLink(t.Context(), link, "r")
		if err != nil || login.Principal.UserName != tc.want {
			t.Fatalf("%+v, %v", login.Principal, err)
		}
		if p, err := w.Cookie(t.Context(), login.Cookie, login.Key); err != nil || p.UserName != tc.want {
			t.Errorf("%+v, %v", p, err)
		}
		wantCode(t, second(w.RedeemLink(t.Context(), link, "r")), problem.Unauthenticated)
	}
	link, _, err := w.CreateLink(t.Context(), ann, "")
	wantCode(t, err, "")
	w.clock.add(auth.DefaultLinkTTL)
	wantCode(t, second(w.RedeemLink(t.Context(), link, "r2")), problem.Unauthenticated)

	link, _, err = w.CreateLink(t.Context(), ann, "")
	wantCode(t, err, "")
	wantCode(t, w.SetDisabled(t.Context(), w.owner, "ann", true), "")
	wantCode(t, second(w.RedeemLink(t.Context(), link, "r3")), problem.Unauthenticated)
	wantCode(t, second(second2(w.CreateLink(t.Context(), w.owner, "ann"))), problem.Conflict)
}

// A link made with a lesser role must not be a way up to the user's own.
func TestLinkGivesTheMakersRole(t *testing.T) {
	w := newWorld(t)
	_, secret := w.token(t, w.owner, auth.NewToken{Role: auth.Operator})
	p, err := w.Token(t.Context(), secret)
	wantCode(t, err, "")
	link, _, err := w.CreateLink(t.Context(), p, "")
	wantCode(t, err, "")
	login, err := w.RedeemLink(t.Context(), link, "r")
	wantCode(t, err, "")
	again, err := w.Cookie(t.Context(), login.Cookie, login.Key)
	if err != nil || login.Principal.Role != auth.Operator || again.Role != auth.Operator {
		t.Errorf("%s, %s, %v", login.Principal.Role, again.Role, err)
	}
	// Nor a password.
	wantCode(t, w.SetPassword(t.Context(), p, "", password), problem.Forbidden)
	wantCode(t, w.SetPassword(t.Context(), again, "", password), problem.Forbidden)
}

func TestHundredRedeemers(t *testing.T) {
	w := newWorld(t)
	link, _, err := w.CreateLink(t.Context(), w.owner, "")
	wantCode(t, err, "")
	var mu sync.Mutex // guards won
	var won []auth.WebLogin
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range 100 {
		wg.Go(func() {
			<-begin
			login, err := w.RedeemLink(t.Context(), link, fmt.Sprint("r", i))
			if err != nil {
				if !problem.Is(err, problem.Unauthenticated) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			won = append(won, login)
		})
	}
	close(begin)
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d redeemed it", len(won))
	}
	wantCode(t, second(w.Cookie(t.Context(), won[0].Cookie, won[0].Key)), "")
}

func TestTickets(t *testing.T) {
	w := newWorld(t)
	ann := w.add(t, "ann", auth.Operator)
	tok, secret := w.token(t, ann, auth.NewToken{})
	p, err := w.Token(t.Context(), secret)
	wantCode(t, err, "")

	ticket := w.Ticket(p)
	got, err := w.RedeemTicket(ticket)
	if err != nil || got.CredID != tok.ID || got.UserID != ann.UserID {
		t.Fatalf("%+v, %v", got, err)
	}
	wantCode(t, second(w.RedeemTicket(ticket)), problem.Unauthenticated) // once
	for _, bad := range []string{"", "x", secret, strings.Repeat("x", 1<<20)} {
		wantCode(t, second(w.RedeemTicket(bad)), problem.Unauthenticated)
	}
	ticket = w.Ticket(p)
	w.clock.add(auth.TicketTTL)
	wantCode(t, second(w.RedeemTicket(ticket)), problem.Unauthenticated)

	// A ticket gives what its credential gives now.
	ticket = w.Ticket(p)
	wantCode(t, w.SetRole(t.Context(), w.owner, "ann", auth.Viewer), "")
	if got, err := w.RedeemTicket(ticket); err != nil || got.Role != auth.Viewer {
		t.Errorf("%+v, %v", got, err)
	}
	ticket = w.Ticket(p)
	wantCode(t, w.RevokeToken(t.Context(), w.owner, tok.ID), "")
	wantCode(t, second(w.RedeemTicket(ticket)), problem.Unauthenticated)
	wantCode(t, second(w.RedeemTicket(w.Ticket(auth.Principal{}))), problem.Unauthenticated)

	// One user's flood costs bounded memory and nobody else's ticket.
	owners := w.Ticket(w.owner)
	var flood []string
	for range 200 {
		flood = append(flood, w.Ticket(ann))
		w.clock.add(time.Millisecond)
	}
	good := 0
	for _, ticket := range flood {
		if _, err := w.RedeemTicket(ticket); err == nil {
			good++
		}
	}
	if good != 64 {
		t.Errorf("%d of ann's tickets were kept", good)
	}
	wantCode(t, second(w.RedeemTicket(owners)), "")
}

func TestATicketLetsOneIn(t *testing.T) {
	w := newWorld(t)
	ticket := w.Ticket(w.owner)
	in := make(chan struct{}, 20)
	var wg sync.WaitGroup
	for range cap(in) {
		wg.Go(func() {
			if _, err := w.RedeemTicket(ticket); err == nil {
				in <- struct{}{}
			}
		})
	}
	wg.Wait()
	if len(in) != 1 {
		t.Errorf("%d came in", len(in))
	}
}

package auth

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ptyd/ptyd/internal/problem"
)

// cheap keeps tests fast; TestDefaultCost uses the real thing once.
var cheap = PasswordCost{MemoryKiB: 64, Time: 1, Threads: 1}

func TestHashAndVerify(t *testing.T) {
	p := newPasswords(cheap)
	ctx := t.Context()
	const right = "correct horse"
	one, err := p.hash(ctx, right)
	if err != nil {
		t.Fatal(err)
	}
	two, err := p.hash(ctx, right)
	if err != nil || one == two {
		t.Fatalf("no salt: %q, %v", two, err)
	}
	for _, tc := range []struct {
		phc, password string
		want          bool
	}{
		{one, right, true}, {two, right, true}, {one, "correct horsf", false}, {one, "", false},
		{one, right + "\x00", false}, {"", right, false}, {"", "", false},
	} {
		if got, err := p.verify(ctx, tc.phc, tc.password); err != nil || got != tc.want {
			t.Errorf("%q against %q: %v, %v", tc.password, tc.phc, got, err)
		}
	}
}

func TestDefaultCost(t *testing.T) {
	p := newPasswords(DefaultPasswordCost)
	phc, err := p.hash(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(phc, "$argon2id$v=19$m=65536,t=3,p=1$") {
		t.Fatalf("%q, %v", phc, err)
	}
}

// The known answer of another implementation, made at another cost (argon2 of the reference C code:
// echo -n password | argon2 somesalt -id -t 2 -k 256 -p 1 -l 32).
func TestKnownHash(t *testing.T) {
	const phc = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	if ok, err := newPasswords(cheap).verify(t.Context(), phc, "password"); err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
}

func TestDamagedHash(t *testing.T) {
	p := newPasswords(cheap)
	for _, phc := range []string{
		"x", "$argon2id$v=19$m=64,t=1,p=1$c2FsdA", "$argon2i$v=19$m=64,t=1,p=1$c2FsdA$a2V5",
		"$argon2id$v=18$m=64,t=1,p=1$c2FsdA$a2V5", "$argon2id$v=19$m=64,t=0,p=1$c2FsdA$a2V5",
		"$argon2id$v=19$m=64,t=1,p=0$c2FsdA$a2V5", "$argon2id$v=19$m=64,t=1,p=999$c2FsdA$a2V5",
		"$argon2id$v=19$m=64,t=1,p=1$!$a2V5", "$argon2id$v=19$m=64,t=1,p=1$$a2V5", "$argon2id$v=19$m=64,t=1,p=1$c2FsdA$",
	} {
		if ok, err := p.verify(t.Context(), phc, "password"); err == nil || ok {
			t.Errorf("%q: %v, %v", phc, ok, err)
		}
	}
}

func FuzzPHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$c2FsdA$a2V5")
	f.Add("$argon2id$v=19$m=,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, phc string) {
		c, salt, key, err := parsePHC(phc)
		if err == nil && (c.Time == 0 || c.Threads == 0 || len(salt) == 0 || len(key) == 0) {
			t.Fatalf("accepted %q", phc)
		}
	})
}

func TestCheckPassword(t *testing.T) {
	for length, ok := range map[int]bool{0: false, 11: false, 12: true, 1024: true, 1025: false} {
		err := checkPassword(strings.Repeat("x", length))
		if (err == nil) != ok || err != nil && !problem.Is(err, problem.InvalidArgument) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

// No more than two hashes hold their memory at once, and a waiter may give up.
func TestHashesAtOnce(t *testing.T) {
	p := newPasswords(cheap)
	var most atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := p.hash(t.Context(), "correct horse"); err != nil {
				t.Error(err)
			}
			if n := int32(len(p.slot)); n > most.Load() {
				most.Store(n)
			}
		})
	}
	wg.Wait()
	if cap(p.slot) != 2 || most.Load() > 2 || len(p.slot) != 0 {
		t.Errorf("%d slots, %d at once, %d left", cap(p.slot), most.Load(), len(p.slot))
	}
	p.slot <- struct{}{}
	p.slot <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.verify(ctx, "", "x"); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

package notifyproto

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		in   string
		want map[string]string
	}{
		{"READY=1", map[string]string{"READY": "1"}},
		{"READY=1\n", map[string]string{"READY": "1"}},
		{"FDSTORE=1\nFDNAME=0a\nFDPOLL=0", map[string]string{"FDSTORE": "1", "FDNAME": "0a", "FDPOLL": "0"}},
		{"STATUS=a=b", map[string]string{"STATUS": "a=b"}},
		{"STATUS=", map[string]string{"STATUS": ""}},
	} {
		got, err := Decode([]byte(c.in))
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("Decode(%q) = %v, %v", c.in, got, err)
		}
	}
	for _, bad := range []string{"", "\n", "READY", "=1", "A=1\n\nB=2", "A=1\nA=2", "A=\x00", "A=1\n\n", "A=" + strings.Repeat("x", MaxMessage)} {
		if got, err := Decode([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("Decode(%.40q) = %v, %v", bad, got, err)
		}
	}
}

// What a value holds must not become an assignment of its own.
func TestEncodeKeepsLinesApart(t *testing.T) {
	got, err := Decode(Encode("STATUS=a\nREADY=1", "FDNAME=x\x00y"))
	want := map[string]string{"STATUS": "a READY=1", "FDNAME": "x y"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestValidName(t *testing.T) {
	for _, s := range []string{"g", "lt0", "0", "a-b_c.d"} {
		if !ValidName(s) {
			t.Errorf("%q refused", s)
		}
	}
	for _, s := range []string{"", "a:b", "a b", "a\n", "\x7f", "ä", strings.Repeat("x", MaxName+1)} {
		if ValidName(s) {
			t.Errorf("%q accepted", s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"READY=1", "FDSTORE=1\nFDNAME=0a\nFDPOLL=0\n", "=", "\n", "A=\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		vars, err := Decode(b)
		if err != nil {
			if vars != nil {
				t.Fatal("an error and a message")
			}
			return
		}
		lines := make([]string, 0, len(vars))
		for k, v := range vars {
			lines = append(lines, k+"="+v)
		}
		again, err := Decode(Encode(lines...))
		if err != nil || !maps.Equal(again, vars) {
			t.Fatalf("%q: %v became %v, %v", b, vars, again, err)
		}
	})
}

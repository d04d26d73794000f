package ident

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestShape(t *testing.T) {
	for _, kind := range []string{"s", "u", "tok"} {
		id := New(kind)
		body, ok := strings.CutPrefix(id, kind+"_")
		if !ok || len(body) != bodyLen || strings.Trim(body, alphabet) != "" {
			t.Errorf("New(%q) = %q", kind, id)
		}
	}
}

func TestIDsSortByTime(t *testing.T) {
	base := time.UnixMilli(1_700_000_000_000)
	var ids []string
	for i := range 2000 {
		ids = append(ids, at("s", base.Add(time.Duration(i*i)*time.Millisecond)))
	}
	if !slices.IsSorted(ids) {
		t.Error("later ids do not sort after earlier ones")
	}
	if ids[0] == at("s", base) {
		t.Error("two ids are equal")
	}
}

func TestEncodeIsTheNumberInBase32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b [16]byte
		copy(b[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bits"))
		var got [bodyLen]byte
		encode(got[:], b)
		n := new(big.Int)
		for _, c := range got {
			n.Mul(n, big.NewInt(32)).Add(n, big.NewInt(int64(strings.IndexByte(alphabet, c))))
		}
		if want := new(big.Int).SetBytes(b[:]); n.Cmp(want) != 0 {
			t.Fatalf("%x became %s", b, got)
		}
	})
}

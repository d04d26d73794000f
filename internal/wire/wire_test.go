package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type vector struct {
	Name       string `json:"name"`
	Hex        string `json:"hex"`
	Type       uint8  `json:"type"`
	Flags      uint8  `json:"flags"`
	Channel    uint16 `json:"channel"`
	Offset     string `json:"offset"` // decimal: JavaScript's numbers hold 53 bits
	PayloadHex string `json:"payload_hex"`
}

var update = flag.Bool("update", false, "write testdata/vectors.json anew (a wire change: think twice)")

func vectors() []Frame {
	var fs []Frame
	for _, t := range []Type{TypeHello, TypeAttach, TypeAttached, TypeDetach, TypeDetached, TypeView, TypeClaim, TypeSignal, TypeSize, TypeExit,
		TypeEvent, TypePing, TypePong, TypeGoodbye, TypeViewers, TypeOutput, TypeInput, TypeInputAck, TypeAck, TypeSnapshot, TypeResync} {
		fs = append(fs, Frame{Type: t, Channel: uint16(t) * 257, Offset: 0x0102030405060708 ^ uint64(t), Payload: []byte("{\"x\":\"\u00e9\"}")})
	}
	return append(fs,
		Frame{Type: TypeOutput, Channel: 65535, Offset: 1<<64 - 1, Payload: []byte{0, 0x1b, 0xff}},
		Frame{Type: TypeSnapshot, Flags: FlagEnd, Channel: 1},
		Frame{Type: TypeViewers, Flags: FlagOptional, Channel: 7, Payload: []byte(`{"count":2}`)},
		Frame{Type: 0x7f, Flags: FlagOptional, Channel: 3, Offset: 9, Payload: []byte("future")})
}

// The numbers are frozen: an older page or command line meets a newer daemon.
func TestGoldenVectors(t *testing.T) {
	const file = "testdata/vectors.json"
	if *update {
		var vs []vector
		for _, f := range vectors() {
			vs = append(vs, vector{f.Type.String(), hex.EncodeToString(Append(nil, f)), uint8(f.Type), uint8(f.Flags), f.Channel,
				json.Number(strings.TrimSpace(jsonU64(f.Offset))).String(), hex.EncodeToString(f.Payload)})
		}
		b, _ := json.MarshalIndent(vs, "", " ")
		if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(b, &vs); err != nil {
		t.Fatal(err)
	}
	want := vectors()
	if len(vs) != len(want) {
		t.Fatalf("%d vectors, want %d", len(vs), len(want))
	}
	for i, v := range vs {
		raw, _ := hex.DecodeString(v.Hex)
		f, rest, err := Decode(raw)
		if err != nil || len(rest) != 0 {
			t.Fatalf("%s: %v, %d left", v.Name, err, len(rest))
		}
		if f.Type.String() != v.Name || !bytes.Equal(Append(nil, want[i]), raw) || jsonU64(f.Offset) != v.Offset {
			t.Errorf("%s: got %+v, want %+v", v.Name, f, want[i])
		}
	}
}

func jsonU64(u uint64) string { b, _ := json.Marshal(u); return string(b) }

func TestDecodeRefuses(t *testing.T) {
	ok := Append(nil, Frame{Type: TypeOutput, Channel: 1, Payload: []byte("abc")})
	edit := func(i int, b byte) []byte { c := bytes.Clone(ok); c[i] = b; return c }
	for name, msg := range map[string][]byte{
		"empty": {}, "short header": ok[:15], "cut payload": ok[:len(ok)-1], "unknown type": edit(0, 0x7f),
		"unknown flag": edit(1, 0x80), "type zero": edit(0, 0), "too long": edit(5, 0xff), "4 GiB": edit(4, 0xff),
	} {
		_, _, err := Decode(msg)
		var e *Error
		if !errors.As(err, &e) || e.Reason == "" {
			t.Errorf("%s: %v, want an *Error with a reason", name, err)
		}
	}
	if f, _, err := Decode(edit(1, byte(FlagOptional))); err != nil || !f.Type.Known() {
		t.Errorf("optional known type: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []Frame
		var msg []byte
		for range rapid.IntRange(1, 5).Draw(t, "frames") {
			f := Frame{Type: Type(rapid.Uint8().Draw(t, "type")), Flags: FlagOptional, Channel: rapid.Uint16().Draw(t, "ch"),
				Offset: rapid.Uint64().Draw(t, "off"), Payload: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "p")}
			want = append(want, f)
			msg = Append(msg, f)
		}
		for _, w := range want {
			f, rest, err := Decode(msg)
			if err != nil {
				t.Fatal(err)
			}
			msg = rest
			if f.Type != w.Type || f.Channel != w.Channel || f.Offset != w.Offset || !bytes.Equal(f.Payload, w.Payload) {
				t.Fatalf("got %+v, want %+v", f, w)
			}
		}
		if len(msg) != 0 {
			t.Fatalf("%d bytes left", len(msg))
		}
	})
}

func TestEpochText(t *testing.T) {
	b, err := json.Marshal(Attached{Epoch: 0xff})
	if err != nil || !bytes.Contains(b, []byte(`"epoch":"00000000000000ff"`)) {
		t.Fatalf("%s %v", b, err)
	}
	for _, s := range []string{`{"epoch":"ff"}`, `{"epoch":"zzzzzzzzzzzzzzzz"}`, `{"epoch":12}`} {
		if _, err := Parse[Attached](Frame{Type: TypeAttached, Payload: []byte(s)}); err == nil {
			t.Errorf("%s was accepted", s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range vectors() {
		f.Add(Append(nil, v))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		for len(msg) > 0 {
			fr, rest, err := Decode(msg)
			if err != nil {
				return
			}
			if !bytes.Equal(Append(nil, fr), msg[:len(msg)-len(rest)]) {
				t.Fatal("decoding and encoding again differs")
			}
			if len(rest) >= len(msg) {
				t.Fatal("no progress")
			}
			msg = rest
			_, _ = Parse[Hello](fr)
			_, _ = Parse[Attach](fr)
		}
	})
}

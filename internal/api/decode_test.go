package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/ptyd/ptyd/internal/problem"
)

type decodeTarget struct {
	Text  string            `json:"text"`
	Num   uint16            `json:"num" req:"true"`
	Ptr   *int64            `json:"ptr" min:"2" max:"5"`
	List  []string          `json:"list"`
	Map   map[string]string `json:"map"`
	Inner struct {
		Flag bool `json:"flag"`
	} `json:"inner"`
	Hidden string `json:"-"`
}

func TestDecodeIsStrict(t *testing.T) {
	for _, tt := range []struct{ in, field, says string }{
		{`{"num":1,"extra":2}`, "extra", "unknown"},
		{`{"num":1,"Text":"a"}`, "Text", "unknown"},
		{`{"num":1,"Hidden":"a"}`, "Hidden", "unknown"},
		{`{"num":1,"-":"a"}`, "-", "unknown"},
		{`{"num":1,"inner":{"flags":true}}`, "inner.flags", "unknown"},
		{`{"num":1,"num":2}`, "num", "twice"},
		{`{"num":1,"inner":{"flag":true,"flag":false}}`, "inner.flag", "twice"},
		{`{"num":1,"map":{"a":"1","a":"2"}}`, "map.a", "twice"},
		{`{}`, "num", "must be given"},
		{`{"num":null}`, "num", "null"},
		{`{"num":1,"text":null}`, "text", "null"},
		{`{"num":1,"list":[null]}`, "list[0]", "null"},
		{`{"num":"1"}`, "num", "a whole number from 0 to 65535"},
		{`{"num":70000}`, "num", "a whole number from 0 to 65535"},
		{`{"num":-1}`, "num", "a whole number from 0 to 65535"},
		{`{"num":1.5}`, "num", "a whole number"},
		{`{"num":1,"text":5}`, "text", "a string"},
		{`{"num":1,"list":"a"}`, "list", "an array"},
		{`{"num":1,"map":[]}`, "map", "an object"},
		{`{"num":1,"inner":{"flag":"yes"}}`, "inner.flag", "true or false"},
		{`{"num":1} {}`, "", "follows"},
		{`{"num":1}x`, "", "follows"},
		{`{"num":1`, "", "ends early"},
		{`{"num":}`, "", "not JSON"},
		{`[]`, "", "must be a JSON object"},
		{`"text"`, "", "must be a JSON object"},
		{`null`, "", "must be a JSON object"},
		{`{"num":1,"map":` + strings.Repeat(`{"a":`, 20) + `1` + strings.Repeat(`}`, 20) + `}`, "map" + strings.Repeat(".a", maxDepth), "deep"},
	} {
		var v decodeTarget
		err := decodeJSON([]byte(tt.in), &v)
		p, ok := errors.AsType[*problem.Error](err)
		if !ok || p.Code != problem.InvalidArgument || p.Field != tt.field || !strings.Contains(p.Detail, tt.says) {
			t.Errorf("%.60s: %+v, want field %q and %q", tt.in, err, tt.field, tt.says)
		}
	}
	var v decodeTarget
	if err := decodeJSON([]byte(` {"num":7,"text":"ü","ptr":3,"list":["a"],"map":{"k":"v"},"inner":{"flag":true}} `), &v); err != nil {
		t.Fatal(err)
	}
	if v.Num != 7 || v.Text != "ü" || *v.Ptr != 3 || v.List[0] != "a" || v.Map["k"] != "v" || !v.Inner.Flag {
		t.Errorf("%+v", v)
	}
	if err := decodeJSON([]byte(`{"num":7,"ptr":null}`), &v); err != nil || v.Ptr != nil {
		t.Errorf("null for a pointer: %v, %v", v.Ptr, err)
	}
	for ptr, want := range map[string]string{"1": "at least 2", "6": "at most 5"} {
		check(t, decodeJSON([]byte(`{"num":7,"ptr":`+ptr+`}`), &v))
		if err := checkTags(&v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ptr %s: %v", ptr, err)
		}
	}
}

// FuzzDecode: whatever comes, the answer is a value or a problem of the input.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"num":1}`, `{"num":1,"map":{"a":"b"}}`, `[[[[`, `{"a":`, "\x00", `{"num":1e9}`, `{"list":[1,"a",null,{}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v decodeTarget
		if err := decodeJSON(data, &v); err != nil && !problem.Is(err, problem.InvalidArgument) {
			t.Errorf("%q: %v", data, err)
		}
	})
}

package api

import (
	"testing"

	"github.com/ptyd/ptyd/internal/problem"
)

// What is not Unicode must not be typed as something else.
func TestDecodeUnicode(t *testing.T) {
	type body struct {
		Text string `json:"text"`
	}
	for in, ok := range map[string]bool{
		`{"text":"é \ud83d\ude00 \u00e9 \ufffd �"}`: true,
		`{"text":"C:\\ud800 \\\\"}`:                 true, // an escaped backslash, then text
		"{\"text\":\"\xff\xfe\"}":                   false,
		`{"text":"\ud800"}`:                         false,
		`{"text":"\ud800x"}`:                        false,
		`{"text":"\udc00\ud800"}`:                   false,
		`{"text":"\ud83d\ud83d\ude00"}`:             false,
		`{"text":"\\\ud800"}`:                       false,
	} {
		var b body
		err := decodeJSON([]byte(in), &b)
		if ok != (err == nil) || (err != nil && !problem.Is(err, problem.InvalidArgument)) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

package oracle

import (
	"encoding/json"
	"testing"

	"github.com/ptyd/ptyd/internal/vt"
)

// TestWidthsOfAllCodePoints compares the table with the addon that the page
// activates.
func TestWidthsOfAllCodePoints(t *testing.T) {
	const all = 0x110000
	a := play(t, []request{{[]op{opWidths(0, all)}}})
	var widths string
	if err := json.Unmarshal(a[0].Out[0], &widths); err != nil {
		t.Fatal(err)
	}
	if len(widths) != all {
		t.Fatalf("the reference told %d widths", len(widths))
	}
	wrong := 0
	for r := rune(0x20); r < all; r++ {
		if r == 0x7f {
			r = 0xa0 // what is between controls and is never printed
		}
		if ours, theirs := vt.RuneWidth(r), int(widths[r]-'0'); ours != theirs {
			t.Errorf("%U is %d columns wide, in xterm.js %d", r, ours, theirs)
			if wrong++; wrong > 20 {
				return
			}
		}
	}
}

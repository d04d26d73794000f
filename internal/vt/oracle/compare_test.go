package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// difference names where two states differ, one line each, at most a dozen. It
// is empty when they are equal. The states are JSON of the reference's form.
func difference(ours, theirs []byte) []string {
	if bytes.Equal(ours, theirs) {
		return nil
	}
	var a, b any
	if err := json.Unmarshal(ours, &a); err != nil {
		return []string{"our state is not JSON: " + err.Error()}
	}
	if err := json.Unmarshal(theirs, &b); err != nil {
		return []string{"their state is not JSON: " + err.Error()}
	}
	var out []string
	walk("", a, b, &out)
	const most = 12
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("… and %d more", len(out)-most))
	}
	return out
}

// pair is the difference of the two states that the reference's comparison
// answered with, nil where it found none.
func pair(answer []byte) []string {
	if string(answer) == "null" {
		return nil
	}
	var two []json.RawMessage
	if err := json.Unmarshal(answer, &two); err != nil || len(two) != 2 {
		return []string{"not a pair of states"}
	}
	return difference(two[1], two[0])
}

func walk(path string, a, b any, out *[]string) {
	if strings.HasSuffix(path, ".c") {
		if x, y := cells(a), cells(b); x != y {
			*out = append(*out, fmt.Sprintf("%s:\n      ours   %s\n      theirs %s", path, x, y))
		}
		return
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			break
		}
		var keys []string
		for k := range a {
			keys = append(keys, k)
		}
		for k := range b {
			if _, ok := a[k]; !ok {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		for _, k := range keys {
			walk(path+"."+k, a[k], b[k], out)
		}
		return
	case []any:
		b, ok := b.([]any)
		if !ok {
			break
		}
		if strings.HasSuffix(path, ".lines") {
			if len(a) != len(b) {
				*out = append(*out, fmt.Sprintf("%s: ours has %d, theirs %d", path, len(a), len(b)))
			}
			for i := range min(len(a), len(b)) {
				walk(fmt.Sprintf("%s[%d]", path, i), a[i], b[i], out)
			}
			return
		}
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) {
		*out = append(*out, fmt.Sprintf("%s: ours %s, theirs %s", path, x, y))
	}
}

// cells shows a line: text, then what is not plain in brackets.
func cells(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	var b strings.Builder
	for _, c := range list {
		f, ok := c.([]any)
		if !ok || len(f) != 8 {
			fmt.Fprintf(&b, "?%v", c)
			continue
		}
		fmt.Fprintf(&b, "%+q", f[0])
		num := func(i int) uint32 { n, _ := f[i].(float64); return uint32(n) }
		if num(1) != 1 {
			fmt.Fprintf(&b, " w%d", num(1))
		}
		for i, name := range []string{"fg", "bg", "us", "uc"} {
			if num(i+2) != 0 {
				fmt.Fprintf(&b, " %s=%x", name, num(i+2))
			}
		}
		if f[6] != "" {
			fmt.Fprintf(&b, " link=%q", f[6])
		}
		if num(7) != 1 {
			fmt.Fprintf(&b, " ×%d", num(7))
		}
		b.WriteString(" | ")
	}
	return b.String()
}

// class is the kind of a difference, for grouping: its paths without numbers.
func class(diff []string) string {
	seen := map[string]bool{}
	var out []string
	for _, d := range diff {
		p, _, _ := strings.Cut(d, ":")
		if i := strings.IndexByte(p, '['); i >= 0 {
			p = p[:i] + p[strings.IndexByte(p, ']')+1:]
		}
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

package e2e

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The binary that people get: static, without failpoints, and it works.
func TestShippedBinary(t *testing.T) {
	t.Parallel()
	shipped := readFile(t, shippedBinary)
	tested := readFile(t, testBinary)

	f, err := elf.NewFile(bytes.NewReader(shipped))
	if err != nil {
		t.Fatal(err)
	}
	if libs, _ := f.ImportedLibraries(); len(libs) != 0 || f.Section(".interp") != nil {
		t.Errorf("it is not static: needs %v", libs)
	}
	info, err := buildinfo.ReadFile(shippedBinary)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" || s.Key == "-race" {
			t.Errorf("it was built with %s=%s", s.Key, s.Value)
		}
	}

	// Neither the variables nor the names of the failpoints are in it; that
	// they are in the other build shows that this looks for the right thing.
	words := failpointNames(t)
	words = append(words, "PTYD_TEST_FAILPOINTS", "PTYD_TEST_CLOCK_OFFSET", "PTYD_TEST_TIMES")
	for _, w := range words {
		if bytes.Contains(shipped, []byte(w)) {
			t.Errorf("the shipped binary holds %q", w)
		}
		if !bytes.Contains(tested, []byte(w)) {
			t.Errorf("the test build does not hold %q", w)
		}
	}

	// And the variables do nothing: a daemon that should die at every step lives.
	armed := make([]string, 0, len(words))
	for _, w := range failpointNames(t) {
		armed = append(armed, w+"=kill")
	}
	d := start(t, daemonOptions{Binary: shippedBinary, Env: []string{
		"PTYD_TEST_FAILPOINTS=" + strings.Join(armed, ";"), "PTYD_TEST_CLOCK_OFFSET=not a duration",
	}})
	s := d.run("bash", "-c", "echo hello; exit 7")
	v := newViewer(d, s.ID, newClientID(newRand(t)))
	v.keep = true
	if err := v.run(); err != nil {
		t.Fatal(err)
	}
	if string(v.text) != "hello\r\n" || *v.exit.Code != 7 {
		t.Errorf("it delivered %q and %+v", v.text, v.exit)
	}
	if now := d.session(s.ID).CreatedAt; time.Since(now) > time.Minute || time.Until(now) > time.Minute {
		t.Errorf("its clock says %v", now)
	}
	if r := d.CLI("version", "--json"); r.Code != 0 || !strings.Contains(r.Stdout, `"e2e"`) {
		t.Errorf("version: %v", r)
	}
}

// failpointNames finds the names in the source.
func failpointNames(t *testing.T) []string {
	t.Helper()
	call := regexp.MustCompile(`failpoint\.(?:Hit|Err)\("([^"]+)"\)`)
	var names []string
	for _, dir := range []string{"../internal", "../cmd"} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, m := range call.FindAllSubmatch(readFile(t, path), -1) {
				names = append(names, string(m[1]))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) == 0 {
		t.Fatal("no failpoint in the source")
	}
	return names
}

package bench

import (
	"bytes"
	"fmt"
	"os"
)

// The section of a document that UpdateReadme writes stands between these.
const (
	MarkBegin = "<!-- bench:begin -->"
	MarkEnd   = "<!-- bench:end -->"
)

// UpdateReadme replaces what stands between the marks in the file with the
// report's table.
func UpdateReadme(path string, rep *Report) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replaceSection(old, rep.Table())
	if err != nil {
		return fmt.Errorf("update %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, info.Mode().Perm())
}

func replaceSection(doc []byte, section string) ([]byte, error) {
	if n, m := bytes.Count(doc, []byte(MarkBegin)), bytes.Count(doc, []byte(MarkEnd)); n != 1 || m != 1 {
		return nil, fmt.Errorf("need %s and %s once each, found %d and %d", MarkBegin, MarkEnd, n, m)
	}
	before, rest, _ := bytes.Cut(doc, []byte(MarkBegin))
	_, after, ok := bytes.Cut(rest, []byte(MarkEnd))
	if !ok {
		return nil, fmt.Errorf("%s stands before %s", MarkEnd, MarkBegin)
	}
	return fmt.Appendf(nil, "%s%s\n\n%s\n%s%s", before, MarkBegin, section, MarkEnd, after), nil
}

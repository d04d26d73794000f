package web

import (
	"io/fs"
	"os"
	"testing"
)

// The bool must follow the directory that was embedded, whichever of the two
// builds this is, and the root must be dist itself.
func TestFSTellsWhetherThePageWasBuilt(t *testing.T) {
	root, built := FS()
	_, onDisk := os.Stat("dist/index.html")
	if built != (onDisk == nil) {
		t.Fatalf("built = %v, but stat dist/index.html: %v", built, onDisk)
	}
	if _, err := fs.Stat(root, ".gitkeep"); err != nil {
		t.Fatalf("the root is not dist: %v", err)
	}
	if built {
		if b, err := fs.ReadFile(root, "index.html"); err != nil || len(b) == 0 {
			t.Fatalf("read index.html: %d bytes, %v", len(b), err)
		}
	}
}

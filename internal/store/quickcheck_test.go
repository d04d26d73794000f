package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The check sees damage, beside an open database and without one, and leaves no
// files behind.
func TestQuickCheck(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "a b%.db")
	s, err := Open(ctx, Options{DSN: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := QuickCheck(ctx, path); err != nil {
		t.Errorf("beside an open database: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := QuickCheck(ctx, path); err != nil {
		t.Errorf("without a daemon: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("x", 64)), 2*4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := QuickCheck(ctx, path); err == nil || !strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "\n") {
		t.Errorf("damaged: %v", err)
	}
	if err := os.WriteFile(path+"-wal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := QuickCheck(ctx, path); !errors.Is(err, ErrNotClosed) {
		t.Errorf("not closed in order: %v", err)
	}
}

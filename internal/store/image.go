package store

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// image is an empty database as the migrations make it, compressed. A new
// database begins as a copy of it, which takes a tenth of the time of making
// its tables one by one. It is a shortcut, no second truth: a test compares it
// with the migrations, and those that it lacks are applied as to any old
// database. After a new migration: go generate ./internal/store
//
//go:generate go test -count 1 -run ^TestImage$ . -update-image
//go:embed image.db.gz
var image []byte

// lay puts the image where no database is. Of several processes one wins and
// the others use what it laid. What a lost database left beside it is not for
// a new one, and only SQLite itself knows how to drop it.
func lay(path string) error { return layBy(path, os.Link) }

// layBy is lay on a file system whose link(2) is link.
func layBy(path string, link func(from, to string) error) error {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	z, err := gzip.NewReader(bytes.NewReader(image))
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = io.Copy(f, z)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link, since a rename would replace another process's database. Some file
	// systems have none (vfat, shares): there SQLite begins with an empty file.
	if err := link(f.Name(), path); err != nil {
		return nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, unix.EINVAL) { // a file system that cannot
		err = nil
	}
	return errors.Join(err, dir.Close())
}

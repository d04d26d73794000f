package keeper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ownImage is the file that this process was executed from, also after it was
// replaced or removed.
const ownImage = "/proc/self/exe"

// image is the binary that workers are started from.
type image struct {
	path string
	own  bool // it is the keeper's own
}

// newImage takes path for the keeper's own image when it is that file, or when
// the keeper's file is gone, because then the one at path took its place.
func newImage(path string) image {
	var own unix.Stat_t
	gone := unix.Stat(ownImage, &own) == nil && own.Nlink == 0
	return image{path: path, own: gone || isOwn(path)}
}

func isOwn(path string) bool {
	var own, st unix.Stat_t
	return unix.Stat(ownImage, &own) == nil && unix.Stat(path, &st) == nil && own.Dev == st.Dev && own.Ino == st.Ino
}

// exec is what to execute: the path, for its honest name, while it leads to the
// keeper's own image, else that image itself. A crash thus never starts a
// version that nobody asked for.
func (i image) exec() string {
	if i.own && !isOwn(i.path) {
		return ownImage
	}
	return i.path
}

// executable looks at a binary before anything stops for it.
func executable(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return &os.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}

var errBusy = errors.New("the worker is starting or going; try again")

package web

import (
	"embed"
	"io/fs"
)

// dist holds a committed .gitkeep, so that the pattern matches on a checkout
// where the page was never built.
//
//go:embed all:dist
var dist embed.FS

// FS returns the built page, index.html at its root. The bool says whether
// the page was built: without Node there is no index.html, and the daemon
// serves a plain page that says how to build the real one.
func FS() (fs.FS, bool) {
	root, err := fs.Sub(dist, "dist")
	if err != nil { // unreachable: "dist" is a valid path
		return dist, false
	}
	info, err := fs.Stat(root, "index.html")
	return root, err == nil && info.Mode().IsRegular()
}

package config

import (
	"runtime"
	"runtime/debug"
)

// Version is the release this binary was built from. The Makefile sets it by
// -ldflags "-X github.com/ptyd/ptyd/internal/config.Version=…".
var Version = "dev"

// Build says which program this is.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// ReadBuild describes the running binary.
func ReadBuild() Build {
	b := Build{Version: Version, Commit: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty {
		b.Commit += "-modified"
	}
	return b
}

// Package config is the daemon's configuration: one struct, filled from
// defaults, then a TOML file, then PTYD_* environment variables, then flags.
// One table (keys.go) names every setting once; flags, environment names, the
// file's keys and docs/configuration.md come from it. Unknown keys and bad
// values are errors that name the key and where it stands. It has no goroutine
// and no lock.
package config

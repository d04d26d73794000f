// Package units holds the systemd units as they are written to a machine: one
// source for `ptyd service install`, `make install` and the package. It has no
// goroutine and no lock.
package units

import _ "embed" // the files below

// The units, with /usr/local/bin/ptyd as the program.
var (
	//go:embed system/ptyd.service
	System string
	//go:embed system/ptyd-tmp.service
	SystemTmp string
	//go:embed user/ptyd.service
	User string
)

// Drop-ins to the units above.
var (
	// New holds the keys that systemd knows from version NewSince on.
	//go:embed dropins/254.conf
	New string
	// Relaxed takes the system unit's hardening back.
	//go:embed dropins/relaxed.conf
	Relaxed string
)

// NewSince is the first version of systemd that knows the keys of New.
const NewSince = 254

// Program is the path of the program in the units' texts.
const Program = "/usr/local/bin/ptyd"

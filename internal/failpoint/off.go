//go:build !ptydtest

package failpoint

import "time"

// Enabled tells whether this build has failpoints.
const Enabled = false

// Hit does nothing in this build.
func Hit(string) {}

// Err returns nil in this build.
func Err(string) error { return nil }

// Duration is d in this build.
func Duration(_ string, d time.Duration) time.Duration { return d }

// Now is time.Now in this build.
func Now() time.Time { return time.Now() }

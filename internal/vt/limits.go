package vt

// The limits that no stream passes.
const (
	// MinCols is the narrowest screen: a wide character must fit.
	MinCols = 2
	// MaxCols and MaxRows bound the size, in cells; a size beyond is clamped.
	MaxCols = 1000
	MaxRows = 1000
	// MaxScrollback bounds Options.ScrollbackLines.
	MaxScrollback = 1_000_000

	// DefaultScrollbackLines and DefaultScrollbackBytes hold where Options says
	// nothing.
	DefaultScrollbackLines = 10_000
	DefaultScrollbackBytes = 16 << 20

	// MaxString is how many bytes an OSC or DCS may carry; a longer one is
	// read to its end and has no effect.
	MaxString = 1 << 20
	// MaxCluster is how many bytes one cell may hold: a base character and
	// its combining ones. More of those are dropped.
	MaxCluster = 64
	// MaxURI is the longest link, in bytes; a longer one is no link.
	MaxURI = 4096
	// MaxReplyBytes is how many bytes of replies wait until they are taken;
	// whole replies beyond it are dropped and counted.
	MaxReplyBytes = 16 << 10
	// MaxEvents and MaxEventBytes bound what waits in TakeEvents; events
	// beyond are dropped and counted.
	MaxEvents     = 1024
	MaxEventBytes = 2 << 20

	maxParams  = 32         // of a CSI or DCS, and as many sub-parameters
	maxParam   = 0x7fffffff // a larger number is this
	maxCollect = 3          // prefix and intermediates; no known sequence has as many

	maxTitle      = 4096    // bytes kept of a title, an icon name or a directory
	maxKittyStack = 16      // keyboard flags pushed, per screen
	maxLinkBytes  = 4 << 20 // of all links in use; further ones are no links
	maxMarks      = 8       // per row
	maxMarkData   = 256     // bytes of a mark's parameters
)

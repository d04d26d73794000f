package vt

// runeWidth is the number of columns of a code point: 0 (combining), 1 or 2.
func runeWidth(r uint32) int {
	if r < 0x300 {
		return 1 // as the table has it, for all that is printed
	}
	return int(widthPages[widthIndex[r>>8]][r>>2&63] >> (r & 3 * 2) & 3)
}

// charset is a national character set: what stands in place of ASCII. A nil
// charset changes nothing.
type charset struct {
	final byte // the byte that designates it
	to    [128]uint16
}

// RuneWidth is the number of columns that r takes: 0 for one that joins what
// stands before it, 1 or 2.
func RuneWidth(r rune) int {
	if r < 0 || r > 0x10ffff {
		return 0
	}
	return runeWidth(uint32(r))
}

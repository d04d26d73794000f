package workload

import "hash/crc32"

// The flood is text as a compiler or a log prints it: lines of LineLen bytes,
// each with its own number, the rest one fixed pseudo-random pattern.
const (
	LineLen    = 76
	blockLines = 862 // just under the 64 KiB that programs like to write at once
	blockLen   = blockLines * LineLen
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// block holds blockLines lines; number writes the lines' numbers into it.
type block []byte

func newBlock() block {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	b := make(block, blockLen)
	x := uint32(20260101)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = alphabet[x>>26]
	}
	for l := range blockLines {
		b[l*LineLen+8] = ' '
		b[(l+1)*LineLen-1] = '\n'
	}
	return b
}

// number makes b the n-th block of the flood.
func (b block) number(n uint64) {
	const hex = "0123456789abcdef"
	line := uint32(n * blockLines) // wraps after 300 GB: the text need not be unique
	for l := range blockLines {
		p := b[l*LineLen : l*LineLen+8]
		for i, v := 7, line; i >= 0; i, v = i-1, v>>4 {
			p[i] = hex[v&15]
		}
		line++
	}
}

// Update adds p to a checksum of flood bytes.
func Update(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// Checksum is the checksum of the flood's bytes from ≤ position < to.
func Checksum(from, to uint64) uint32 {
	var sum uint32
	b := newBlock()
	for from < to {
		n := from / blockLen
		b.number(n)
		end := min(to-n*blockLen, blockLen)
		sum = Update(sum, b[from-n*blockLen:end])
		from = n*blockLen + end
	}
	return sum
}

// Block returns the n-th block of the flood: all blocks are equally long.
func Block(n uint64) []byte {
	b := newBlock()
	b.number(n)
	return b
}

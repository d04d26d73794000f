package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

const (
	magic      = "PTYDCKP1"
	headerSize = 128
	recordHead = 16
	// MaxRecord is the most output in one record, in bytes.
	MaxRecord = 64 << 10
	// Unsafe stands for "no safe offset is known".
	Unsafe = ^uint64(0)

	atEpoch, atStart, atSafe, atID, atSum = 8, 16, 24, 32, 92
	atHint, hintSize                      = 96, 20
	idSize                                = 60
	maxOffset                             = 1 << 62
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the beginning of a segment.
type header struct {
	epoch uint64
	start uint64
	safe  uint64 // the first offset at which the stream may be entered, Unsafe when not known
	id    string
}

func (h header) bytes() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.LittleEndian.PutUint64(b[atEpoch:], h.epoch)
	binary.LittleEndian.PutUint64(b[atStart:], h.start)
	binary.LittleEndian.PutUint64(b[atSafe:], h.safe+1) // Unsafe is 0
	copy(b[atID:atID+idSize], h.id)
	binary.LittleEndian.PutUint32(b[atSum:], crc32.Checksum(b[:atSum], castagnoli))
	return b
}

var errForeign = errors.New("not a checkpoint of this version")

func parseHeader(b []byte) (header, error) {
	if len(b) < headerSize || string(b[:len(magic)]) != magic || binary.LittleEndian.Uint32(b[atSum:]) != crc32.Checksum(b[:atSum], castagnoli) {
		return header{}, errForeign
	}
	h := header{
		epoch: binary.LittleEndian.Uint64(b[atEpoch:]),
		start: binary.LittleEndian.Uint64(b[atStart:]),
		safe:  binary.LittleEndian.Uint64(b[atSafe:]) - 1,
		id:    strings.TrimRight(string(b[atID:atID+idSize]), "\x00"),
	}
	if h.start > maxOffset {
		return header{}, errForeign
	}
	return h, nil
}

// hint is where a segment of size bytes ends.
func hint(end uint64, size int64) []byte {
	b := make([]byte, hintSize)
	binary.LittleEndian.PutUint64(b, end)
	binary.LittleEndian.PutUint64(b[8:], uint64(size))
	binary.LittleEndian.PutUint32(b[16:], crc32.Checksum(b[:16], castagnoli))
	return b
}

// parseHint returns the end that the hint in header b tells, if it is of a file
// of that size.
func parseHint(b []byte, size int64) (end uint64, ok bool) {
	b = b[atHint : atHint+hintSize]
	if binary.LittleEndian.Uint32(b[16:]) != crc32.Checksum(b[:16], castagnoli) || binary.LittleEndian.Uint64(b[8:]) != uint64(size) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// putRecord writes the head of a record that holds data into b.
func putRecord(b []byte, off uint64, data []byte) {
	binary.LittleEndian.PutUint32(b, uint32(len(data)))
	binary.LittleEndian.PutUint64(b[8:], off)
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(crc32.Checksum(b[8:16], castagnoli), castagnoli, data))
}

// span is what a segment was found to hold: [start, end) in the first size bytes.
type span struct {
	header
	end  uint64
	size int64
	torn bool // something follows that is no whole record
}

// scan reads a segment to its end, or to what is no whole record of it. give, if
// not nil, gets the data of each record in turn; it is valid during the call.
// Whatever r holds, scan needs one record's memory.
func scan(r io.Reader, give func(off uint64, data []byte) error) (span, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errForeign
		}
		return span{}, err
	}
	h, err := parseHeader(head[:])
	if err != nil {
		return span{}, err
	}
	s := span{header: h, end: h.start, size: headerSize}
	buf := make([]byte, recordHead+MaxRecord)
	for {
		if _, err := io.ReadFull(r, buf[:recordHead]); err != nil {
			s.torn = errors.Is(err, io.ErrUnexpectedEOF)
			return s, unlessEnd(err)
		}
		n := int64(binary.LittleEndian.Uint32(buf))
		if n == 0 || n > MaxRecord || binary.LittleEndian.Uint64(buf[8:]) != s.end {
			s.torn = true
			return s, nil
		}
		data := buf[recordHead : recordHead+n]
		if _, err := io.ReadFull(r, data); err != nil {
			s.torn = true
			return s, unlessEnd(err)
		}
		if binary.LittleEndian.Uint32(buf[4:]) != crc32.Update(crc32.Checksum(buf[8:16], castagnoli), castagnoli, data) {
			s.torn = true
			return s, nil
		}
		if give != nil {
			if err := give(s.end, data); err != nil {
				return s, err
			}
		}
		s.end += uint64(n)
		s.size += recordHead + n
	}
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// segment is a file of the directory.
type segment struct {
	gen   uint32
	start uint64
	size  int64
}

func (s segment) name(id string) string { return fmt.Sprintf("%s.%08x.%016x", id, s.gen, s.start) }

// parseName is the inverse of name; false for whatever name would not make.
func parseName(name string) (id string, s segment, ok bool) {
	id, rest, _ := strings.Cut(name, ".")
	gen, start, _ := strings.Cut(rest, ".")
	g, err := strconv.ParseUint(gen, 16, 32)
	if err != nil {
		return "", segment{}, false
	}
	at, err := strconv.ParseUint(start, 16, 64)
	if err != nil {
		return "", segment{}, false
	}
	s = segment{gen: uint32(g), start: at}
	return id, s, goodID(id) && s.name(id) == name
}

// goodID tells whether id can be part of a file's name.
func goodID(id string) bool {
	return id != "" && len(id) <= idSize && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
	})
}

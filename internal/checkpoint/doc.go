// Package checkpoint keeps the end of each session's output on the disk, so
// that it can be read after a reboot. It knows bytes, offsets and files, neither
// sessions nor terminals.
//
// A session has a few append-only files, its segments, in one flat directory:
//
//	ID.GENERATION.START    such as s_01k….00000001.0000000000000000
//
// Within a generation each segment begins where the one before ends. Where
// output was left out, the next generation begins; what came before the gap
// stays until there is no room for it, because a crash may take the newest
// bytes. A segment is a header and records, each with a checksum:
//
//	header, 128 bytes: magic "PTYDCKP1", epoch, start, first safe offset + 1,
//	    id, CRC-32C of these; and apart from them a hint {end, size, CRC-32C}
//	record: length (at most 64 KiB), CRC-32C of offset and data, offset, data
//
// Numbers are little-endian. What is torn or does not match its checksum ends a
// segment. The hint, written over with every record, spares a reader who only
// wants to know the end from reading all; it counts only while it tells the
// file's size.
//
// Writing is for one goroutine of the caller's: Log.Append, Log.Sync,
// Dir.Remove, Dir.DropOldest. Everything else may be called by any. Dir.mu guards the index
// alone and is never held over I/O. The package starts no goroutine.
package checkpoint

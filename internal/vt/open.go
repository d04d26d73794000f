package vt

import "strconv"

// appendOpen appends a sequence that is still open, in a form that leaves the
// same behind.
func (p *parser) appendOpen(dst []byte) []byte {
	switch p.state {
	case ground:
	case escape:
		dst = append(dst, 0x1b)
	case escapeCollect:
		dst = append(append(dst, 0x1b), p.collect[:p.ncol]...)
	case csiEntry, csiParam, csiCollect:
		dst = p.appendParams(append(dst, "\x1b["...), p.state == csiEntry)
	case csiIgnore:
		dst = append(dst, "\x1b[0<"...)
	case ignoreString:
		dst = append(dst, "\x1bX"...)
	case oscString:
		dst = append(dst, "\x1b]"...)
		dst = p.appendString(dst)
	case dcsEntry, dcsParam, dcsCollect:
		dst = p.appendParams(append(dst, "\x1bP"...), p.state == dcsEntry)
	case dcsIgnore:
		dst = append(dst, "\x1bP0<"...)
	case dcsString:
		dst = p.appendParams(append(dst, "\x1bP"...), false)
		dst = append(dst, p.final)
		dst = p.appendString(dst)
	}
	return append(dst, p.part[:p.npart]...)
}

func (p *parser) appendString(dst []byte) []byte {
	if p.overlong {
		return append(dst, 'x') // it has no effect either
	}
	return append(dst, p.text...)
}

func (p *parser) appendParams(dst []byte, none bool) []byte {
	if none {
		return dst
	}
	collect := p.collect[:p.ncol]
	if len(collect) > 0 && collect[0] >= 0x3c {
		dst = append(dst, collect[0])
		collect = collect[1:]
	}
	a := &p.args
	for i := range a.n {
		if i > 0 {
			dst = append(dst, ';')
		}
		dst = strconv.AppendInt(dst, int64(a.list[i]), 10)
		for _, sub := range a.subsOf(i) {
			dst = append(dst, ':')
			if sub >= 0 {
				dst = strconv.AppendInt(dst, int64(sub), 10)
			}
		}
	}
	if a.rejected {
		dst = append(dst, ';')
	}
	if a.subRejected {
		dst = append(dst, ':')
	}
	return append(dst, collect...)
}

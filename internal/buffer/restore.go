package buffer

// Restore makes a ring of output that was kept elsewhere: it begins at offset
// start, and safe is the first offset at which the stream may be entered; one
// before start means that it is not known, and then start is taken for one.
// each gives the bytes in order. The ring is sealed.
func Restore(epoch uint64, limit int64, start, safe uint64, each func(give func(p []byte) error) error) (*Ring, error) {
	r, err := New(epoch, limit)
	if err != nil {
		return nil, err
	}
	r.beginAt(start)
	err = each(func(p []byte) error {
		if h := r.head.Load(); h < safe && safe-h < uint64(len(p)) {
			r.Append(p[:safe-h])
			p = p[safe-h:]
		}
		if h := r.head.Load(); h == safe && h > start {
			r.unsafeSoFar()
		}
		r.Append(p)
		return nil
	})
	if err != nil {
		r.Close()
		return nil, err
	}
	r.Seal()
	return r, nil
}

// beginAt lets an empty ring begin at offset at.
func (r *Ring) beginAt(at uint64) {
	if at == 0 {
		return
	}
	r.chunkAt[0].chunk.Store(0)
	r.chunkAt[0].safe.Store(0)
	r.setTail(at)
	r.memHead.Store(at)
	r.head.Store(at)
}

// unsafeSoFar takes back what the scanner found, which began inside a sequence;
// it begins anew at the head.
func (r *Ring) unsafeSoFar() {
	for i := range r.chunkAt {
		r.chunkAt[i].safe.Store(0)
	}
	r.sc = scanner{}
	r.openAt.Store(0)
}

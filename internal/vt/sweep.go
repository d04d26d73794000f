package vt

// sweep forgets the styles, clusters and links that nothing shows any more.
func (t *Terminal) sweep() {
	old := t.styles
	fresh := newStyles()
	fresh.serial = old.serial
	moved := make(map[styleID]styleID)
	links := make(map[linkID]linkID)
	link := func(id linkID) linkID {
		if id == 0 {
			return 0
		}
		n, ok := links[id]
		if !ok {
			l := old.links[id]
			n = linkID(len(fresh.links))
			fresh.links = append(fresh.links, l)
			fresh.linkIDs[l] = n
			fresh.linkBytes += len(l.id) + len(l.uri)
			links[id] = n
		}
		return n
	}
	id := func(id styleID) styleID {
		if id == defaultStyle {
			return id
		}
		n, ok := moved[id]
		if !ok {
			s := old.list[id]
			s.link = link(s.link)
			n = fresh.id(s)
			moved[id] = n
		}
		return n
	}
	for _, s := range []*screen{t.normal, t.alt} {
		for _, r := range s.rows {
			for i, c := range r.cells {
				if c == 0 {
					continue
				}
				d := c&(1<<styleShift-1) | styled(id(c.style()))
				if c.isCluster() {
					d = d&^contentMask | cell(fresh.cluster([]byte(old.clusters[c.clusterIndex()])))
				}
				r.cells[i] = d
			}
		}
	}
	t.pen.link = link(t.pen.link)
	fresh.sweepStyles = max(sweepMin, 2*len(fresh.list))
	fresh.sweepClusters = max(sweepMin, 2*len(fresh.clusters))
	fresh.sweepLinks = max(sweepMin, 2*len(fresh.links))
	fresh.grown()
	*t.styles = *fresh
	t.penStale = true
}

// tidy sweeps if it is due, after lines of the scrollback were drawn again. No
// row may be in hand then.
func (t *Terminal) tidy() {
	if t.styles.full && !t.shared {
		t.sweep()
	}
}

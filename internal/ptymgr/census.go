package ptymgr

import (
	"bytes"
	"os"
	"strconv"
	"sync"
)

// census is one look at all processes of the machine.
type census struct {
	all     map[int]proc
	kids    map[int][]int    // by parent
	members map[int][]int    // by leader of the terminal session
	marks   map[string][]int // by the session whose mark they carry
}

// takeCensus looks into /proc, which takes some 20 µs for each process.
func takeCensus() *census {
	c := &census{all: map[int]proc{}, kids: map[int][]int{}, members: map[int][]int{}, marks: map[string][]int{}}
	d, err := os.Open("/proc")
	if err != nil {
		return c
	}
	names, _ := d.Readdirnames(-1)
	d.Close()
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		p, ok := readStat(pid)
		if !ok {
			continue
		}
		c.all[pid] = p
		c.kids[p.ppid] = append(c.kids[p.ppid], pid)
		c.members[p.session] = append(c.members[p.session], pid)
		for _, id := range marksOf(pid) {
			c.marks[id] = append(c.marks[id], pid)
		}
	}
	return c
}

// marksOf are the sessions that a process carries in its environment: one,
// unless somebody made an environment by hand.
func marksOf(pid int) (ids []string) {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if id, ok := bytes.CutPrefix(kv, []byte("PTYD_SESSION=")); ok {
			ids = append(ids, string(id))
		}
	}
	return ids
}

// tree finds what lives of a session without the help of a cgroup: the leader's
// session, its descendants and theirs, and whatever carries the session's mark
// in its environment (a program that left by setsid and a double fork). One that
// also clears its environment escapes it.
func (c *census) tree(leader int, mark string) []proc {
	var found []proc
	seen := map[int]bool{os.Getpid(): true, 1: true}
	var add func(pid int)
	add = func(pid int) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		if p, ok := c.all[pid]; ok {
			found = append(found, p)
		}
		for _, k := range c.kids[pid] {
			add(k)
		}
	}
	add(leader)
	for _, pid := range c.members[leader] {
		add(pid)
	}
	for _, pid := range c.marks[mark] {
		add(pid)
	}
	return found
}

// lookout shares looks at /proc among those who need one at the same time: a
// shutdown ends thousands of sessions at once, and when each looked for itself
// the looking took so long that living processes seemed to be beyond us.
type lookout struct {
	turn chan struct{} // holds one element while somebody looks

	mu   sync.Mutex // guards next
	next *look      // that has not begun: whoever comes now can share it
}

type look struct {
	done chan struct{} // closed once census is there
	*census
}

func newLookout() *lookout { return &lookout{turn: make(chan struct{}, 1)} }

// census returns a look that began after the call.
func (l *lookout) census() *census {
	l.mu.Lock()
	k, first := l.next, l.next == nil
	if first {
		k = &look{done: make(chan struct{})}
		l.next = k
	}
	l.mu.Unlock()
	if !first {
		<-k.done
		return k.census
	}
	l.turn <- struct{}{}
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	k.census = takeCensus()
	<-l.turn
	close(k.done)
	return k.census
}

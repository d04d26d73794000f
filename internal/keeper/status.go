package keeper

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// Status is what a keeper says about itself when a worker asks.
type Status struct {
	Version  string    // of its image
	Started  time.Time // of its first image
	Origin   string    // the path that it was started by: what an upgrade takes where no other is named
	Binary   string    // the image that workers run
	Upgrades int       // how often it executed itself anew
	Failed   string    // why the last upgrade was not done, or not to its end; "" otherwise
}

// tell writes the status to whoever asked: text, a fact a line, as in state.
func (k *keeper) tell(m *notifyproto.Message) {
	if len(m.FDs) != 1 {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version %s\nstarted %d\nupgrades %d\n", line(k.o.Version), k.started.UnixMicro(), k.upgrades)
	fmt.Fprintf(&b, "origin %s\nbinary %s\nfailed %s\nend\n", line(k.origin), line(k.image.path), line(k.failed))
	// The pipe is the worker's: it can't make this block, only get less.
	_ = unix.SetNonblock(m.FDs[0], true)
	_, _ = unix.Write(m.FDs[0], []byte(b.String()))
}

// line is s without what would end its line.
func line(s string) string { return strings.ReplaceAll(s, "\n", " ") }

// ParseStatus reads what a keeper answered to KeyStatus. ok is false where it
// did not answer, as those of earlier releases don't.
func ParseStatus(text string) (s Status, ok bool) {
	in := bufio.NewScanner(strings.NewReader(text))
	for !ok && in.Scan() {
		key, v, _ := strings.Cut(in.Text(), " ")
		switch key {
		case "version":
			s.Version = v
		case "started":
			if us, err := strconv.ParseInt(v, 10, 64); err == nil {
				s.Started = time.UnixMicro(us)
			}
		case "upgrades":
			s.Upgrades, _ = strconv.Atoi(v)
		case "origin":
			s.Origin = v
		case "binary":
			s.Binary = v
		case "failed":
			s.Failed = v
		case "end":
			ok = true
		}
	}
	return s, ok
}

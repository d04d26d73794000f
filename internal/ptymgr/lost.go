package ptymgr

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/problem"
)

// birthOf tells a process from every other one of its number: the boot and the
// clock ticks from there to its start.
func birthOf(start uint64) string { return fmt.Sprintf("%x:%d", bootID(), start) }

// survivors looks once for what lives of sessions whose descriptors are gone,
// by session: the process of the row where boot and start are those recorded,
// its session and descendants, and what carries the session's mark.
func survivors(rows []Record) map[string][]proc {
	leaders, wanted := map[int]Record{}, map[string]bool{}
	for _, r := range rows {
		wanted[r.ID] = true
		if r.PID > 1 && r.Birth != "" {
			leaders[r.PID] = r
		}
	}
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := d.Readdirnames(-1)
	d.Close()
	all, of := map[int]proc{}, map[int]string{}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		p, ok := readStat(pid)
		if !ok {
			continue
		}
		all[pid] = p
		if r, ok := leaders[pid]; ok && r.Birth == birthOf(p.start) {
			of[pid] = r.ID
			continue
		}
		for _, id := range marksOf(pid) {
			if wanted[id] {
				of[pid] = id
			}
		}
	}
	// This daemon may have been started in what it takes for a lost session.
	ours := map[int]bool{}
	for pid := os.Getppid(); pid > 1 && !ours[pid]; pid = all[pid].ppid {
		ours[pid] = true
	}
	// Belonging is inherited: from the session's leader, and from a parent.
	var owner func(pid, depth int) string
	owner = func(pid, depth int) string {
		p, ok := all[pid]
		if !ok || ours[pid] || depth > len(all) {
			return ""
		}
		if id := of[pid]; id != "" {
			return id
		}
		id := of[p.session]
		if id == "" && p.ppid > 1 {
			id = owner(p.ppid, depth+1)
		}
		of[pid] = id
		return id
	}
	found := map[string][]proc{}
	for pid, p := range all {
		if id := owner(pid, 0); id != "" {
			found[id] = append(found[id], p)
		}
	}
	return found
}

// keptElsewhere tells whether a session's first process still has its terminal,
// and is no child of this daemon's: the kernel takes the terminal away when the
// last holder of its other end goes, so another daemon keeps the session. That
// is so when this one was started on a copy of the other's state directory.
func keptElsewhere(r Record) bool {
	if r.PID <= 1 || r.Birth == "" {
		return false
	}
	p, ok := readStat(r.PID)
	return ok && birthOf(p.start) == r.Birth && p.ppid != os.Getpid() && p.ppid != os.Getppid() && hasTerminal(r.PID)
}

// unfinished are the rows that the store calls living, by id.
func (m *Manager) unfinished(ctx context.Context) (map[string]Record, error) {
	rows := map[string]Record{}
	f := Filter{States: []State{Starting, Running}, Limit: sweepBatch}
	for {
		page, next, err := m.store.ListSessions(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("look for unfinished sessions: %w", err)
		}
		for _, r := range page {
			rows[r.ID] = r
		}
		if next == "" {
			return rows, nil
		}
		f.After = next
	}
}

// unadopted are those of the unfinished rows that nobody adopted.
func (m *Manager) unadopted(unfinished map[string]Record) (rows []Record) {
	for id, r := range unfinished {
		if _, ok := m.sessions.Load(id); !ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// endLeftovers kills what lives of sessions that are about to be called lost:
// nobody could reach it any more, and what runs again must not run twice. What
// another daemon keeps is left alone, once it has lasted longer than it takes a
// daemon that was killed to lose its terminals.
func (m *Manager) endLeftovers(rows []Record) {
	if len(rows) == 0 {
		return
	}
	killed := map[proc]bool{}
	step := 5 * time.Millisecond
	begun := time.Now()
	for deadline := begun.Add(killWait); ; {
		late := time.Since(begun) > keptWait
		var kept []string
		for _, r := range rows {
			if keptElsewhere(r) {
				kept = append(kept, r.ID)
			}
		}
		if late && len(kept) > 0 {
			m.log.Error("sessions of this state directory are kept by another daemon and left to it: is this a copy of its state?", zap.Strings("sessions", kept))
			rows = slices.DeleteFunc(rows, func(r Record) bool { return slices.Contains(kept, r.ID) })
			kept = nil
		}
		left := survivors(rows)
		for _, id := range kept {
			left[id] = nil // not yet
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			for id, ps := range left {
				m.log.Error("processes of a lost session cannot be ended", zap.String("session", id), zap.String("pids", pidList(ps)))
			}
			break
		}
		for _, ps := range left {
			for _, p := range ps {
				p.signal(unix.SIGKILL)
				killed[p] = true
			}
		}
		time.Sleep(step)
		step = min(step*2, 100*time.Millisecond)
	}
	if len(killed) > 0 {
		m.log.Warn("killed what was left of lost sessions", zap.Int("processes", len(killed)))
	}
}

// keptWait is how long a session's process may have its terminal after the
// daemon that held it is gone. Its lock goes with the same exit, so this is
// generous.
const keptWait = 500 * time.Millisecond

func pidList(ps []proc) string {
	var pids []string
	for _, p := range ps {
		pids = append(pids, strconv.Itoa(p.pid))
	}
	return strings.Join(pids, ", ")
}

// RunAgain starts an ended session once more: the same program, arguments,
// directory, additions to the environment, size, name and labels, for the same
// owner. It is a session of its own, which says what it repeats. With an
// idempotency key that was seen before it returns the session of that key, and
// existing.
func (m *Manager) RunAgain(ctx context.Context, id, key string) (info Info, existing bool, err error) {
	if s, ok := m.sessions.Load(id); ok && isClosed(s.done) {
		// The row says it ended, and its name is free, only when the scribe has
		// been there.
		if err := m.scribe.wait(ctx, s); err != nil {
			return Info{}, false, err
		}
	}
	row, err := m.store.GetSession(ctx, id)
	if err != nil {
		return Info{}, false, err
	}
	if s, ok := m.sessions.Load(id); !row.State.Ended() || ok && !isClosed(s.done) {
		return Info{}, false, problem.New(problem.SessionRunning, "session %s is running", id).WithHint("close it first")
	}
	if row.State == Lost {
		if left := survivors([]Record{row})[id]; len(left) > 0 {
			return Info{}, false, problem.New(problem.Conflict, "processes %s of session %s still live", pidList(left), id).
				WithHint("end them first")
		}
	}
	limit := row.OutputLimit
	if most := m.cfg.Load().OutputLimit; limit > most {
		limit = most
	}
	spec := Spec{
		Argv: row.Argv, Cwd: row.Cwd, Env: row.Env, Cols: row.Cols, Rows: row.Rows, Name: row.Name, Labels: row.Labels, Owner: row.Owner,
		IdempotencyKey: key, OutputLimit: limit, NoCheckpoint: row.NoCheckpoint, RerunOf: id,
		MemoryLimit: &row.MemoryLimit, PidsLimit: &row.PidsLimit,
	}
	// The key stands for running this one again, whatever it is called by then.
	digest, err := digestOf(Spec{RerunOf: id})
	if err != nil {
		return Info{}, false, err
	}
	return m.create(ctx, spec, row.Shell, digest)
}

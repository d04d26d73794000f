package ptymgr

import (
	"context"
	"time"

	"github.com/ptyd/ptyd/internal/cgroup"
)

// State is where a session is in its life: starting → running → exited | lost.
type State string

// The states. A lost session's end was not seen: its exit status is unknown.
const (
	Starting State = "starting"
	Running  State = "running"
	Exited   State = "exited"
	Lost     State = "lost"
)

// Ended reports whether s is final.
func (s State) Ended() bool { return s == Exited || s == Lost }

// Spec is a request to create a session.
type Spec struct {
	Argv           []string          // the program and its arguments; empty with Shell
	Shell          bool              // run the configured shell as a login shell
	Cwd            string            // absolute; "" is the daemon user's home
	Env            []string          // K=V, added to the base environment
	Cols, Rows     uint16            // 0 is 80×24
	Name           string            // unique among the owner's living sessions; "" gets one
	Labels         map[string]string // free
	Owner          string            // user id
	IdempotencyKey string            // "" for none; a repeated key gives the same session
	OutputLimit    int64             // bytes of output kept; 0 is the configured limit
	// Limits of all its processes together: nil is the configured one, 0 none.
	// Left out of the digest of a request where they are not given, so that one
	// of an older release is the same request.
	MemoryLimit *int64 `json:",omitempty"` // bytes
	PidsLimit   *int   `json:",omitempty"` // processes and threads

	// These are left out of the digest where they say nothing, so that a key of
	// an earlier release keeps its meaning.
	NoCheckpoint bool   `json:",omitempty"` // its output is never written to the disk
	RerunOf      string `json:",omitempty"` // the session that this one repeats
}

// Record is a session as the store keeps it.
type Record struct {
	ID, Name, Owner    string
	State              State
	Argv               []string
	Cwd                string
	Env                []string
	Labels             map[string]string
	Cols, Rows         uint16
	PID                int
	ExitCode           *int   // nil while running, when a signal ended it, and when unknown
	Signal             string // "SIGKILL", "" when none
	CreatedAt          time.Time
	StartedAt, EndedAt time.Time // zero when not yet
	Epoch              uint64
	FinalOffset        uint64 // bytes of output in all, once ended
	Error              string // why it is lost or could not start, or what the kernel did to it
	MemoryLimit        int64  // bytes of all its processes; 0 none
	PidsLimit          int    // processes and threads; 0 none
	Birth              string // boot and start of the process PID; "" when not known
	Shell              bool   // Argv is the shell, run as a login shell
	OutputLimit        int64  // bytes of output kept, as asked for; 0 where an earlier release made the row
	NoCheckpoint       bool   // its output is never written to the disk
	RerunOf            string // the session that this one repeats, "" for none
}

func (r Record) limits() cgroup.Limits {
	return cgroup.Limits{Memory: r.MemoryLimit, Pids: r.PidsLimit}
}

// Info is a session as callers see it: the record with the live facts.
type Info struct {
	Record
	Offset  uint64 // bytes of output so far
	Oldest  uint64 // the first byte still kept
	Viewers int
}

// Filter selects sessions; zero values select all.
type Filter struct {
	Owner  string
	States []State
	Name   string
	Labels map[string]string // all must be equal
	After  string            // the last id of the page before
	Limit  int               // 0 is 100
}

// Removed names a session whose row is gone.
type Removed struct{ ID, Owner string }

// Limits bounds how many sessions may live at once.
type Limits struct {
	PerOwner, Total int
}

// Store is what ptymgr needs to remember. Every method decides and writes in
// one transaction; internal/store implements it.
type Store interface {
	// CreateSession inserts r in state starting, unless (owner, key) was seen:
	// then it returns that row and existing. Errors: problem.IdempotencyReuse
	// (the key came with another digest), problem.Gone (the key's session was
	// removed), problem.LimitReached, problem.NameTaken.
	CreateSession(ctx context.Context, r Record, key, digest string, limits Limits) (row Record, existing bool, err error)
	// MarkRunning moves a starting session to running; birth tells its process
	// from a later one of the same number.
	MarkRunning(ctx context.Context, id string, pid int, started time.Time, birth string) error
	// MarkEnded writes the one end of a session; first tells whether this call did.
	MarkEnded(ctx context.Context, id string, state State, exitCode *int, signal string, ended time.Time, finalOffset uint64, errText string) (first bool, err error)
	RenameSession(ctx context.Context, id, name string) error
	SetLabels(ctx context.Context, id string, labels map[string]string) error
	ResizeSession(ctx context.Context, id string, cols, rows uint16) error
	// DeleteSession removes an ended session, else it fails with problem.SessionRunning.
	DeleteSession(ctx context.Context, id string) error
	GetSession(ctx context.Context, id string) (Record, error)
	// FindByName prefers the living session of that name, then the newest ended one.
	FindByName(ctx context.Context, owner, name string) (Record, error)
	ListSessions(ctx context.Context, f Filter) (rows []Record, next string, err error)
	EndedBefore(ctx context.Context, t time.Time, limit int) ([]string, error)
	// TrimEnded removes, in one statement, those sessions of each owner that
	// ended first and are more than keep, at most limit of them.
	TrimEnded(ctx context.Context, keep, limit int) ([]Removed, error)
	// LoseUnfinished marks every living session that is not in except as lost.
	LoseUnfinished(ctx context.Context, except []string, at time.Time) ([]string, error)
}

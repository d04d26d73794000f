package api

import (
	"fmt"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/cgroup"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// stamp is a time in JSON: RFC 3339, UTC, always with six digits, so that
// texts sort as the times do.
type stamp struct{ time.Time }

const stampFormat = "2006-01-02T15:04:05.000000Z"

// MarshalJSON implements json.Marshaler.
func (t stamp) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"` + stampFormat + `"`)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *stamp) UnmarshalJSON(data []byte) error {
	parsed, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(data))
	t.Time = parsed
	return err
}

// stampPtr is nil for a time that has not come.
func stampPtr(t time.Time) *stamp {
	if t.IsZero() {
		return nil
	}
	return &stamp{t}
}

// nothing stands for "no body".
type nothing struct{}

// list is one page of a list.
type list[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor" doc:"Give it as cursor to get the next page; empty on the last one."`
}

func page[T any](items []T, next string) list[T] {
	if items == nil {
		items = []T{}
	}
	return list[T]{Items: items, NextCursor: next}
}

// Session is a session in JSON. Its environment is not shown: it may hold secrets.
type Session struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	State        ptymgr.State      `json:"state" doc:"lost: its end was not seen, so its exit status is unknown."`
	Owner        string            `json:"owner" doc:"Id of the user it belongs to."`
	OwnerName    string            `json:"owner_name"`
	Argv         []string          `json:"argv"`
	Cwd          string            `json:"cwd"`
	Labels       map[string]string `json:"labels"`
	Cols         uint16            `json:"cols"`
	Rows         uint16            `json:"rows"`
	PID          int               `json:"pid" doc:"0 while it starts, and where it could not be started."`
	ExitCode     *int              `json:"exit_code" doc:"null while it runs, when a signal ended it, and when unknown."`
	Signal       *string           `json:"signal" doc:"The signal that ended it."`
	CreatedAt    stamp             `json:"created_at"`
	StartedAt    *stamp            `json:"started_at"`
	EndedAt      *stamp            `json:"ended_at"`
	Epoch        string            `json:"epoch" doc:"16 hex digits; offsets count under it."`
	Offset       uint64            `json:"offset" doc:"Bytes of output so far."`
	Oldest       uint64            `json:"oldest_offset" doc:"The first byte of output that is still kept."`
	Viewers      int               `json:"viewers"`
	Memory       int64             `json:"memory_limit" doc:"Bytes that all its processes together may use; 0: no limit."`
	Pids         int               `json:"pids_limit" doc:"Processes and threads it may have; 0: no limit."`
	Usage        *Usage            `json:"usage" doc:"What it uses now; null when it has ended, and where it has no cgroup."`
	RerunOf      string            `json:"rerun_of,omitempty" doc:"The session that this one repeats; absent where it repeats none."`
	NoCheckpoint bool              `json:"no_checkpoint" doc:"Its output is never written to the disk: it cannot be read after a reboot."`
	Error        string            `json:"error,omitempty" doc:"Why it is lost or could not start, or that the kernel killed something of it for want of memory."`
}

// Usage is what a session's processes use together.
type Usage struct {
	MemoryBytes *int64 `json:"memory_bytes" doc:"null where the memory controller is not there."`
	Pids        *int64 `json:"pids" doc:"Processes and threads; null where the pids controller is not there."`
	CPUUs       *int64 `json:"cpu_us" doc:"Microseconds of processor time since it began."`
}

func toUsage(u *cgroup.Usage) *Usage {
	if u == nil {
		return nil
	}
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return &Usage{MemoryBytes: known(u.Memory), Pids: known(u.Pids), CPUUs: known(u.CPU.Microseconds())}
}

func toSession(in ptymgr.Info, ownerName string) Session {
	out := Session{
		ID: in.ID, Name: in.Name, State: in.State, Owner: in.Owner, OwnerName: ownerName,
		Argv: in.Argv, Cwd: in.Cwd, Labels: in.Labels, Cols: in.Cols, Rows: in.Rows, PID: in.PID,
		ExitCode: in.ExitCode, CreatedAt: stamp{in.CreatedAt}, StartedAt: stampPtr(in.StartedAt), EndedAt: stampPtr(in.EndedAt),
		Epoch: fmt.Sprintf("%016x", in.Epoch), Offset: in.Offset, Oldest: in.Oldest, Viewers: in.Viewers, Memory: in.MemoryLimit, Pids: in.PidsLimit, Error: in.Error,
		RerunOf: in.RerunOf, NoCheckpoint: in.NoCheckpoint,
	}
	if out.Argv == nil {
		out.Argv = []string{}
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	if in.Signal != "" {
		out.Signal = &in.Signal
	}
	return out
}

// CreateSession asks for a session.
type CreateSession struct {
	Argv         []string          `json:"argv" doc:"The program and its arguments. Without it, shell must be true." max:"1024"`
	Shell        bool              `json:"shell" doc:"Run the user's shell as a login shell."`
	Cwd          string            `json:"cwd" doc:"Absolute path; the default is the home of the daemon's user."`
	Env          map[string]string `json:"env" doc:"Added to the fixed base environment."`
	Cols         *uint16           `json:"cols" doc:"Default 80." min:"1"`
	Rows         *uint16           `json:"rows" doc:"Default 24." min:"1"`
	Name         string            `json:"name" doc:"Unique among the living sessions; one is made up when absent."`
	Labels       map[string]string `json:"labels"`
	OutputLimit  int64             `json:"output_limit" doc:"Bytes of output to keep, at most the configured limit."`
	Memory       *int64            `json:"memory_limit" doc:"Bytes that all its processes together may use; 0: no limit. The default is configured." min:"0"`
	Pids         *int              `json:"pids_limit" doc:"Processes and threads it may have; 0: no limit. The default is configured." min:"0"`
	NoCheckpoint bool              `json:"no_checkpoint" doc:"Never write the output to the disk: after a reboot nobody can read it."`
}

// PatchSession changes a session; absent members stay.
type PatchSession struct {
	Name   *string            `json:"name"`
	Labels *map[string]string `json:"labels" doc:"Replaces all labels."`
}

// Resize sets a session's size.
type Resize struct {
	Cols uint16 `json:"cols" req:"true"`
	Rows uint16 `json:"rows" req:"true"`
}

// Signal asks to deliver a signal.
type Signal struct {
	Signal string `json:"signal" req:"true" doc:"Such as INT, SIGTERM or 9; goes to the foreground process group."`
}

// CloseSession asks to end a session.
type CloseSession struct {
	GraceMS *int64 `json:"grace_ms" doc:"Time between TERM and KILL; the default is configured." min:"0" max:"300000"`
}

// Input is what to type: exactly one member.
type Input struct {
	Text   *string  `json:"text" doc:"Typed as it is."`
	Base64 *string  `json:"base64" doc:"Bytes that are no UTF-8 text."`
	Keys   []string `json:"keys" doc:"Named keys such as Enter, C-c, Up, M-x, F5, or single characters."`
}

// WaitFor says what to wait for; the first that holds ends the waiting.
type WaitFor struct {
	Exit      bool   `json:"exit" doc:"The session has ended."`
	Text      string `json:"text" doc:"The kept raw output matches this regular expression (RE2)."`
	From      uint64 `json:"from" doc:"Offset where text is looked for from."`
	IdleMS    *int64 `json:"idle_ms" doc:"No output for so long." min:"1" max:"86400000"`
	TimeoutMS *int64 `json:"timeout_ms" doc:"Default and most: 50000. Ask again from next." min:"0" max:"50000"`
}

// WaitResult says what ended the waiting.
type WaitResult struct {
	Matched    *string    `json:"matched" doc:"The condition that held; null on a timeout and when impossible." enum:"exit,text,idle"`
	Impossible bool       `json:"impossible" doc:"None of the conditions can hold any more."`
	Next       uint64     `json:"next" doc:"Give it as from to go on waiting without looking at output twice."`
	Session    Session    `json:"session"`
	Match      *TextMatch `json:"match,omitempty"`
}

// TextMatch is where text was found.
type TextMatch struct {
	Start uint64 `json:"start"`
	End   uint64 `json:"end"`
	Text  string `json:"text"`
}

// UserRef is who a principal is.
type UserRef struct {
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Role   auth.Role `json:"role" doc:"What may be done with this credential; at most the user's role."`
	Groups []string  `json:"groups"`
}

func toUserRef(p auth.Principal) UserRef {
	g := p.Groups
	if g == nil {
		g = []string{}
	}
	return UserRef{ID: p.UserID, Name: p.UserName, Role: p.Role, Groups: g}
}

// Login is a name and a password, or the secret of a login link.
type Login struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Link     string `json:"link" doc:"The part of a login link after #login=."`
}

// LoggedIn is a fresh login; the other half of it is the cookie.
type LoggedIn struct {
	Key       string  `json:"key" doc:"To be sent as the header Ptyd-Key, and in HELLO. Keep it in the origin's own storage."`
	User      UserRef `json:"user"`
	ExpiresAt stamp   `json:"expires_at"`
}

// NewLink asks for a login link.
type NewLink struct {
	User string `json:"user" doc:"Name of the user it logs in; oneself when absent. Others: admins only."`
}

// Link is a login link.
type Link struct {
	URL       string `json:"url"`
	ExpiresAt stamp  `json:"expires_at"`
}

// Ticket opens one connection.
type Ticket struct {
	Ticket    string `json:"ticket"`
	ExpiresAt stamp  `json:"expires_at"`
}

// Me is the caller.
type Me struct {
	User        UserRef       `json:"user"`
	Via         string        `json:"via" enum:"socket,token,cookie"`
	Build       string        `json:"build"`
	Version     string        `json:"version"`
	Permissions []auth.Action `json:"permissions"`
}

// NewPassword sets one's own password.
type NewPassword struct {
	Password string `json:"password" req:"true" doc:"Empty: no login by password any more."`
}

// User is a user.
type User struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	UID         *int      `json:"uid" doc:"The Unix user whose socket peers are this user."`
	Role        auth.Role `json:"role"`
	Disabled    bool      `json:"disabled"`
	HasPassword bool      `json:"has_password"`
	CreatedAt   stamp     `json:"created_at"`
}

func toUser(u auth.User) User {
	return User{ID: u.ID, Name: u.Name, UID: u.UID, Role: u.Role, Disabled: u.Disabled, HasPassword: u.HasPassword, CreatedAt: stamp{u.CreatedAt}}
}

// NewUser is what a user is made of.
type NewUser struct {
	Name     string    `json:"name" req:"true"`
	Role     auth.Role `json:"role" doc:"Default: operator."`
	UID      *int      `json:"uid"`
	Password string    `json:"password"`
}

// PatchUser changes a user; absent members stay.
type PatchUser struct {
	Disabled *bool      `json:"disabled"`
	Role     *auth.Role `json:"role"`
	Password *string    `json:"password" doc:"Empty: no login by password any more."`
}

// Group is a named set of users.
type Group struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Members   []string `json:"members"`
	CreatedAt stamp    `json:"created_at"`
}

func toGroup(g auth.Group) Group {
	m := g.Members
	if m == nil {
		m = []string{}
	}
	return Group{ID: g.ID, Name: g.Name, Members: m, CreatedAt: stamp{g.CreatedAt}}
}

// NewGroup is what a group is made of.
type NewGroup struct {
	Name string `json:"name" req:"true"`
}

// Token is a token without its secret.
type Token struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	UserID     string    `json:"user_id"`
	UserName   string    `json:"user_name"`
	Role       auth.Role `json:"role"`
	CreatedAt  stamp     `json:"created_at"`
	ExpiresAt  stamp     `json:"expires_at"`
	RevokedAt  *stamp    `json:"revoked_at"`
	LastUsedAt *stamp    `json:"last_used_at"`
}

func toToken(t auth.Token) Token {
	opt := func(t *time.Time) *stamp {
		if t == nil {
			return nil
		}
		return &stamp{*t}
	}
	return Token{
		ID: t.ID, Name: t.Name, UserID: t.UserID, UserName: t.UserName, Role: t.Role,
		CreatedAt: stamp{t.CreatedAt}, ExpiresAt: stamp{t.ExpiresAt}, RevokedAt: opt(t.RevokedAt), LastUsedAt: opt(t.LastUsedAt),
	}
}

// NewToken is what a token is made of.
type NewToken struct {
	Name string    `json:"name"`
	User string    `json:"user" doc:"Name of the user it is for; oneself when absent. Others: admins only."`
	Role auth.Role `json:"role" doc:"At most one's own; the default is as much as possible."`
	TTL  int64     `json:"ttl_s" doc:"Seconds until it expires; the default is 90 days." min:"0"`
}

// CreatedToken is a new token with its secret, which is shown this once.
type CreatedToken struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

// Status is the daemon.
type Status struct {
	Version       string         `json:"version"`
	Build         string         `json:"build"`
	PID           int            `json:"pid" doc:"Of the worker, which answers."`
	Keeper        *Keeper        `json:"keeper" doc:"The process that keeps the sessions; null where they end with the worker."`
	Worker        Worker         `json:"worker"`
	UptimeS       int64          `json:"uptime_s"`
	StartedAt     stamp          `json:"started_at"`
	Listen        []string       `json:"listen"`
	StateDir      string         `json:"state_dir"`
	Survives      Survives       `json:"survives"`
	UpgradeFailed string         `json:"upgrade_failed" doc:"Why the last upgrade was rolled back or not done to its end; empty when it was, or when none was asked for."`
	Sessions      map[string]int `json:"sessions" doc:"By state."`
	Viewers       int            `json:"viewers"`
	Limits        Limits         `json:"limits"`
	Cgroups       Cgroups        `json:"cgroups"`
	Disk          Disk           `json:"disk"`
	Checkpoints   Checkpoints    `json:"checkpoints" doc:"Sessions' output on the disk."`
	Notes         []string       `json:"notes" doc:"What an operator should know, for people."`
}

// Processes are the processes that make up the daemon.
type Processes struct {
	Keeper        *Keeper // nil: there is none
	Worker        Worker
	Survives      Survives
	UpgradeFailed string
}

// Keeper is the process that starts the worker anew and keeps what it holds.
type Keeper struct {
	PID       int    `json:"pid"`
	Version   string `json:"version" doc:"Empty where the keeper does not say."`
	UptimeS   int64  `json:"uptime_s" doc:"An upgrade does not begin it anew."`
	StartedAt *stamp `json:"started_at"`
	Path      string `json:"path" doc:"The binary that workers run."`
	Upgrades  int    `json:"upgrades" doc:"How often it went on as another binary."`
}

// Began sets when the keeper began.
func (k *Keeper) Began(t time.Time) {
	k.StartedAt, k.UptimeS = &stamp{t}, int64(time.Since(t)/time.Second)
}

// Worker is the daemon proper.
type Worker struct {
	PID            int    `json:"pid"`
	Version        string `json:"version"`
	UptimeS        int64  `json:"uptime_s"`
	StartedAt      stamp  `json:"started_at"`
	Generation     int    `json:"generation" doc:"Which worker this is since the keeper began; 0 without a keeper."`
	Restarts       int    `json:"restarts" doc:"How many of them were not asked for."`
	Adopted        int    `json:"adopted" doc:"Running sessions that this worker took over."`
	Ended          int    `json:"ended" doc:"Ended sessions whose output it took over."`
	Lost           int    `json:"lost" doc:"Sessions of which it found nothing."`
	Dropped        int    `json:"dropped" doc:"Stored descriptors that were of no use."`
	BytesRecovered int64  `json:"bytes_recovered" doc:"Output that was in flight when the worker before died."`
}

// Survives tells what sessions outlive, as this daemon was started.
type Survives struct {
	Worker  bool `json:"worker" doc:"The worker's death: a crash, SIGKILL, a hang."`
	Upgrade bool `json:"upgrade" doc:"An upgrade and a restart of the worker."`
	Keeper  bool `json:"keeper" doc:"The keeper's death and a restart of the service."`
}

// Binary is a ptyd.
type Binary struct {
	Version string `json:"version"`
	Build   string `json:"build"`
	Path    string `json:"path" doc:"Empty where it is not known."`
}

// AskedUpgrade is a request for another binary.
type AskedUpgrade struct {
	Path   string `json:"path" doc:"The binary; absent: the file by which the daemon was started, as it is now. Only the owner of the daemon's socket, and root, may name one: by the socket, without a token."`
	OneWay bool   `json:"one_way" doc:"Also when the database is migrated in a way after which the present release can't come back."`
}

// Upgrade is a change of the worker that has begun. It is done when the status
// tells of a greater generation; and, after an upgrade, of more upgrades of the
// keeper or of its failure.
type Upgrade struct {
	From       Binary     `json:"from"`
	To         Binary     `json:"to"`
	Migrates   *Migration `json:"migrates" doc:"null: the database stays as it is."`
	Generation int        `json:"generation" doc:"Of the worker that goes."`
	Upgrades   int        `json:"upgrades" doc:"Of the keeper so far."`
	Sessions   int        `json:"sessions" doc:"That run now."`
}

// Migration is a change of the database's schema.
type Migration struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Cgroups tells whether each session has a cgroup of its own.
type Cgroups struct {
	Path    *string           `json:"path" doc:"The daemon's own part of the tree; null where there is none: then what leaves a session's process tree and clears its environment survives the session's end."`
	Reason  string            `json:"reason,omitempty" doc:"Why there is none, or why a session went without."`
	Missing map[string]string `json:"missing" doc:"Controllers that limits need and that are not there, and why."`
}

// Limits are the limits in force.
type Limits struct {
	SessionsPerOwner int   `json:"sessions_per_owner"`
	SessionsTotal    int   `json:"sessions_total"`
	EndedPerOwner    int   `json:"ended_per_owner" doc:"Ended sessions that one user keeps."`
	OutputLimit      int64 `json:"output_limit" doc:"Bytes of output kept of one session."`
	OutputTotal      int64 `json:"output_total" doc:"Bytes of output kept in memory of ended sessions in all."`
	CheckpointTotal  int64 `json:"checkpoint_total" doc:"Bytes of output on the disk in all."`
	RemoveAfterS     int64 `json:"remove_after_s" doc:"0: ended sessions stay until they are removed."`
	GraceMS          int64 `json:"grace_ms"`
	SessionMemory    int64 `json:"session_memory" doc:"Of a session that asks for none; 0: no limit."`
	SessionPids      int   `json:"session_pids" doc:"Of a session that asks for none; 0: no limit."`
}

// Disk is the disk of the state directory.
type Disk struct {
	FreeBytes    uint64 `json:"free_bytes"`
	MinFreeBytes uint64 `json:"min_free_bytes"`
	OK           bool   `json:"ok" doc:"false: new sessions are refused."`
}

// Checkpoints tells how sessions' output gets to the disk.
type Checkpoints struct {
	On                bool   `json:"on" doc:"false: checkpoint_interval is 0."`
	IntervalMS        int64  `json:"interval_ms" doc:"The least time between two writes of a session's output."`
	MaxBytesPerSecond int64  `json:"max_bytes_per_second" doc:"Of output written, all sessions together; beyond it each keeps its newest."`
	Sessions          int    `json:"sessions" doc:"Of which there is output on the disk."`
	Bytes             int64  `json:"bytes" doc:"On the disk."`
	OK                bool   `json:"ok" doc:"false: none are written now. Running sessions go on."`
	Error             string `json:"error,omitempty" doc:"Why none are written."`
}

// AuditRow is one line of the audit log.
type AuditRow struct {
	ID        int64          `json:"id"`
	At        stamp          `json:"at"`
	Principal string         `json:"principal" doc:"Id of the user; empty when nobody known."`
	User      string         `json:"user" doc:"Name of the user."`
	Via       string         `json:"via" doc:"socket, token or cookie; empty when nobody known."`
	Action    string         `json:"action"`
	Target    string         `json:"target"`
	Detail    map[string]any `json:"detail"`
}

// Health is the answer of the probes.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what a user or a credential may do; see Table.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Approver Role = "approver"
	Agent    Role = "agent"
	Admin    Role = "admin"
)

// Roles lists all roles in the order of the table's columns.
func Roles() []Role { return []Role{Viewer, Operator, Approver, Agent, Admin} }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Action is one kind of request; every endpoint and every frame that changes
// something belongs to exactly one.
type Action string

// The actions.
const (
	MeRead        Action = "me.read"
	StatusRead    Action = "status.read"
	MetricsRead   Action = "metrics.read"
	EventsWatch   Action = "events.watch"
	TicketCreate  Action = "ticket.create"
	SessionList   Action = "session.list"
	SessionRead   Action = "session.read"
	SessionCreate Action = "session.create"
	SessionWrite  Action = "session.write"
	SessionClose  Action = "session.close"
	SessionDelete Action = "session.delete"
	TokenManage   Action = "token.manage"
	LinkCreate    Action = "link.create"
	UserManage    Action = "user.manage"
	GroupManage   Action = "group.manage"
	AuditRead     Action = "audit.read"
	DaemonUpgrade Action = "daemon.upgrade"
)

// Scope says whose things a row of the table is about. Admin reaches
// everybody's in every row.
type Scope string

// The scopes.
const (
	Own    Scope = "own" // the principal's own things
	Daemon Scope = "all" // the daemon, or everybody
)

// Row is one line of the table role × action.
type Row struct {
	Action Action
	Roles  []Role
	Scope  Scope
	About  string
}

// table is the only place where rights are stated. Allowed, the documentation
// (Markdown) and the tests of the endpoints are derived from it.
var table = []Row{
	{MeRead, []Role{Viewer, Operator, Approver, Agent, Admin}, Own, "see who one is and what one may do"},
	{StatusRead, []Role{Viewer, Operator, Approver, Agent, Admin}, Daemon, "see the daemon's version, limits and notes"},
	{MetricsRead, []Role{Viewer, Operator, Approver, Admin}, Daemon, "read the metrics"},
	{EventsWatch, []Role{Viewer, Operator, Approver, Admin}, Own, "be told that something changed"},
	{TicketCreate, []Role{Viewer, Operator, Approver, Admin}, Own, "get a ticket to open one connection"},
	{SessionList, []Role{Viewer, Operator, Approver, Admin}, Own, "list sessions"},
	{SessionRead, []Role{Viewer, Operator, Approver, Admin}, Own, "see a session, its output and its end"},
	{SessionCreate, []Role{Operator, Admin}, Own, "start a session"},
	{SessionWrite, []Role{Operator, Admin}, Own, "type, signal, resize, rename and label a session"},
	{SessionClose, []Role{Operator, Admin}, Own, "end a session"},
	{SessionDelete, []Role{Operator, Admin}, Own, "remove an ended session and its output"},
	{TokenManage, []Role{Operator, Admin}, Own, "make, list and revoke tokens"},
	{LinkCreate, []Role{Operator, Admin}, Own, "make a login link"},
	{UserManage, []Role{Admin}, Daemon, "add users, disable them, set roles and passwords"},
	{GroupManage, []Role{Admin}, Daemon, "add and remove groups and their members"},
	{AuditRead, []Role{Admin}, Daemon, "read the audit log"},
	{DaemonUpgrade, []Role{Admin}, Daemon, "go on with another binary, or a new worker; to name a binary takes the socket"},
}

// rights is the table as a set.
var rights = func() map[Role]map[Action]bool {
	m := make(map[Role]map[Action]bool)
	for _, row := range table {
		for _, r := range row.Roles {
			if m[r] == nil {
				m[r] = make(map[Action]bool)
			}
			m[r][row.Action] = true
		}
	}
	return m
}()

// Allowed reports whether role r may do a. What r may do it to (own things, or
// everybody's) is for Principal.CanSee.
func Allowed(r Role, a Action) bool { return rights[r][a] }

// Table returns a copy of the table role × action.
func Table() []Row {
	rows := slices.Clone(table)
	for i := range rows {
		rows[i].Roles = slices.Clone(rows[i].Roles)
	}
	return rows
}

// Actions returns what role r may do, in the order of the table.
func Actions(r Role) []Action {
	actions := []Action{}
	for _, row := range table {
		if slices.Contains(row.Roles, r) {
			actions = append(actions, row.Action)
		}
	}
	return actions
}

// LesserRole returns the greatest role that may do nothing which a or b may
// not: what a credential made for a may do once its user has role b.
func LesserRole(a, b Role) Role {
	switch {
	case !a.Valid() || !b.Valid():
		return "" // may do nothing
	case a == b:
		return a
	case a == Admin:
		return b
	case b == Admin:
		return a
	case a == Agent || b == Agent:
		return Agent
	default:
		return Viewer // of operator and approver neither contains the other
	}
}

// AtMost reports whether role a may do nothing that role b may not.
func AtMost(a, b Role) bool { return a.Valid() && LesserRole(a, b) == a }

// Markdown returns the table for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| action |")
	for _, r := range Roles() {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString(" whose | what |\n|---|")
	b.WriteString(strings.Repeat(":-:|", len(Roles())))
	b.WriteString("---|---|\n")
	for _, row := range table {
		fmt.Fprintf(&b, "| `%s` |", row.Action)
		for _, r := range Roles() {
			mark := " "
			if slices.Contains(row.Roles, r) {
				mark = "✓"
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		whose := "own; an admin: everybody's"
		if row.Scope == Daemon {
			whose = "the daemon"
		}
		fmt.Fprintf(&b, " %s | %s |\n", whose, row.About)
	}
	return b.String()
}

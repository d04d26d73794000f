package api

import (
	"net/http"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

const (
	get   = http.MethodGet
	post  = http.MethodPost
	put   = http.MethodPut
	patch = http.MethodPatch
	del   = http.MethodDelete
)

var (
	idParam     = param{name: "id", in: "path", kind: "string", doc: "Id or name of the session. One's own session of a name comes before another user's."}
	userParam   = param{name: "name", in: "path", kind: "string", doc: "Name of the user."}
	groupParam  = param{name: "name", in: "path", kind: "string", doc: "Name of the group."}
	memberParam = param{name: "user", in: "path", kind: "string", doc: "Name of the user."}
)

// routes is the table of endpoints.
func routes() []route {
	return []route{
		// Access
		{method: post, pattern: "/v1/login", open: login, tag: "access", status: 200,
			summary: "Log a browser in, by name and password or by a login link", op: jsonOp((*Server).login),
			headers: []param{{name: "Set-Cookie", kind: "string", doc: "The cookie; worth nothing without the key."}},
			codes:   []problem.Code{problem.Unauthenticated, problem.RateLimited}},
		{method: post, pattern: "/v1/logout", action: auth.MeRead, tag: "access", status: 204,
			summary: "End the web login this request came by", op: jsonOp((*Server).logout)},
		{method: post, pattern: "/v1/login-links", action: auth.LinkCreate, tag: "access", status: 201,
			summary: "Make a link that logs a browser in once", op: jsonOp((*Server).createLink),
			codes: []problem.Code{problem.NotFound, problem.Conflict}},
		{method: post, pattern: "/v1/tickets", action: auth.TicketCreate, tag: "access", status: 201,
			summary: "Make a ticket that opens one WebSocket within 30 seconds", op: jsonOp((*Server).createTicket)},
		{method: get, pattern: "/v1/me", action: auth.MeRead, tag: "access", status: 200,
			summary: "Who one is, and what one may do", op: jsonOp((*Server).me)},
		{method: put, pattern: "/v1/me/password", action: auth.TokenManage, tag: "access", status: 204,
			summary: "Set one's own password; other web logins end", op: jsonOp((*Server).setOwnPassword)},

		// Sessions
		{method: get, pattern: "/v1/sessions", action: auth.SessionList, tag: "sessions", status: 200,
			summary: "List sessions, the oldest first; an admin sees everybody's", op: jsonOp((*Server).listSessions),
			params: append([]param{
				{name: "state", in: "query", kind: "strings", enum: []string{"starting", "running", "exited", "lost"}, doc: "Only these states; may be repeated."},
				{name: "owner", in: "query", kind: "string", doc: "Only this user's: name or id."},
				{name: "name", in: "query", kind: "string", doc: "Only sessions of this name."},
				{name: "label", in: "query", kind: "strings", doc: "Only sessions with the label KEY=VALUE; may be repeated, all must match."},
			}, pagingParams...)},
		{method: post, pattern: "/v1/sessions", action: auth.SessionCreate, tag: "sessions", status: 201, alsoStatus: 200,
			summary: "Start a session", op: jsonOp((*Server).createSession),
			params:  []param{{name: "Idempotency-Key", in: "header", kind: "string", doc: "Repeating a request with its key gives the same session (status 200), however often it is sent."}},
			headers: []param{{name: "Idempotency-Replayed", kind: "string", doc: "true: the session was made by an earlier request with the key."}},
			codes: []problem.Code{problem.NameTaken, problem.Gone, problem.IdempotencyReuse, problem.ExecFailed,
				problem.LimitReached, problem.Unsupported}},
		{method: get, pattern: "/v1/sessions/{id}", action: auth.SessionRead, tag: "sessions", status: 200,
			summary: "Get a session", op: jsonOp((*Server).getSession), params: []param{idParam}, codes: []problem.Code{problem.NotFound}},
		{method: patch, pattern: "/v1/sessions/{id}", action: auth.SessionWrite, tag: "sessions", status: 200,
			summary: "Rename a session, or replace its labels", op: jsonOp((*Server).patchSession), params: []param{idParam},
			codes: []problem.Code{problem.NotFound, problem.NameTaken}},
		{method: del, pattern: "/v1/sessions/{id}", action: auth.SessionDelete, tag: "sessions", status: 204,
			summary: "Remove an ended session and its output", op: jsonOp((*Server).deleteSession),
			params: []param{idParam, {name: "force", in: "query", kind: "boolean", doc: "End it first if it runs."}},
			codes:  []problem.Code{problem.NotFound, problem.SessionRunning}},
		{method: post, pattern: "/v1/sessions/{id}/resize", action: auth.SessionWrite, tag: "sessions", status: 200,
			summary: "Set a session's size", op: jsonOp((*Server).resizeSession), params: []param{idParam},
			codes: []problem.Code{problem.NotFound, problem.SessionEnded}},
		{method: post, pattern: "/v1/sessions/{id}/signal", action: auth.SessionWrite, tag: "sessions", status: 204,
			summary: "Send a signal to the foreground process group", op: jsonOp((*Server).signalSession), params: []param{idParam},
			codes: []problem.Code{problem.NotFound, problem.SessionEnded}},
		{method: post, pattern: "/v1/sessions/{id}/close", action: auth.SessionClose, tag: "sessions", status: 200,
			summary: "End a session's whole process tree: TERM, grace, KILL; answers when it has ended", op: jsonOp((*Server).closeSession), params: []param{idParam},
			codes: []problem.Code{problem.NotFound}},
		{method: post, pattern: "/v1/sessions/{id}/run-again", action: auth.SessionCreate, tag: "sessions", status: 201, alsoStatus: 200,
			summary: "Start an ended or lost session once more, for its owner: the same program, directory, environment, size, name and labels", op: jsonOp((*Server).runAgain),
			params:  []param{idParam, {name: "Idempotency-Key", in: "header", kind: "string", doc: "Repeating a request with its key gives the same session (status 200), however often it is sent."}},
			headers: []param{{name: "Idempotency-Replayed", kind: "string", doc: "true: the session was made by an earlier request with the key."}},
			codes: []problem.Code{problem.NotFound, problem.SessionRunning, problem.Conflict, problem.NameTaken, problem.Gone, problem.IdempotencyReuse,
				problem.ExecFailed, problem.LimitReached}},
		{method: post, pattern: "/v1/sessions/{id}/input", action: auth.SessionWrite, tag: "sessions", status: 204,
			summary: "Type into a session; answers when all is in the terminal's queue", op: jsonOp((*Server).inputSession), params: []param{idParam},
			codes: []problem.Code{problem.NotFound, problem.SessionEnded}},
		{method: post, pattern: "/v1/sessions/{id}/wait", action: auth.SessionRead, tag: "sessions", status: 200,
			summary: "Wait until a session ends, prints something, or is quiet", op: jsonOp((*Server).waitSession), params: []param{idParam},
			codes: []problem.Code{problem.NotFound}},
		{method: get, pattern: "/v1/sessions/{id}/output", action: auth.SessionRead, tag: "sessions", status: 200,
			summary: "Read raw output", op: rawOp("application/octet-stream", (*Server).sessionOutput),
			params: []param{idParam,
				{name: "offset", in: "query", kind: "integer", doc: "Where to begin; negative: so many bytes before the end. Default 0."},
				{name: "limit", in: "query", kind: "integer", doc: "Most bytes to send, up to 1048576, which is the default."},
				{name: "wait", in: "query", kind: "duration", doc: "With nothing to send yet, wait so long for output: a duration such as 30s, or milliseconds; at most 50s."}},
			headers: []param{
				{name: "Ptyd-Offset", kind: "integer", doc: "Offset of the first byte sent; above the one asked for where older output is no longer kept."},
				{name: "Ptyd-Next-Offset", kind: "integer", doc: "Where to go on."},
				{name: "Ptyd-Oldest-Offset", kind: "integer", doc: "The first byte still kept."},
				{name: "Ptyd-Head-Offset", kind: "integer", doc: "Bytes of output so far."},
				{name: "Ptyd-Epoch", kind: "string", doc: "What the offsets count under."},
				{name: "Ptyd-Eof", kind: "boolean", doc: "true: the session has ended and this is its last output."}},
			codes: []problem.Code{problem.NotFound}},
		{method: get, pattern: "/v1/sessions/{id}/screen", action: auth.SessionRead, tag: "sessions", status: 200,
			summary: "Read the screen as a person sees it", op: jsonOp((*Server).sessionScreen),
			params: []param{idParam, {name: "format", in: "query", kind: "string", enum: []string{"text", "ansi", "cells"},
				doc: "text, the default: rows as text; ansi: with the member ansi, rows with their colours; cells: with the member cells, what each row is made of."}},
			codes: []problem.Code{problem.NotFound, problem.TooLarge}},

		// Users, groups, tokens
		{method: get, pattern: "/v1/users", action: auth.UserManage, tag: "users", status: 200,
			summary: "List users", op: jsonOp((*Server).listUsers), params: pagingParams},
		{method: post, pattern: "/v1/users", action: auth.UserManage, tag: "users", status: 201,
			summary: "Add a user", op: jsonOp((*Server).createUser), codes: []problem.Code{problem.NameTaken, problem.Conflict}},
		{method: patch, pattern: "/v1/users/{name}", action: auth.UserManage, tag: "users", status: 200,
			summary: "Disable or enable a user, set role or password", op: jsonOp((*Server).patchUser), params: []param{userParam},
			codes: []problem.Code{problem.NotFound, problem.Conflict}},
		{method: get, pattern: "/v1/groups", action: auth.GroupManage, tag: "users", status: 200,
			summary: "List groups", op: jsonOp((*Server).listGroups), params: pagingParams},
		{method: post, pattern: "/v1/groups", action: auth.GroupManage, tag: "users", status: 201,
			summary: "Add a group", op: jsonOp((*Server).createGroup), codes: []problem.Code{problem.NameTaken}},
		{method: del, pattern: "/v1/groups/{name}", action: auth.GroupManage, tag: "users", status: 204,
			summary: "Remove a group; its members stay", op: jsonOp((*Server).deleteGroup), params: []param{groupParam}, codes: []problem.Code{problem.NotFound}},
		{method: put, pattern: "/v1/groups/{name}/members/{user}", action: auth.GroupManage, tag: "users", status: 204,
			summary: "Put a user into a group", op: jsonOp((*Server).addMember), params: []param{groupParam, memberParam}, codes: []problem.Code{problem.NotFound}},
		{method: del, pattern: "/v1/groups/{name}/members/{user}", action: auth.GroupManage, tag: "users", status: 204,
			summary: "Take a user out of a group", op: jsonOp((*Server).removeMember), params: []param{groupParam, memberParam}, codes: []problem.Code{problem.NotFound}},
		{method: get, pattern: "/v1/tokens", action: auth.TokenManage, tag: "access", status: 200,
			summary: "List one's tokens; an admin sees everybody's", op: jsonOp((*Server).listTokens), params: pagingParams},
		{method: post, pattern: "/v1/tokens", action: auth.TokenManage, tag: "access", status: 201,
			summary: "Make a token", op: jsonOp((*Server).createToken), codes: []problem.Code{problem.NotFound, problem.NameTaken, problem.Conflict}},
		{method: del, pattern: "/v1/tokens/{id}", action: auth.TokenManage, tag: "access", status: 204,
			summary: "Revoke a token; what it opened and what was made with it (tokens, links, logins) ends too", op: jsonOp((*Server).revokeToken),
			params: []param{{name: "id", in: "path", kind: "string", doc: "Id or name of the token."}},
			codes:  []problem.Code{problem.NotFound, problem.Conflict}},

		// The daemon
		{method: get, pattern: "/v1/status", action: auth.StatusRead, tag: "daemon", status: 200,
			summary: "The daemon: version, limits, disk, sessions", op: jsonOp((*Server).status)},
		{method: post, pattern: "/v1/upgrade", action: auth.DaemonUpgrade, tag: "daemon", status: 202,
			summary: "Go on with another binary; sessions are kept", op: jsonOp((*Server).upgradeDaemon),
			codes: []problem.Code{problem.Conflict, problem.Unsupported}},
		{method: post, pattern: "/v1/restart", action: auth.DaemonUpgrade, tag: "daemon", status: 202,
			summary: "Go on with a new worker of the same binary; sessions are kept", op: jsonOp((*Server).restartDaemon),
			codes: []problem.Code{problem.Conflict, problem.Unsupported}},
		{method: get, pattern: "/v1/audit", action: auth.AuditRead, tag: "daemon", status: 200,
			summary: "Read the audit log, the oldest row first", op: jsonOp((*Server).listAudit),
			params: []param{
				{name: "after", in: "query", kind: "integer", doc: "Only rows with a greater id."},
				{name: "limit", in: "query", kind: "integer", doc: "Rows at most, 1 to 500; default 100."},
				{name: "cursor", in: "query", kind: "string", doc: "next_cursor of the page before; the same as after."}}},
		{method: get, pattern: "/v1/ws", open: upgrade, action: auth.SessionRead, tag: "sessions", status: 101,
			summary: "Attach to sessions over a WebSocket with the subprotocol ptyd.v1", op: rawOp("", (*Server).openSocket)},
		{method: get, pattern: "/v1/openapi.json", open: public, tag: "daemon", status: 200,
			summary: "This document", op: rawOp("application/json", (*Server).openapi)},
		{method: get, pattern: "/metrics", action: auth.MetricsRead, tag: "daemon", status: 200,
			summary: "Metrics for Prometheus", op: rawOp("text/plain", (*Server).metrics), codes: []problem.Code{problem.NotFound}},
		{method: get, pattern: "/healthz", open: public, tag: "daemon", status: 200,
			summary: "Whether the process answers", op: jsonOp((*Server).healthz)},
		{method: get, pattern: "/readyz", open: public, tag: "daemon", status: 200,
			summary: "Whether requests are served", op: jsonOp((*Server).readyz)},
	}
}

// problems are the codes that rt can answer with: those of its kind and its own.
func (rt *route) problems() []problem.Code {
	codes := []problem.Code{problem.InvalidArgument, problem.HostRefused, problem.Internal, problem.Unavailable}
	switch rt.open {
	case authenticated, upgrade:
		codes = append(codes, problem.Unauthenticated, problem.Forbidden, problem.OriginRefused)
	case login:
		codes = append(codes, problem.OriginRefused)
	}
	if rt.in != nil {
		codes = append(codes, problem.TooLarge)
	}
	if !isSafe(rt.method) {
		codes = append(codes, problem.DiskFull)
	}
	return append(codes, rt.codes...)
}

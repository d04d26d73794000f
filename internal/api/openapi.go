package api

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// document makes the OpenAPI 3.1 description of the table of routes.
func document(table []route, version, base string) object {
	sch := &schemas{components: object{}, requests: map[string]bool{}}
	paths := object{}
	for i := range table {
		rt := &table[i]
		item, ok := paths[rt.pattern].(object)
		if !ok {
			item = object{}
			paths[rt.pattern] = item
		}
		item[strings.ToLower(rt.method)] = operation(rt, sch)
	}
	// Every error response refers to it.
	sch.component(reflect.TypeFor[Problem](), false)
	return object{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": object{
			"title": "ptyd", "version": version,
			"summary": "Terminals that stay",
			"description": "Errors are problem+json with a stable `code`. Times are RFC 3339 in UTC with microseconds. " +
				"Lists come in pages: give `next_cursor` as `cursor`. Unknown members and parameters are errors.",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{object{"url": base + "/"}},
		"tags": []any{
			object{"name": "sessions", "description": "Terminals"},
			object{"name": "access", "description": "Logins, links, tickets and tokens"},
			object{"name": "users", "description": "Users and groups"},
			object{"name": "daemon", "description": "The daemon itself"},
		},
		"paths": paths,
		"components": object{
			"schemas": sch.components,
			"securitySchemes": object{
				"token":  object{"type": "http", "scheme": "bearer", "description": "Decides alone where it is given."},
				"cookie": object{"type": "apiKey", "in": "cookie", "name": "ptyd_…", "description": "One half of a web login; the name ends in 8 hex digits that differ by daemon."},
				"key":    object{"type": "apiKey", "in": "header", "name": keyHeader, "description": "The other half. Over a WebSocket it comes in HELLO."},
			},
		},
	}
}

func operation(rt *route, sch *schemas) object {
	op := object{
		"operationId": operationID(rt),
		"summary":     rt.summary,
		"tags":        []string{rt.tag},
		"responses":   responses(rt, sch),
		"security":    []any{},
	}
	switch rt.open {
	case authenticated, upgrade:
		op["security"] = []any{object{"token": []string{}}, object{"cookie": []string{}, "key": []string{}}}
		op["x-ptyd-action"] = string(rt.action)
		op["x-ptyd-roles"] = texts(rolesFor(rt.action))
		op["description"] = "Roles: " + strings.Join(texts(rolesFor(rt.action)), ", ") + "."
	}
	if len(rt.params) > 0 {
		params := []any{}
		for _, p := range rt.params {
			out := object{"name": p.name, "in": p.in, "description": p.doc, "schema": p.schema()}
			if p.in == "path" {
				out["required"] = true
			}
			params = append(params, out)
		}
		op["parameters"] = params
	}
	if rt.in != nil {
		op["requestBody"] = object{
			"required": needsBody(rt),
			"content":  object{"application/json": object{"schema": sch.of(rt.in, true)}},
		}
	}
	return op
}

// needsBody reports whether an empty body is not enough.
func needsBody(rt *route) bool {
	for i := range rt.in.NumField() {
		if rt.in.Field(i).Tag.Get("req") == "true" {
			return true
		}
	}
	return false
}

func responses(rt *route, sch *schemas) object {
	out := object{}
	for _, status := range []int{rt.status, rt.alsoStatus} {
		if status == 0 {
			continue
		}
		resp := object{"description": http.StatusText(status)}
		headers := object{}
		for _, h := range rt.headers {
			headers[h.name] = object{"description": h.doc, "schema": h.schema()}
		}
		if len(headers) > 0 {
			resp["headers"] = headers
		}
		switch {
		case rt.out != nil:
			resp["content"] = object{"application/json": object{"schema": sch.of(rt.out, false)}}
		case rt.content == "application/json":
			resp["content"] = object{rt.content: object{"schema": object{"type": "object"}}}
		case rt.content != "":
			resp["content"] = object{rt.content: object{}} // bytes as they are
		}
		out[strconv.Itoa(status)] = resp
	}
	byStatus := map[int][]string{}
	for _, code := range rt.problems() {
		st := kinds[code].status
		if !slices.Contains(byStatus[st], string(code)) {
			byStatus[st] = append(byStatus[st], string(code))
		}
	}
	for st, codes := range byStatus {
		out[strconv.Itoa(st)] = object{
			"description": "code: " + strings.Join(sorted(codes), ", "),
			"content":     object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
		}
	}
	return out
}

func (p param) schema() object {
	switch p.kind {
	case "integer", "boolean":
		return object{"type": p.kind}
	case "strings":
		items := object{"type": "string"}
		if p.enum != nil {
			items["enum"] = p.enum
		}
		return object{"type": "array", "items": items}
	default:
		return object{"type": "string"}
	}
}

// operationID is made of method and pattern: POST /v1/sessions/{id}/resize is
// post_sessions_id_resize.
func operationID(rt *route) string {
	words := []string{strings.ToLower(rt.method)}
	for _, w := range strings.FieldsFunc(rt.pattern, func(r rune) bool { return strings.ContainsRune("/{}.-", r) }) {
		if w != "v1" {
			words = append(words, w)
		}
	}
	return strings.Join(words, "_")
}

// rolesFor are the roles that may do a.
func rolesFor(a auth.Action) []auth.Role {
	var out []auth.Role
	for _, r := range auth.Roles() {
		if auth.Allowed(r, a) {
			out = append(out, r)
		}
	}
	return out
}

func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}

func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }

// Markdown lists the endpoints for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Endpoints\n\nThe daemon serves the whole description at `/v1/openapi.json`. This page is written by `go test ./internal/api -run TestDocumentation -update`.\n\n" +
		"| endpoint | what | action | roles | errors beyond the usual |\n|---|---|---|---|---|\n")
	table := routes()
	for i := range table {
		rt := &table[i]
		action, roles := "", "anybody"
		if rt.action != "" {
			action, roles = "`"+string(rt.action)+"`", strings.Join(texts(rolesFor(rt.action)), ", ")
		}
		var codes []string
		for _, c := range rt.codes {
			codes = append(codes, "`"+string(c)+"`")
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s | %s |\n", rt.method, rt.pattern, rt.summary, action, roles, strings.Join(codes, ", "))
	}
	b.WriteString("\n## Error codes\n\n| code | status | title |\n|---|---|---|\n")
	var codes []string
	for c := range kinds {
		codes = append(codes, string(c))
	}
	for _, c := range sorted(codes) {
		k := kinds[problem.Code(c)]
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", c, k.status, k.title)
	}
	b.WriteString("\n## Rights\n\n" + auth.Markdown())
	return b.String()
}

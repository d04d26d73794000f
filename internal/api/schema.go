package api

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// schemas makes JSON Schemas of Go types; named structs become components.
type schemas struct {
	components object
	requests   map[string]bool // names of types that are read, not written
}

// enums are the types whose values are a closed list.
var enums = map[reflect.Type]func() []string{
	reflect.TypeFor[auth.Role]():    func() []string { return texts(auth.Roles()) },
	reflect.TypeFor[ptymgr.State](): func() []string { return []string{"starting", "running", "exited", "lost"} },
	reflect.TypeFor[auth.Action](): func() []string {
		var out []string
		for _, row := range auth.Table() {
			out = append(out, string(row.Action))
		}
		return out
	},
	reflect.TypeFor[problem.Code](): func() []string {
		var out []string
		for code := range kinds {
			out = append(out, string(code))
		}
		return sorted(out)
	},
}

// of returns the schema of t. With request, members may be absent unless their
// tag says otherwise, and no others are allowed.
func (s *schemas) of(t reflect.Type, request bool) object {
	switch {
	case t == reflect.TypeFor[stamp]():
		return object{"type": "string", "format": "date-time", "examples": []string{"2026-01-02T03:04:05.000006Z"}}
	case enums[t] != nil:
		return object{"type": "string", "enum": enums[t]()}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(s.of(t.Elem(), request))
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem(), request)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem(), request)}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return s.component(t, request)
	}
	out := object{"type": "integer"}
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64 {
		out["minimum"] = 0
		if t.Bits() < 64 {
			out["maximum"] = uint64(1)<<t.Bits() - 1
		} else {
			out["maximum"] = uint64(math.MaxUint64)
		}
	}
	return out
}

func nullable(sch object) object {
	if t, ok := sch["type"].(string); ok {
		sch["type"] = []string{t, "null"}
		if e, ok := sch["enum"].([]string); ok {
			with := make([]any, 0, len(e)+1)
			for _, v := range e {
				with = append(with, v)
			}
			sch["enum"] = append(with, nil)
		}
		return sch
	}
	return object{"oneOf": []any{sch, object{"type": "null"}}}
}

// component adds struct t to the components and returns a reference to it.
func (s *schemas) component(t reflect.Type, request bool) object {
	name := typeTitle(t)
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, done := s.components[name]; done {
		if s.requests[name] != request {
			panic(fmt.Sprintf("api: %s is used both in a request and in a response", name))
		}
		return ref
	}
	s.requests[name] = request
	props, required := object{}, []string{}
	sch := object{"type": "object", "properties": props}
	s.components[name] = sch // before its members, which may refer to it
	for i := range t.NumField() {
		f := t.Field(i)
		member, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		optional := strings.Contains(opts, "omitempty")
		ft := f.Type
		if optional && ft.Kind() == reflect.Pointer {
			ft = ft.Elem() // absent, never null
		}
		props[member] = decorate(s.of(ft, request), f)
		if !request && !optional || f.Tag.Get("req") == "true" {
			required = append(required, member)
		}
	}
	if len(required) > 0 {
		sch["required"] = required
	}
	if request {
		sch["additionalProperties"] = false
	}
	return ref
}

// decorate adds what the field's tags say.
func decorate(sch object, f reflect.StructField) object {
	if doc := f.Tag.Get("doc"); doc != "" {
		sch["description"] = doc
	}
	if e := f.Tag.Get("enum"); e != "" {
		var values []any
		for _, v := range strings.Split(e, ",") {
			values = append(values, v)
		}
		if f.Type.Kind() == reflect.Pointer {
			values = append(values, nil)
		}
		sch["enum"] = values
	}
	low, high := "minimum", "maximum"
	if f.Type.Kind() == reflect.Slice {
		low, high = "minItems", "maxItems"
	}
	for tag, member := range map[string]string{"min": low, "max": high} {
		if v, ok := f.Tag.Lookup(tag); ok {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				panic(fmt.Sprintf("api: tag %s of %s: %v", tag, f.Name, err))
			}
			sch[member] = n
		}
	}
	return sch
}

// typeTitle is the name of a struct as a component: list[Session] is SessionList.
func typeTitle(t reflect.Type) string {
	name := t.Name()
	if base, arg, ok := strings.Cut(name, "["); ok && base == "list" {
		arg = strings.TrimSuffix(arg, "]")
		return arg[strings.LastIndexByte(arg, '.')+1:] + "List"
	}
	return name
}

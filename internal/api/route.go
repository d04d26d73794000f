package api

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ptyd/ptyd/internal/auth"
	"github.com/ptyd/ptyd/internal/problem"
)

// route is one endpoint. What the mux, the checks, the documents and the tests
// need to know about it stands here and nowhere else.
type route struct {
	method, pattern string
	open            openness
	action          auth.Action // what the role must allow; "" exactly when open is public
	tag, summary    string
	params          []param
	status          int            // of success
	alsoStatus      int            // a second status of success, 0 for none
	headers         []param        // of the response
	codes           []problem.Code // beyond those every route of its kind has
	op
}

// openness says who gets to a route.
type openness int

const (
	authenticated openness = iota
	public                 // no credential is looked at
	login                  // no credential, but the origin is checked
	upgrade                // a WebSocket: its credential may come in HELLO
)

// op is a handler with the types it takes and gives.
type op struct {
	in, out reflect.Type // nil: no body
	content string       // of a response that is not JSON
	handle  func(*Server, *call) error
}

// call is one request on its way through a handler.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	route  *route
	p      auth.Principal
	query  url.Values
	status int // of success; handlers may change it
}

// jsonOp makes an op of a function from the request's body to the response's.
func jsonOp[In, Out any](f func(*Server, *call, In) (Out, error)) op {
	o := op{in: bodyType[In](), out: bodyType[Out]()}
	o.handle = func(s *Server, c *call) error {
		var in In
		if o.in != nil {
			most := int64(maxBody)
			if c.route.open != authenticated {
				most = maxStrangerBody
			}
			if err := decodeBody(c.w, c.r, most, &in); err != nil {
				return err
			}
			setDeadlines(c.w, requestTime) // all has come; a stranger's time was shorter
			if err := checkTags(&in); err != nil {
				return err
			}
		}
		out, err := f(s, c, in)
		if err != nil {
			return err
		}
		if o.out == nil {
			c.w.WriteHeader(c.status)
			return nil
		}
		return c.reply(out)
	}
	return o
}

// rawOp makes an op of a function that writes the response itself.
func rawOp(content string, f func(*Server, *call) error) op {
	return op{content: content, handle: f}
}

func bodyType[T any]() reflect.Type {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[nothing]() {
		return nil
	}
	return t
}

func (c *call) reply(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(c.status)
	_, _ = c.w.Write(append(data, '\n')) // the client may be gone
	return nil
}

// checkTags holds the bounds that the fields' tags state, the same that the
// OpenAPI document shows.
func checkTags(in any) error {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if err := checkBounds(name, f, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func checkBounds(name string, f reflect.StructField, v reflect.Value) error {
	low, hasLow := f.Tag.Lookup("min")
	high, hasHigh := f.Tag.Lookup("max")
	if !hasLow && !hasHigh || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	var is int64
	switch {
	case v.CanInt():
		is = v.Int()
	case v.CanUint():
		is = int64(min(v.Uint(), math.MaxInt64))
	default:
		return nil // lengths have checks of their own, with better words
	}
	if n, err := strconv.ParseInt(low, 10, 64); hasLow && (err != nil || is < n) {
		return problem.Field(name, "must be at least %s", low)
	}
	if n, err := strconv.ParseInt(high, 10, 64); hasHigh && (err != nil || is > n) {
		return problem.Field(name, "must be at most %s", high)
	}
	return nil
}

// param is a parameter of a request, or a header of a response.
type param struct {
	name, in string // in: "path", "query" or "header"
	kind     string // "string", "integer", "boolean", "duration", "strings"
	enum     []string
	doc      string
}

// checkQuery refuses parameters that the route does not have: a misspelt
// filter must not be taken for none.
func (c *call) checkQuery() error {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return problem.New(problem.InvalidArgument, "the query is not well-formed").Because(err)
	}
	for name, values := range q {
		i := slices.IndexFunc(c.route.params, func(p param) bool { return p.in == "query" && p.name == name })
		if i < 0 {
			return problem.Field(clip(name), "unknown parameter")
		}
		if len(values) > 1 && c.route.params[i].kind != "strings" {
			return problem.Field(name, "given twice")
		}
	}
	c.query = q
	return nil
}

// number reads an integer parameter; def when it is absent.
func (c *call) number(name string, def, least, most int64) (int64, error) {
	s := c.query.Get(name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, problem.Field(name, "%q is not a whole number", clip(s))
	}
	if n < least || n > most {
		return 0, problem.Field(name, "must be from %d to %d", least, most)
	}
	return n, nil
}

// flag reads a boolean parameter.
func (c *call) flag(name string) (bool, error) {
	switch s := c.query.Get(name); s {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	default:
		return false, problem.Field(name, "%q is not true or false", clip(s))
	}
}

// span reads a duration such as 30s, or a number of milliseconds.
func (c *call) span(name string, most time.Duration) (time.Duration, error) {
	s := c.query.Get(name)
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if ms, nerr := strconv.ParseInt(s, 10, 64); nerr == nil {
		d, err = time.Duration(min(max(ms, -1), int64(most/time.Millisecond)+1))*time.Millisecond, nil
	}
	if err != nil {
		return 0, problem.Field(name, "%q is not a duration such as 30s, nor a number of milliseconds", clip(s))
	}
	if d < 0 || d > most {
		return 0, problem.Field(name, "must be from 0 to %s", most)
	}
	return d, nil
}

// paging reads limit and cursor.
func (c *call) paging() (limit int, cursor string, err error) {
	n, err := c.number("limit", 100, 1, 500)
	if err != nil {
		return 0, "", err
	}
	if cursor = c.query.Get("cursor"); cursor != "" && !idRE().MatchString(cursor) {
		return 0, "", problem.Field("cursor", "is none that was given out")
	}
	return int(n), cursor, nil
}

var pagingParams = []param{
	{name: "limit", in: "query", kind: "integer", doc: "Items on a page, 1 to 500; default 100."},
	{name: "cursor", in: "query", kind: "string", doc: "next_cursor of the page before."},
}

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ptyd/ptyd/internal/problem"
)

// maxBody bounds a request's body. The largest honest one carries pasted text.
const maxBody = 1 << 20

// maxStrangerBody bounds the body of somebody who has not said who they are:
// anybody can make the daemon hold it.
const maxStrangerBody = 16 << 10

// maxDepth bounds how deep JSON may nest; requests need three levels.
const maxDepth = 16

// decodeBody reads the request's JSON object into dst. Members that dst does
// not have, members given twice, and anything after the object are errors that
// name the member: a misspelt limit must not be taken for no limit.
func decodeBody(w http.ResponseWriter, r *http.Request, most int64, dst any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return problem.New(problem.TooLarge, "the body is larger than %d bytes", most)
		}
		return problem.New(problem.InvalidArgument, "the body could not be read").Because(err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	} else if ct, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || ct != "application/json" {
		// A page of another origin can send the other types without asking first.
		return problem.Field("Content-Type", "the body must be sent as application/json")
	}
	return decodeJSON(data, dst)
}

func decodeJSON(data []byte, dst any) error {
	if !utf8.Valid(data) || loneSurrogate(data) {
		// encoding/json would put U+FFFD in its place, and that would be typed.
		return problem.New(problem.InvalidArgument, "the body holds text that is not valid Unicode").
			WithHint("input of arbitrary bytes goes by its member base64")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := checkValue(dec, reflect.TypeOf(dst).Elem(), "", 0); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return problem.New(problem.InvalidArgument, "something follows the JSON value")
	}
	if err := json.Unmarshal(data, dst); err != nil {
		if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return problem.Field(te.Field, "must be %s, not %s", typeName(te.Type), te.Value)
		}
		return problem.New(problem.InvalidArgument, "the body is not what is expected here").Because(err)
	}
	return nil
}

// loneSurrogate reports whether an escape names half of a surrogate pair
// (RFC 8259, 8.2).
func loneSurrogate(data []byte) bool {
	unit := func(i int) (uint64, bool) {
		if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
			return 0, false
		}
		u, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 16)
		return u, err == nil
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if u, ok := unit(i); ok && u >= 0xd800 && u <= 0xdfff {
			low, ok := unit(i + 6)
			if u >= 0xdc00 || !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 6
		}
		i++ // an escaped backslash begins no escape
	}
	return false
}

// checkValue reads one value from dec and compares the member names with t's.
func checkValue(dec *json.Decoder, t reflect.Type, where string, depth int) error {
	if depth > maxDepth {
		return problem.Field(where, "the JSON nests too deep")
	}
	tok, err := dec.Token()
	if err != nil {
		return syntaxProblem(err)
	}
	if tok == nil && t != nil && t.Kind() != reflect.Pointer && depth > 0 {
		return problem.Field(where, "must not be null")
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth == 0 && tok != json.Delim('{') {
		return problem.New(problem.InvalidArgument, "the body must be a JSON object")
	}
	switch tok {
	case json.Delim('['):
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		for i := 0; dec.More(); i++ {
			if err := checkValue(dec, elem, fmt.Sprintf("%s[%d]", where, i), depth+1); err != nil {
				return err
			}
		}
		_, err = dec.Token()
	case json.Delim('{'):
		err = checkObject(dec, t, where, depth)
	}
	if err != nil {
		if _, ok := errors.AsType[*problem.Error](err); ok {
			return err
		}
		return syntaxProblem(err)
	}
	return nil
}

func checkObject(dec *json.Decoder, t reflect.Type, where string, depth int) error {
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		path := name
		if where != "" {
			path = where + "." + name
		}
		if seen[name] {
			return problem.Field(path, "given twice")
		}
		seen[name] = true
		var elem reflect.Type
		if t != nil {
			switch t.Kind() {
			case reflect.Map:
				elem = t.Elem()
			case reflect.Struct:
				f, ok := jsonField(t, name)
				if !ok {
					return problem.Field(path, "unknown member")
				}
				elem = f.Type
			}
		}
		if err := checkValue(dec, elem, path, depth+1); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Tag.Get("req") == "true" && !seen[name] {
			return problem.Field(name, "must be given")
		}
	}
	return nil
}

// jsonField finds the field of struct t whose JSON name is exactly name;
// encoding/json alone would also take it in other letter case.
func jsonField(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if n, _, _ := strings.Cut(f.Tag.Get("json"), ","); n == name && n != "" && n != "-" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func syntaxProblem(err error) error {
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		return problem.New(problem.InvalidArgument, "the body is not JSON: %v, at byte %d", se, se.Offset)
	}
	return problem.New(problem.InvalidArgument, "the body is not JSON: it ends early")
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64 {
			return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
		}
		return "a whole number"
	}
}

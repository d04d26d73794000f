package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Value is one setting as text. It has the methods that a flag needs.
type Value interface {
	Set(string) error
	String() string
	Type() string // "string", "bool", "int", "size", "duration" or "list"
}

func upper(name string) string  { return strings.ToUpper(name) }
func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

// text is a string; check may refuse it and returns its canonical form.
type text struct {
	p     *string
	check func(string) (string, error)
}

func (v text) Set(s string) error {
	s, err := v.check(s)
	if err != nil {
		return err
	}
	*v.p = s
	return nil
}
func (v text) String() string { return *v.p }
func (v text) Type() string   { return "string" }

type boolean struct{ p *bool }

func (v boolean) Set(s string) error {
	switch s {
	case "true", "1":
		*v.p = true
	case "false", "0":
		*v.p = false
	default:
		return fmt.Errorf("%q is not true or false", s)
	}
	return nil
}
func (v boolean) String() string   { return strconv.FormatBool(*v.p) }
func (v boolean) Type() string     { return "bool" }
func (v boolean) IsBoolFlag() bool { return true }

type integer struct {
	p        *int
	min, max int
}

func (v integer) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", s)
	}
	if n < v.min || n > v.max {
		return fmt.Errorf("%d is not between %d and %d", n, v.min, v.max)
	}
	*v.p = n
	return nil
}
func (v integer) String() string { return strconv.Itoa(*v.p) }
func (v integer) Type() string   { return "int" }

type size struct {
	p        *int64
	min, max int64
}

func (v size) Set(s string) error {
	n, err := ParseSize(s)
	if err != nil {
		return err
	}
	if n < v.min || n > v.max {
		return fmt.Errorf("%s is not between %s and %s", s, FormatSize(v.min), FormatSize(v.max))
	}
	*v.p = n
	return nil
}
func (v size) String() string { return FormatSize(*v.p) }
func (v size) Type() string   { return "size" }

type duration struct {
	p        *time.Duration
	min, max time.Duration
}

func (v duration) Set(s string) error {
	d, err := ParseDuration(s)
	if err != nil {
		return err
	}
	if d < v.min || d > v.max {
		return fmt.Errorf("%s is not between %s and %s", s, FormatDuration(v.min), FormatDuration(v.max))
	}
	*v.p = d
	return nil
}
func (v duration) String() string { return FormatDuration(*v.p) }
func (v duration) Type() string   { return "duration" }

// list is several strings, with commas between them in flags and the environment.
type list struct {
	p     *[]string
	check func(string) (string, error)
}

func (v list) Set(s string) error {
	if s == "" {
		return v.SetItems(nil)
	}
	return v.SetItems(strings.Split(s, ","))
}

// SetItems replaces the whole list.
func (v list) SetItems(items []string) error {
	out := make([]string, 0, len(items))
	for _, it := range items {
		it, err := v.check(strings.TrimSpace(it))
		if err != nil {
			return err
		}
		out = append(out, it)
	}
	*v.p = out
	return nil
}
func (v list) String() string { return strings.Join(*v.p, ",") }
func (v list) Type() string   { return "list" }

// Package lazy puts off what package variables would otherwise cost at the
// start of every process: each command line, keeper and worker pays for what is
// made before main, whether it is used or not. It has no goroutine; the lock is
// sync.Once's.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles text when it is first called. It
// panics there if text is no regular expression, as regexp.MustCompile does.
func Regexp(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

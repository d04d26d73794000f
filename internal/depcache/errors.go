package depcache

import (
	"errors"
	"fmt"
)

// ErrClosed is what Get returns once the cache is closed.
var ErrClosed = errors.New("the cache is closed")

// ErrRecursive is what Get returns to a build that needs its own result.
var ErrRecursive = errors.New("the build needs its own result")

// errGoexit is the outcome of a build that ended its goroutine.
var errGoexit = errors.New("the build ended its goroutine")

// ConflictError says that a key is in use with other settings.
type ConflictError struct {
	Key       any
	Have      any // the settings in use
	Requested any // the settings asked for
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v is in use with the settings %+v, not with %+v", e.Key, e.Have, e.Requested)
}

// PanicError is a panic of a build, handed to all who waited for it.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the build panicked: %v", e.Value)
}

// Unwrap returns the value that was panicked with where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

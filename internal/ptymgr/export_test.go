package ptymgr

import "golang.org/x/sys/unix"

// RefuseSignals lets the kernel refuse all signals until the returned function
// is called.
func RefuseSignals() (undo func()) {
	was := pidfdSignal
	pidfdSignal = func(int, unix.Signal) error { return unix.EPERM }
	return func() { pidfdSignal = was }
}

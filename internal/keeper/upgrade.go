package keeper

import (
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// upgrade begins to go on with the binary at path. An upgrade is the way of a
// crash: the worker goes, the next one takes the same descriptors.
//
//	asked      worker gets SIGTERM
//	gone       worker of the new binary starts: the trial
//	READY      the keeper executes the new binary itself (reexec)
//	dead before READY, or too late: the old binary again, told why
func (k *keeper) upgrade(path string) error {
	if err := k.settled(); err != nil {
		return err
	}
	if err := executable(path); err != nil {
		return err
	}
	k.log.Info("upgrade", zap.String("to", path))
	k.trial, k.failed = path, ""
	k.ask(askedGo, unix.SIGTERM, k.t.stop)
	return nil
}

// restart goes on with a new worker of the same binary.
func (k *keeper) restart() error {
	if err := k.settled(); err != nil {
		return err
	}
	k.ask(askedGo, unix.SIGTERM, k.t.stop)
	return nil
}

// settled tells whether the worker that lives can be replaced.
func (k *keeper) settled() error {
	if k.goal != goalServe || !k.w.ready || k.w.asked != askedNothing || k.w.killed != "" || k.trial != "" || !k.due[dueReexec].IsZero() {
		return errBusy
	}
	return nil
}

// rollBack goes back to the old binary after a trial that failed.
func (k *keeper) rollBack(how string) {
	k.log.Error("the new binary did not come up; the old one goes on", zap.String("binary", k.trial), zap.String("how", how))
	k.failed = k.trial + ": " + how
	k.trial = ""
	k.start()
}

// adopt makes the trial's binary the one.
func (k *keeper) adopt() {
	k.image = image{path: k.trial}
	k.trial = ""
	k.due.in(dueReexec, 0)
}

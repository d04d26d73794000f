package keeper

import (
	"errors"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/ptyd/ptyd/internal/notifyproto"
)

// receive takes all notices that have arrived.
func (k *keeper) receive() {
	for {
		m, cred, ok, err := k.server.TryReceive()
		switch {
		case errors.Is(err, notifyproto.ErrMalformed):
			k.log.Warn("a notice was dropped", zap.Int32("pid", cred.Pid), zap.Error(err))
		case err != nil:
			k.log.Error("no notice can be received", zap.Error(err))
			return
		case !ok:
			return
		case k.w == nil || int(cred.Pid) != k.w.pid:
			k.log.Warn("a stranger's notice was dropped", zap.Int32("pid", cred.Pid), zap.Uint32("uid", cred.Uid))
			m.Close()
		default:
			k.notice(&m)
			m.Close() // what nobody has taken
		}
	}
}

// notice does what one datagram of the worker says.
func (k *keeper) notice(m *notifyproto.Message) {
	v := m.Vars
	switch {
	case v["FDSTORE"] == "1":
		k.keep(v["FDNAME"], m)
	case v["FDSTOREREMOVE"] == "1":
		name := v["FDNAME"]
		k.store.remove(name)
		if notifyproto.ValidName(name) && name != nameExits {
			k.up.send(notifyproto.Encode("FDSTOREREMOVE=1", "FDNAME="+name))
		}
	case v["BARRIER"] == "1":
		// All before it is done here. Above it is, when the manager has closed
		// its copy too.
		if k.up != nil && len(m.FDs) == 1 {
			k.up.send(notifyproto.Encode("BARRIER=1"), m.FDs...)
		}
	case v[notifyproto.KeyUpgrade] != "":
		answer(m, k.upgrade(v[notifyproto.KeyUpgrade]))
	case v[notifyproto.KeyRestart] == "1":
		answer(m, k.restart())
	case v[notifyproto.KeyStatus] == "1":
		k.tell(m)
	}
	k.life(v)
}

// answer tells a refusal to whoever asked.
func answer(m *notifyproto.Message, err error) {
	if err != nil && len(m.FDs) == 1 {
		_, _ = unix.Write(m.FDs[0], []byte(err.Error()))
	}
}

// keep stores a notice's descriptors.
func (k *keeper) keep(name string, m *notifyproto.Message) {
	if len(m.FDs) == 0 {
		k.log.Warn("a notice to keep descriptors brought none", zap.String("name", name))
		return
	}
	// Above first: add closes what is there already.
	if err := k.store.check(name, len(m.FDs)); err != nil {
		k.log.Error("descriptors were not kept", zap.Error(err))
		return
	}
	k.up.send(notifyproto.Encode("FDSTORE=1", "FDNAME="+name, "FDPOLL=0"), m.FDs...)
	k.store.add(name, m.FDs)
	m.FDs = nil
}

// life follows the worker's state.
func (k *keeper) life(v map[string]string) {
	if s, ok := v["STATUS"]; ok {
		k.up.send(notifyproto.Encode("STATUS=" + s))
	}
	if v["RELOADING"] == "1" {
		k.up.send(notifyproto.Encode("RELOADING=1", "MONOTONIC_USEC="+v["MONOTONIC_USEC"]))
	}
	if us, err := strconv.ParseInt(v["EXTEND_TIMEOUT_USEC"], 10, 64); err == nil && us > 0 && !k.w.ready && k.w.asked == askedNothing {
		most := k.w.started.Add(k.t.startMost)
		if t := time.Now().Add(time.Duration(min(us, k.t.startMost.Microseconds())) * time.Microsecond); t.After(k.due[dueReady]) {
			k.due[dueReady] = t
		}
		if k.due[dueReady].After(most) {
			k.due[dueReady] = most
		}
	}
	if v["READY"] == "1" {
		k.workerReady()
	}
	if k.o.WatchdogEvery > 0 && k.w.ready && k.w.asked == askedNothing && k.w.killed == "" && (v["READY"] == "1" || v["WATCHDOG"] == "1") {
		k.due.in(dueSign, k.o.WatchdogEvery)
	}
}

// workerReady notes that the worker serves.
func (k *keeper) workerReady() {
	if k.w.killed != "" {
		return // too late: it gets killed
	}
	k.up.send(notifyproto.Encode("READY=1"))
	if k.w.ready {
		return // it has read its configuration again
	}
	k.w.ready = true
	k.due.clear(dueReady)
	k.backoff = 0
	k.log.Info("worker ready", zap.Int("pid", k.w.pid), zap.Duration("after", time.Since(k.w.started)))
	if k.trial != "" {
		k.adopt()
	}
}

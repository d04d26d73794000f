package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
)

// images checks which file both processes of the service execute.
func (m *machine) images(want string) {
	m.t.Helper()
	for what, pid := range map[string]string{"keeper": m.keeper(), "worker": strconv.Itoa(m.daemon().Worker())} {
		if got := strings.TrimSpace(m.do("readlink", "/proc/"+pid+"/exe")); got != want {
			m.t.Errorf("the %s executes %s, want %s", what, got, want)
		}
	}
}

// active checks that the service is as if nothing had happened to it.
func (m *machine) active(keeper string) {
	m.t.Helper()
	if m.keeper() != keeper || m.show("ActiveState") != "active" || m.show("NRestarts") != "0" {
		m.t.Errorf("the service is %s with keeper %s and %s restarts, want active, %s, 0",
			m.show("ActiveState"), m.keeper(), m.show("NRestarts"), keeper)
	}
}

// An upgrade under all restrictions of the unit: a binary that dies before it is
// ready leaves everything as it was, another one is what both processes execute
// then, and systemd notices neither and keeps what it kept.
func testServiceUpgrade(m *machine) {
	t := m.t
	const old, next, bad = "/usr/local/bin/ptyd", "/usr/local/bin/ptyd-next", "/usr/local/bin/ptyd-bad"
	binary, err := nextBinary()
	if err != nil {
		t.Fatal(err)
	}
	install(t, binary, m.path(next))
	// It is executed in the machine, where the old one has another path than here.
	impostor(t, old, m.path(bad), `case "$*" in *--worker*) echo no luck >&2; exit 3;; esac`)

	m.do("systemctl", "reset-failed", "ptyd") // the counter of restarts
	m.do("systemctl", "restart", "ptyd")
	c := m.counter()
	keeper := m.keeper()
	before := c.d.session(c.id).Offset
	r := m.try("ptyd", "upgrade", "--json", bad)
	if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "exited with status 3") || !strings.Contains(r.Stderr, bad) {
		t.Errorf("an upgrade to one that dies: %v", r)
	}
	if st := c.d.status(); st.Worker.Adopted != 1 || st.Keeper.Upgrades != 0 || !strings.Contains(st.UpgradeFailed, "exited with status 3") {
		t.Errorf("after a rollback: %+v, keeper %+v", st, st.Keeper)
	}
	m.active(keeper)
	m.images(old)
	c.goesOn()

	var u upgraded
	r = m.try("ptyd", "upgrade", "--json", next)
	if err := json.Unmarshal([]byte(r.Stdout), &u); r.Code != 0 || err != nil {
		t.Fatalf("upgrade: %v\n%s", r, tailOf(m.log(), 8<<10))
	}
	if u.To.Version != "e2e-next" || u.Adopted != 1 || u.Lost != 0 || strconv.Itoa(u.Keeper) != keeper {
		t.Errorf("upgrade said %+v", u)
	}
	m.active(keeper)
	m.images(next)
	c.goesOn()
	if now := c.d.session(c.id).Offset; now <= before {
		t.Errorf("the session's offset was %d and is %d", before, now)
	}
	m.do("systemctl", "reload", "ptyd")
	m.active(keeper)

	// What systemd keeps is whole, and it starts what its unit names.
	m.killKeeper()
	c.goesOn()
	m.images(old)
	c.done()
}

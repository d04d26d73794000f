package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUnderSystemd runs the shipped binary as a service of a real systemd. The
// parts share one machine and build on each other.
func TestUnderSystemd(t *testing.T) {
	t.Parallel()
	m := boot(t)
	var hung *hungWorker
	for _, part := range []struct {
		name string
		run  func(*machine)
	}{
		{"install", testServiceInstall},
		{"worker hangs", func(m *machine) { hung = startHung(m) }},
		{"restrictions", testServiceRestrictions},
		{"configuration", testServiceConfiguration},
		{"restart", testServiceRestart},
		{"manager", testServiceManager},
		{"worker killed", testServiceWorkerKilled},
		{"keeper killed", testServiceKeeperKilled},
		{"keeper hangs", testServiceKeeperHangs},
		{"upgrade", testServiceUpgrade},
		{"store too small", testServiceStoreTooSmall},
		{"stop", testServiceStop},
		{"account", testServiceAccount},
		{"relaxed", testServiceRelaxed},
		{"worker hung", func(m *machine) { hung.replaced(m) }},
		{"uninstall", testServiceUninstall},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(m.in(t)) }) {
			t.FailNow() // what follows builds on it
		}
	}
}

// daemon is the service's, as other tests use theirs.
func (m *machine) daemon() *Daemon {
	return &Daemon{StateDir: m.path("var/lib/" + m.unit), Binary: shippedBinary, t: m.t, log: m.path("var/log/" + m.unit + ".log")}
}

// keeper is the service's main process, as seen in the machine.
func (m *machine) keeper() string {
	m.t.Helper()
	return m.show("MainPID")
}

// signal sends a signal to a process of the machine.
func (m *machine) signal(sig, pid string) {
	m.t.Helper()
	m.do("kill", "-"+sig, pid)
}

// dropIn changes the unit; an empty text takes it back.
func (m *machine) dropIn(text string) {
	m.t.Helper()
	file := m.path("run/systemd/system/ptyd.service.d/part.conf")
	if text == "" {
		if err := os.Remove(file); err != nil {
			m.t.Fatal(err)
		}
	} else {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			m.t.Fatal(err)
		}
		writeFile(m.t, file, text)
	}
	m.do("systemctl", "daemon-reload")
}

// counting is a session that writes numbers, one a line, until it is told to end.
type counting struct {
	m    *machine
	d    *Daemon
	id   string
	stop string // the file that ends it
}

func (m *machine) counter() *counting {
	m.t.Helper()
	c := &counting{m: m, d: m.daemon()}
	c.stop = "/srv/stop-" + newClientID(newRand(m.t))
	s := c.d.run("bash", "-c", fmt.Sprintf("i=0; while [ ! -e %s ]; do echo $i; i=$((i+1)); read -t 0.005 < <(:) ; done; exit 7", c.stop))
	c.id = s.ID
	c.d.waitText(c.id, `\b3\b`)
	return c
}

// goesOn waits until the session has written more than it has now.
func (c *counting) goesOn() {
	c.m.t.Helper()
	before := c.d.session(c.id).Offset
	eventually(c.m.t, 20*time.Second, "the session writes on", func() bool { return c.d.session(c.id).Offset > before })
}

// done ends the session and checks what it wrote and how it ended.
func (c *counting) done() {
	t := c.m.t
	t.Helper()
	c.goesOn()
	writeFile(t, c.m.path(c.stop), "")
	s := c.d.waitState(c.id, "exited")
	want := "status 7"
	if s.exit() != want && !(s.exit() == "exited, unknown" && !kernelSince(6, 15)) {
		t.Errorf("the session ended with %s, want %s", s.exit(), want)
	}
	n := 0
	for line := range strings.Lines(string(c.d.output(c.id, 0))) {
		if line != strconv.Itoa(n)+"\r\n" {
			t.Fatalf("line %d is %q", n, line)
		}
		n++
	}
	t.Logf("%d lines without a gap", n)
	c.d.call(request{Method: "DELETE", Path: "/v1/sessions/" + c.id})
}

// kernelSince tells whether the kernel is that new.
func kernelSince(major, minor int) bool {
	var u unix.Utsname
	var a, b int
	if unix.Uname(&u) != nil {
		return false
	}
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return a > major || a == major && b >= minor
}

// install is `ptyd service install` with what it says.
func (m *machine) install(args ...string) (said struct {
	Systemd int
	Changed bool
	Listen  []string
	Login   string
	Files   []struct{ Path, Action string }
}) {
	m.t.Helper()
	out := m.do(append([]string{"ptyd", "service", "install", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	return said
}

// Installing writes what this systemd knows, starts the service, and does
// nothing the second time.
func testServiceInstall(m *machine) {
	t := m.t
	if r := m.try("ptyd", "service", "status"); r.Code != 3 || !strings.Contains(r.Stdout, "not installed") {
		t.Errorf("status before: %v", r)
	}
	if out := m.do("ptyd", "service", "install", "--dry-run"); !strings.Contains(out, "##### write /etc/systemd/system/ptyd.service\n") {
		t.Errorf("dry run: %s", out)
	}
	if _, err := os.Stat(m.path("etc/systemd/system/ptyd.service")); err == nil {
		t.Error("a dry run has written the unit")
	}
	said := m.install("--workspace", "/mnt")
	if !said.Changed || len(said.Listen) == 0 || said.Login != "ptyd login-link" {
		t.Errorf("install said %+v", said)
	}
	_, err := os.Stat(m.path("etc/systemd/system/ptyd.service.d/10-ptyd-version.conf"))
	if (err == nil) != (said.Systemd >= 254) {
		t.Errorf("drop-in for systemd 254 and this is %d: %v", said.Systemd, err)
	}
	if m.show("ActiveState") != "active" || m.show("UnitFileState") != "enabled" {
		t.Errorf("the service is %s, %s", m.show("ActiveState"), m.show("UnitFileState"))
	}
	keeper := m.keeper()
	if said := m.install(); said.Changed || m.keeper() != keeper {
		t.Errorf("again: %+v, keeper %s and then %s", said, keeper, m.keeper())
	}
	// The units as they are here, with all drop-ins.
	for _, unit := range []string{"ptyd.service", "ptyd-tmp.service"} {
		r := m.try("systemd-analyze", "verify", "--man=no", unit)
		if r.Code != 0 || strings.Contains(r.Stderr, unit) {
			t.Errorf("verify %s: %v", unit, r)
		}
	}
	if r := m.try("systemd-analyze", "security", "--no-pager", "--threshold=25", "ptyd.service"); r.Code != 0 {
		t.Errorf("the unit is more exposed than 2.5: %s", tailOf(r.Stdout, 200))
	}
	// Somebody's own unit is not lost.
	unit := m.path("etc/systemd/system/ptyd.service")
	ours := string(readFile(t, unit))
	writeFile(t, unit, ours+"# mine\n")
	if r := m.try("ptyd", "service", "install", "--json"); r.Code != 125 || !strings.Contains(r.Stderr, `"code":"conflict"`) {
		t.Errorf("over somebody's own unit: %v", r)
	}
	m.install("--force")
	if string(readFile(t, unit)) != ours {
		t.Error("--force did not replace the unit")
	}
	if r := m.try("runuser", "-u", "agent", "--", "ptyd", "service", "install"); r.Code != 125 || !strings.Contains(r.Stderr, "needs root") {
		t.Errorf("as a user: %v", r)
	}
}

// The unit forbids and allows what the documentation says, and /tmp is the
// sessions' own for as long as the service lasts.
func testServiceRestrictions(m *machine) {
	d := m.daemon()
	says := func(script, want string) {
		m.t.Helper()
		s := d.run("bash", "-c", script)
		d.waitState(s.ID, "exited")
		if out := strings.TrimSpace(string(d.output(s.ID, 0))); !strings.Contains(out, want) {
			m.t.Errorf("%s\nsays %q, want %q", script, out, want)
		}
		d.call(request{Method: "DELETE", Path: "/v1/sessions/" + s.ID})
	}
	const agent = "setpriv --reuid agent --regid agent --init-groups bash -c '"
	says("touch /usr/local/x 2>&1; touch /etc/x", "/etc/x': Read-only file system")
	says("touch /mnt/x /root/x /srv/x && echo written", "written")
	says("touch /home/agent/x", "Permission denied") // root without its powers
	says(agent+"touch /home/agent/x && id -un'", "agent")
	says(agent+"kill -0 1; ls -d /proc/1'", "cannot access '/proc/1'")
	says("grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1")
	says("unshare --mount true", "Operation not permitted")
	says("nice -n 5 true", "cannot set niceness")
	says("ls /dev/kmsg", "No such file")
	says("tty; echo here >/tmp/mark; ulimit -n", "1024")
	says("cat /tmp/mark", "here")
	if _, err := os.Stat(m.path("tmp/mark")); err == nil {
		m.t.Error("a session's /tmp is everybody's")
	}
	m.do("systemctl", "restart", "ptyd")
	says("cat /tmp/mark", "here")
}

// The machine's configuration is read, at the start and by `systemctl reload`.
func testServiceConfiguration(m *machine) {
	t, d := m.t, m.daemon()
	if err := os.MkdirAll(m.path("etc/ptyd"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := m.path("etc/ptyd/config.toml")
	writeFile(t, config, "sessions_total = 77\n")
	if err := os.Chmod(config, 0o644); err != nil { // for the part about an account too
		t.Fatal(err)
	}
	keeper, worker := m.keeper(), d.Worker()
	m.do("systemctl", "reload", "ptyd")
	limit := func() string {
		var st struct{ Limits map[string]any }
		d.get("/v1/status", &st)
		return fmt.Sprint(st.Limits)
	}
	eventually(t, 10*time.Second, "the configuration is read again", func() bool { return strings.Contains(limit(), "77") })
	if m.keeper() != keeper || d.Worker() != worker {
		t.Error("a reload has replaced a process")
	}
	m.do("systemctl", "restart", "ptyd")
	if !strings.Contains(limit(), "77") {
		t.Errorf("after a restart the limits are %s", limit())
	}
}

// A restart of the service keeps its sessions, and refuses no connection.
func testServiceRestart(m *machine) {
	c := m.counter()
	for range 3 {
		keeper := m.keeper()
		m.do("systemctl", "restart", "ptyd")
		if m.keeper() == keeper {
			m.t.Fatal("the keeper is the same after a restart")
		}
		c.goesOn()
	}
	c.done()
}

// systemd itself reads its units again, and executes itself anew.
func testServiceManager(m *machine) {
	c := m.counter()
	keeper := m.keeper()
	m.do("systemctl", "daemon-reload")
	c.goesOn()
	m.do("systemctl", "daemon-reexec")
	eventually(m.t, 20*time.Second, "systemd answers again", m.up)
	c.goesOn()
	if m.keeper() != keeper {
		m.t.Error("the keeper was replaced")
	}
	// What systemd keeps came over too.
	m.do("systemctl", "restart", "ptyd")
	c.done()
}

// The worker's death is the keeper's business alone.
func testServiceWorkerKilled(m *machine) {
	c := m.counter()
	keeper := m.keeper()
	for range 3 {
		worker := c.d.Worker()
		m.signal("KILL", strconv.Itoa(worker))
		eventually(m.t, 20*time.Second, "another worker answers", func() bool { now := c.d.tryWorker(); return now != 0 && now != worker })
	}
	if m.keeper() != keeper || m.show("NRestarts") != "0" {
		m.t.Errorf("keeper %s and then %s, %s restarts", keeper, m.keeper(), m.show("NRestarts"))
	}
	c.done()
}

// tryWorker is the worker that answers; 0: none.
func (d *Daemon) tryWorker() int {
	var st status
	if a, err := d.tryCall(request{Path: "/v1/status"}); err != nil || a.Status != 200 || a.decode(&st) != nil {
		return 0
	}
	return st.Worker.PID
}

// The keeper's death is survived by what systemd keeps.
func testServiceKeeperKilled(m *machine) {
	t := m.t
	c := m.counter()
	short := c.d.run("bash", "-c", "read; exit 9")
	for i := range 3 {
		m.killKeeper()
		c.goesOn()
		if i == 0 { // one that ends under another keeper than its parent
			c.d.input(short.ID, "\n")
			if s := c.d.waitState(short.ID, "exited"); s.exit() != "status 9" && kernelSince(6, 15) {
				t.Errorf("the session ended with %s, want status 9", s.exit())
			}
		}
	}
	if st := c.d.status(); st.Worker.Adopted != 1 {
		t.Errorf("%d sessions adopted, want 1", st.Worker.Adopted)
	}
	c.done()
}

// killKeeper kills the keeper and returns when another one serves.
func (m *machine) killKeeper() {
	m.t.Helper()
	keeper := m.keeper()
	m.signal("KILL", keeper)
	m.anotherKeeper(keeper)
}

func (m *machine) anotherKeeper(than string) {
	m.t.Helper()
	eventually(m.t, 30*time.Second, "another keeper serves", func() bool {
		return m.show("ActiveState") == "active" && m.keeper() != than && m.daemon().ready()
	})
}

// A keeper that does nothing any more is replaced by systemd.
func testServiceKeeperHangs(m *machine) {
	m.dropIn("[Service]\nWatchdogSec=2s\n")
	m.do("systemctl", "restart", "ptyd")
	c := m.counter()
	keeper := m.keeper()
	m.signal("STOP", keeper)
	m.anotherKeeper(keeper)
	m.dropIn("")
	m.do("systemctl", "restart", "ptyd")
	c.done()
}

// hungWorker is a second service whose worker does nothing any more. The keeper
// notices after 20 s, in which other parts of the test run.
type hungWorker struct {
	c              *counting
	worker, keeper string
}

func startHung(m *machine) *hungWorker {
	m = m.in(m.t)
	m.unit = "ptyd-hung"
	text := string(readFile(m.t, m.path("etc/systemd/system/ptyd.service")))
	text = strings.NewReplacer("StateDirectory=ptyd", "StateDirectory=ptyd-hung", "ptyd serve", "ptyd serve --listen 127.0.0.1:0",
		"[Service]\n", "[Service]\nStandardOutput=append:/var/log/ptyd-hung.log\nStandardError=append:/var/log/ptyd-hung.log\n").Replace(text)
	writeFile(m.t, m.path("etc/systemd/system/ptyd-hung.service"), text)
	m.do("systemctl", "daemon-reload")
	m.do("systemctl", "start", "ptyd-hung")
	h := &hungWorker{c: m.counter(), keeper: m.keeper()}
	h.worker = strconv.Itoa(h.c.d.Worker())
	m.signal("STOP", h.worker)
	return h
}

// replaced waits until the keeper has replaced the worker.
func (h *hungWorker) replaced(m *machine) {
	c := *h.c
	m = m.in(m.t)
	m.unit = h.c.m.unit
	c.m, c.d = m, m.daemon()
	eventually(m.t, 40*time.Second, "another worker answers", func() bool { now := c.d.tryWorker(); return now != 0 && strconv.Itoa(now) != h.worker })
	if m.keeper() != h.keeper {
		m.t.Error("the keeper was replaced")
	}
	if !strings.Contains(m.log(), "the worker hangs and is replaced") {
		m.t.Error("the log does not say that the worker hung")
	}
	c.done()
	m.do("systemctl", "stop", m.unit)
	if err := os.Remove(m.path("etc/systemd/system/ptyd-hung.service")); err != nil {
		m.t.Error(err)
	}
}

// Where systemd can't keep a session's descriptors the session is refused, and
// those that run are unharmed.
func testServiceStoreTooSmall(m *machine) {
	t := m.t
	m.dropIn("[Service]\nFileDescriptorStoreMax=22\nEnvironment=PTYD_FDSTORE=22\n")
	m.do("systemctl", "restart", "ptyd")
	c := m.counter()
	var refused answer
	var others []string
	for range 5 {
		a := c.d.call(request{Method: "POST", Path: "/v1/sessions", Body: spec{"argv": []string{"sleep", "1000"}}})
		if a.Status != 201 {
			refused = a
			break
		}
		var s session
		a.into(t, &s)
		others = append(others, s.ID)
	}
	if refused.code() != "limit_reached" || !strings.Contains(string(refused.Body), "FileDescriptorStoreMax") {
		t.Fatalf("the sessions after the first: %d started, then %v", len(others), refused)
	}
	m.killKeeper()
	c.goesOn()
	for _, id := range others {
		if s := c.d.session(id); s.State != "running" {
			t.Errorf("a session that was accepted is %s: %s", s.State, s.Error)
		}
		c.d.closeSession(id, 0)
	}
	m.dropIn("")
	m.do("systemctl", "restart", "ptyd")
	c.done()
}

// Stopping the service ends its sessions in order, and a later start finds what
// they wrote.
func testServiceStop(m *machine) {
	t, d := m.t, m.daemon()
	kind := d.run("bash", "-c", "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
	d.waitText(kind.ID, "ready")
	writeFile(t, m.path("srv/before"), "")
	m.do("systemctl", "stop", "ptyd")
	if got := m.show("NFileDescriptorStore"); got != "0" {
		t.Errorf("systemd still keeps %s descriptors", got)
	}
	if out := m.try("pgrep", "-f", "trap.*bye").Stdout; out != "" {
		t.Errorf("processes of sessions are left: %s", out)
	}
	m.do("systemctl", "start", "ptyd")
	s := d.session(kind.ID)
	if s.exit() != "status 3" || !strings.Contains(tailOf(m.log(), 8<<10), `"ptyd is ready"`) {
		t.Errorf("the session's end is %s, want status 3; error %q", s.exit(), s.Error)
	}
}

// The service can run as an account, as the documentation says, and as root again.
func testServiceAccount(m *machine) {
	t, d := m.t, m.daemon()
	runsAs := func(who string) {
		t.Helper()
		s := d.run("bash", "-c", "id -un; touch ~/written && ls ~/written")
		d.waitState(s.ID, "exited")
		if out := string(d.output(s.ID, 0)); !strings.HasPrefix(out, who+"\r\n") || !strings.Contains(out, "/written\r\n") {
			t.Errorf("a session says %q, want %s and a file", out, who)
		}
	}
	m.dropIn("[Service]\nUser=agent\nCapabilityBoundingSet=\n")
	m.do("systemctl", "restart", "ptyd")
	runsAs("agent")
	m.dropIn("")
	m.do("systemctl", "restart", "ptyd")
	runsAs("root")
}

// The relaxed service restricts nothing, and the way back is one command.
func testServiceRelaxed(m *machine) {
	t, d := m.t, m.daemon()
	m.install("--relaxed")
	s := d.run("bash", "-c", "touch /usr/local/x && unshare --mount true && nice true && grep NoNewPrivs /proc/self/status")
	d.waitState(s.ID, "exited")
	if out := string(d.output(s.ID, 0)); !strings.Contains(out, "NoNewPrivs:\t0") {
		t.Errorf("a session of the relaxed service says %q", out)
	}
	r := m.try("systemd-analyze", "verify", "--man=no", "ptyd.service")
	if r.Code != 0 || strings.Contains(r.Stderr, "ptyd.service") {
		t.Errorf("verify: %v", r)
	}
	m.install()
	if m.show("NoNewPrivileges") != "yes" {
		t.Error("installing without --relaxed leaves it relaxed")
	}
}

// Uninstalling refuses while sessions run, and keeps the state unless told.
func testServiceUninstall(m *machine) {
	t, d := m.t, m.daemon()
	d.run("sleep", "1000")
	if r := m.try("ptyd", "service", "uninstall", "--json"); r.Code != 125 || !strings.Contains(r.Stderr, `"code":"session_running"`) {
		t.Errorf("while a session runs: %v", r)
	}
	m.do("ptyd", "service", "uninstall", "--force")
	if _, err := os.Stat(m.path("var/lib/ptyd/ptyd.db")); err != nil {
		t.Errorf("the state is gone: %v", err)
	}
	if r := m.try("ptyd", "service", "status"); r.Code != 3 || !strings.Contains(r.Stdout, "not installed") {
		t.Errorf("status after: %v", r)
	}
	left, _ := filepath.Glob(m.path("etc/systemd/system/ptyd*"))
	if len(left) != 1 { // the test's own drop-in
		t.Errorf("left: %v", left)
	}
	m.do("ptyd", "service", "uninstall", "--purge")
	if _, err := os.Stat(m.path("var/lib/ptyd")); err == nil {
		t.Error("--purge has left the state")
	}
}

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The Debian package holds what a service needs, and its program runs.
func TestDebianPackage(t *testing.T) {
	if !*torture {
		t.Skip("left out: building the packer takes minutes; make torture does it")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("left out: dpkg-deb is not on this machine")
	}
	deb := debianPackage(t, shippedBinary, "0.0.1+e2e")
	root := stateDir(t)
	if out, err := exec.Command("dpkg-deb", "-R", deb, root).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	for _, name := range []string{
		"usr/lib/systemd/system/ptyd.service", "usr/lib/systemd/system/ptyd-tmp.service", "usr/lib/systemd/user/ptyd.service",
		"usr/share/bash-completion/completions/ptyd", "usr/share/man/man1/ptyd.1.gz", "usr/share/doc/ptyd/service.md",
		"usr/share/doc/ptyd/changelog.gz", "usr/share/doc/ptyd/copyright", "DEBIAN/postinst", "DEBIAN/prerm", "DEBIAN/postrm",
	} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("the package lacks %s", name)
		}
	}
	if unit := string(readFile(t, filepath.Join(root, "usr/lib/systemd/system/ptyd.service"))); !strings.Contains(unit, "ExecStart=/usr/bin/ptyd serve\n") {
		t.Error("the unit does not start /usr/bin/ptyd")
	}
	if out, err := exec.Command(filepath.Join(root, "usr/bin/ptyd"), "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "ptyd e2e") {
		t.Errorf("ptyd version: %v %s", err, out)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if out, err := exec.Command("sh", "-n", filepath.Join(root, "DEBIAN", script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", script, err, out)
		}
	}
}

// debianPackage is a package of a binary.
func debianPackage(t testing.TB, binary, version string) string {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "package", "BIN="+binary, "DEB_VERSION="+version)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make package: %v\n%s", err, out)
	}
	debs, _ := filepath.Glob("../out/ptyd_" + version + "_*.deb")
	if len(debs) != 1 {
		t.Fatalf("packages: %v", debs)
	}
	t.Cleanup(func() { _ = os.Remove(debs[0]) })
	return debs[0]
}

// dpkg itself installs the package, upgrades it while a session of its service
// counts, removes it and purges it. Not in parallel: a process of tests has one
// machine at a time, and the packages are laid out in one place.
func TestDebianPackageUnderSystemd(t *testing.T) {
	if !*torture {
		t.Skip("left out: building the packer takes minutes; make torture does it")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("left out: dpkg is not on this machine")
	}
	m := boot(t)
	binary, err := nextBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, deb := range map[string]string{"1.deb": debianPackage(t, shippedBinary, "0.0.1+e2e"), "2.deb": debianPackage(t, binary, "0.0.2+e2e")} {
		writeFile(t, m.path("root/"+name), string(readFile(t, deb)))
	}
	// A /usr that can be written, and a /usr/local that has no ptyd.
	for _, dir := range []string{"var/upper", "var/work", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, m.path("var/lib/dpkg/status"), "")
	if r := m.try("mount", "-t", "overlay", "-o", "lowerdir=/usr,upperdir=/var/upper,workdir=/var/work", "overlay", "/usr"); r.Code != 0 {
		t.Skipf("left out: no overlay can be mounted here: %v", r)
	}
	m.do("mount", "-t", "tmpfs", "tmpfs", "/usr/local")

	if out := m.do("dpkg", "-i", "/root/1.deb"); !strings.Contains(out, "ptyd service install") {
		t.Errorf("the first installation does not say what is next: %s", out)
	}
	said := m.install()
	for _, f := range said.Files {
		if strings.HasPrefix(f.Path, "/etc/systemd/system/ptyd.service") && strings.HasSuffix(f.Path, ".service") {
			t.Errorf("the package's unit is there, and so is %s", f.Path)
		}
	}
	m.images("/usr/bin/ptyd")
	c := m.counter()
	keeper := m.keeper()

	m.do("dpkg", "-i", "/root/2.deb")
	if m.show("ActiveState") != "active" || m.keeper() == keeper {
		t.Errorf("after the package's upgrade the service is %s, its keeper %s and then %s", m.show("ActiveState"), keeper, m.keeper())
	}
	if out := m.do("ptyd", "version"); !strings.HasPrefix(out, "ptyd e2e-next") {
		t.Errorf("ptyd version: %s", out)
	}
	m.images("/usr/bin/ptyd")
	c.goesOn()
	c.done()
	c.d.run("sleep", "1000")

	m.do("dpkg", "-r", "ptyd")
	for _, unit := range []string{"ptyd.service", "ptyd-tmp.service"} {
		if out := strings.TrimSpace(m.try("systemctl", "is-active", unit).Stdout); out != "inactive" {
			t.Errorf("%s is %s without its program", unit, out)
		}
	}
	if out := m.try("pgrep", "-x", "ptyd-keeper|ptyd-worker|sleep").Stdout; out != "" {
		t.Errorf("processes are left: %s", out)
	}
	if _, err := os.Stat(m.path("var/lib/ptyd/ptyd.db")); err != nil {
		t.Errorf("the state is gone: %v", err)
	}
	m.do("dpkg", "-P", "ptyd")
	if _, err := os.Stat(m.path("var/lib/ptyd")); err == nil {
		t.Error("a purge has left the state")
	}
	left, _ := filepath.Glob(m.path("etc/systemd/system/*/ptyd*"))
	for _, name := range left {
		if filepath.Base(name) != "test.conf" {
			t.Errorf("left: %s", name)
		}
	}
	if out := m.do("find", "/usr", "-name", "ptyd*"); out != "" {
		t.Errorf("left:\n%s", out)
	}
}

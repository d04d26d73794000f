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
	t.Parallel()
	if !*torture {
		t.Skip("left out: building the packer takes minutes; make torture does it")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("left out: dpkg-deb is not on this machine")
	}
	cmd := exec.Command("make", "--no-print-directory", "package", "BIN="+shippedBinary, "DEB_VERSION=0.0.1+e2e")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make package: %v\n%s", err, out)
	}
	debs, _ := filepath.Glob("../out/ptyd_0.0.1+e2e_*.deb")
	if len(debs) != 1 {
		t.Fatalf("packages: %v", debs)
	}
	t.Cleanup(func() { _ = os.Remove(debs[0]) })
	root := stateDir(t)
	if out, err := exec.Command("dpkg-deb", "-R", debs[0], root).CombinedOutput(); err != nil {
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

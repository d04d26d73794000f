package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ptyd/ptyd/internal/wire"
)

// screenOf runs a viewer that keeps the text, for programs that draw.
func screenOf(t *testing.T, d *Daemon, id string) (v *viewer, text func() string, done chan error) {
	t.Helper()
	v = newViewer(d, id, newClientID(newRand(t)))
	v.dialing.TCP = true
	_, secret := d.token(spec{"name": "screen"})
	v.dialing.Token = secret
	var kept lockedText
	v.check = func(_ uint64, b []byte) error { kept.add(b); return nil }
	done = make(chan error, 1)
	go func() { done <- v.run() }()
	return v, kept.String, done
}

func expect(t *testing.T, text func() string, re string) {
	t.Helper()
	r := regexp.MustCompile(re)
	if !holds(time.Minute, func() bool { return r.MatchString(text()) }) {
		t.Fatalf("the terminal never showed %q:\n%q", re, tailOf(text(), 3000))
	}
}

func TestBash(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.create(spec{"shell": true, "name": "sh", "cols": 100, "rows": 30})
	v, text, done := screenOf(t, d, s.ID)
	v.typeIn([]byte("echo first-$((40+2)); stty size; tty\r"))
	expect(t, text, `first-42\r\n.*24 80|first-42\r\n.*30 100`)
	expect(t, text, `/dev/pts/\d+`)
	v.typeIn([]byte("sleep 1000\r"))
	eventually(t, time.Minute, "sleep is the foreground process", func() bool {
		for _, p := range descendants(s.PID) {
			if p.Cmd == "sleep 1000" {
				return true
			}
		}
		return false
	})
	v.typeIn([]byte{3}) // Ctrl-C ends the foreground process, not the shell
	v.typeIn([]byte("echo after-$?\r"))
	expect(t, text, `after-130`)
	v.typeIn([]byte("exit 42\r"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e := v.exit; e.Code == nil || *e.Code != 42 || e.Signal != nil {
		t.Errorf("EXIT says %+v, want code 42", e)
	}
	if s := d.waitState(s.ID, "exited"); s.exit() != "status 42" {
		t.Errorf("the session says %s", s.exit())
	}
}

func TestVim(t *testing.T) {
	t.Parallel()
	d := start(t)
	file := filepath.Join(stateDir(t), "note.txt")
	s := d.create(spec{"argv": []string{"vim", "-u", "NONE", "-N", file}, "cols": 80, "rows": 24})
	v, text, done := screenOf(t, d, s.ID)
	expect(t, text, `note\.txt`)
	v.typeIn([]byte("ihello from vim, " + "\xc3\xa9\xe6\xbc\xa2" + "\rsecond line\x1b"))
	expect(t, text, "hello from vim")
	v.typeIn([]byte(":wq\r"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "hello from vim, \u00e9\u6f22\nsecond line\n" {
		t.Errorf("vim wrote %q, %v", b, err)
	}
	if s := d.waitState(s.ID, "exited"); s.exit() != "status 0" {
		t.Errorf("vim ended with %s", s.exit())
	}
	// The alternate screen was entered and left, in this order.
	in, out := strings.Index(text(), "\x1b[?1049h"), strings.LastIndex(text(), "\x1b[?1049l")
	if in < 0 || out < in {
		t.Errorf("alternate screen entered at %d, left at %d", in, out)
	}
}

func TestHtop(t *testing.T) {
	t.Parallel()
	d := start(t)
	s := d.create(spec{"argv": []string{"htop"}, "cols": 120, "rows": 40})
	v, text, done := screenOf(t, d, s.ID)
	expect(t, text, `Load average`)
	expect(t, text, `PID.*USER`)
	v.typeIn([]byte("q"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := d.waitState(s.ID, "exited"); s.exit() != "status 0" {
		t.Errorf("htop ended with %s", s.exit())
	}
}

// The size follows the viewer, and the program hears of it.
func TestResizeReachesTheProgram(t *testing.T) {
	t.Parallel()
	d := start(t)
	// bash forgets a signal that comes while its trap still runs, so the trap is
	// short.
	s := d.run("bash", "-c", `trap w=1 WINCH; echo up; while :; do sleep 0.05; if [ "$w" ]; then w=; stty size; fi; done`)
	d.waitText(s.ID, "up")
	c := d.mustDial(dialing{})
	c.attach(t, 1, wire.Attach{Session: s.ID, Cols: 111, Rows: 37, Visible: true, Kind: wire.KindInteractive})
	// The new size is a record in the stream: it comes at its place in it.
	for {
		z, err := wire.Parse[wire.Size](c.until(t, wire.TypeSize))
		if err != nil {
			t.Fatal(err)
		}
		if z.Cols == 111 && z.Rows == 37 && z.You {
			break
		}
	}
	d.waitText(s.ID, "37 111")
	if err := c.send(wire.Control(wire.TypeView, 1, 0, wire.View{Cols: 99, Rows: 35, Visible: true})); err != nil {
		t.Fatal(err)
	}
	d.waitText(s.ID, "35 99")
	for _, bad := range []wire.View{{Cols: 0, Rows: 10}, {Cols: 10, Rows: 0}, {Cols: 65535, Rows: 65535}} {
		bad.Visible = true
		if err := c.send(wire.Control(wire.TypeView, 1, 0, bad)); err != nil {
			t.Fatal(err)
		}
	}
	// A preview never takes the size.
	p := d.mustDial(dialing{})
	p.attach(t, 1, wire.Attach{Session: s.ID, Cols: 20, Rows: 5, Visible: true, Kind: wire.KindPreview})
	if s := d.session(s.ID); s.Cols != 99 || s.Rows != 35 {
		t.Errorf("after absurd sizes and a preview: %dx%d", s.Cols, s.Rows)
	}
	// The size stays when nobody watches.
	c.close()
	p.close()
	eventually(t, time.Minute, "no viewer is left", func() bool { return d.session(s.ID).Viewers == 0 })
	if s := d.session(s.ID); s.Cols != 99 || s.Rows != 35 {
		t.Errorf("after the viewers left: %dx%d", s.Cols, s.Rows)
	}
}

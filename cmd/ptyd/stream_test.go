package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestEveryByteOnceOverLostConnections: a session that prints and one that is
// typed into, while the connection is lost again and again. Bug: bytes shown
// twice or never, keys typed twice or never.
func TestEveryByteOnceOverLostConnections(t *testing.T) {
	d := startDaemon(t)
	f := d.flapping()
	rng := rand.New(rand.NewPCG(1, 2))

	cmd := exec.Command(binary, "--state-dir", f.state, "run", "--name", "out", "--", "sh", "-c",
		"i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 5")
	hold, err := cmd.StdinPipe() // its end would type Ctrl-D
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	var errs bytes.Buffer
	out := firstWrite{first: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-out.first:
	case <-time.After(patience):
		t.Fatalf("nothing is shown: %s", &errs)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	cuts := 0
	err = func() error {
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case err := <-ended:
				return err
			case <-tick.C:
				f.cut(rng.IntN(3) == 0)
				cuts++
			}
		}
	}()
	f.cut(false)
	if status := statusOf(t, err); status != 5 || errs.Len() > 0 {
		t.Errorf("exit status %d: %s", status, &errs)
	}
	var want bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&want, "line %d\r\n", i)
	}
	if !bytes.Equal(out.all.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes instead of %d after %d cuts", out.all.Len(), want.Len(), cuts)
	}
	if cuts < 3 {
		t.Errorf("only %d cuts: nothing is shown", cuts)
	}
}

// firstWrite tells when something is written for the first time.
type firstWrite struct {
	all   bytes.Buffer
	first chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.all.Len() == 0 {
		close(w.first)
	}
	return w.all.Write(p)
}

func TestEveryKeyOnceOverLostConnections(t *testing.T) {
	d := startDaemon(t)
	f := d.flapping()
	rng := rand.New(rand.NewPCG(3, 4))
	file := filepath.Join(t.TempDir(), "typed")
	const total = 300_000
	cmd := exec.Command(binary, "--state-dir", f.state, "run", "--", "sh", "-c",
		fmt.Sprintf("stty raw -echo; echo READY; head -c %d >%s", total, file))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("READY"))); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the command
	data := make([]byte, total)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	cuts := 0
	for rest := data; len(rest) > 0; {
		n := min(1+rng.IntN(3000), len(rest))
		if _, err := in.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		if rng.IntN(5) == 0 {
			f.cut(rng.IntN(3) == 0)
			cuts++
		}
	}
	f.cut(false)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(got) != sha256.Sum256(data) {
		t.Errorf("%d bytes arrived of %d, or others, after %d cuts", len(got), len(data), cuts)
	}
}

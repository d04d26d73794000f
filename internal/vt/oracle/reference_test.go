package oracle

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Int64("seed", 1001, "the first seed of the random streams")
	streamsFlag = flag.Int("streams", 0, "how many random streams each test plays; 0: the short form, or the long one with PTYD_TORTURE=1")
	keepFlag    = flag.Int("keep", 5, "stop after that many different failures")
	kindFlag    = flag.String("kind", "", "play streams of that kind alone: "+kindNames())
)

// webDir holds package.json and node_modules of the page.
const webDir = "../../../web"

// op is one instruction of oracle.cjs, see there.
type op []any

// request is one case; its terminals live no longer than it.
type request struct {
	Ops []op `json:"ops"`
}

// answer has an entry in Out for each op that answers.
type answer struct {
	Out   []json.RawMessage `json:"out"`
	Threw []string          `json:"threw"`
	Error string            `json:"error"`
}

func opNew(t, cols, rows, scrollback int) op { return op{"n", t, cols, rows, scrollback} }
func opWrite(t int, p []byte) op             { return op{"w", t, base64.StdEncoding.EncodeToString(p)} }
func opResize(t, cols, rows int) op          { return op{"z", t, cols, rows} }
func opDump(t int) op                        { return op{"d", t} }
func opForgetReplies(t int) op               { return op{"r", t} }
func opCompare(t, u int) op                  { return op{"c", t, u} }
func opWidths(from, to int) op               { return op{"W", from, to} }

// reference is the node process.
type reference struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

var (
	// theReference is started by the first test that needs it and ended by
	// TestMain; the lock guards it and its use by one test at a time.
	referenceMu  sync.Mutex
	theReference *reference
)

// play runs the cases on the reference. Where node or its packages are missing
// the test is left out: `make test` installs both.
func play(t testing.TB, cases []request) []answer {
	t.Helper()
	referenceMu.Lock()
	defer referenceMu.Unlock()
	if theReference == nil {
		node, err := exec.LookPath("node")
		if err != nil {
			t.Skip("left out: there is no node here; make test installs it")
		}
		if _, err := os.Stat(filepath.Join(webDir, "node_modules/@xterm/headless/package.json")); err != nil {
			t.Skip("left out: the page's packages are not installed; make test does that")
		}
		// Looked at here, so that results of other versions are not cached.
		if _, err := os.Stat("oracle.cjs"); err != nil {
			t.Fatal(err)
		}
		theReference, err = startReference(node)
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := theReference.play(cases)
	if err != nil {
		theReference.end()
		theReference = nil
		t.Fatal(err)
	}
	return out
}

func startReference(node string) (*reference, error) {
	cmd := exec.Command(node, "oracle.cjs", webDir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	return &reference{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, nil
}

func (r *reference) play(cases []request) ([]answer, error) {
	// Node reads while it answers, so both directions move at once.
	sent := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(r.in, 1<<16)
		enc := json.NewEncoder(w)
		for i := range cases {
			if err := enc.Encode(&cases[i]); err != nil {
				sent <- err
				return
			}
		}
		sent <- w.Flush()
	}()
	// A case that never ends is a fault of the case: the generator keeps counts
	// within what xterm.js can do. Killing node ends the read below.
	hung := time.AfterFunc(2*time.Minute, func() { _ = r.cmd.Process.Kill() })
	defer hung.Stop()
	answers := make([]answer, len(cases))
	for i := range answers {
		line, err := r.out.ReadBytes('\n')
		if err != nil {
			if i < len(cases) {
				ops, _ := json.Marshal(cases[i])
				err = fmt.Errorf("node ended at case %d (%.2000s): %w", i, ops, err)
			}
			_ = r.cmd.Process.Kill()
			return nil, errors.Join(err, <-sent)
		}
		if err := json.Unmarshal(line, &answers[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("answer of node: %w", err), r.cmd.Process.Kill(), <-sent)
		}
		if answers[i].Error != "" {
			return nil, errors.Join(errors.New(answers[i].Error), r.cmd.Process.Kill(), <-sent)
		}
	}
	return answers, <-sent
}

func (r *reference) end() {
	_ = r.in.Close()
	_ = r.cmd.Wait()
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	referenceMu.Lock()
	if theReference != nil {
		theReference.end()
	}
	referenceMu.Unlock()
	os.Exit(code)
}

// torture reports whether the long forms are wanted.
func torture() bool { return os.Getenv("PTYD_TORTURE") == "1" }

// amount is how many streams a test plays.
func amount(short, long int) int {
	switch {
	case *streamsFlag > 0:
		return *streamsFlag
	case torture():
		return long
	}
	return short
}

package store

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes this test binary run one of the roles instead of the tests: a
// second process on the same database, for what goroutines cannot show.
const childEnv = "PTYD_STORE_TEST_ROLE"

// order is what a child is told.
type order struct {
	Role string
	DSN  string
	Args json.RawMessage
}

// roles are what children do; each returns what the parent reads.
var roles = map[string]func(ctx context.Context, o order) (any, error){}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// The engine is some fifteen times slower under the race detector: a short
	// run unless the command line asks for more with -rapid.checks.
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "12"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func runChild(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	role, ok := roles[o.Role]
	if !ok {
		return fmt.Errorf("no role %q", o.Role)
	}
	v, err := role(context.Background(), o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

// whenTold says that the child is ready and waits for the parent's word, so
// that several processes begin at one moment.
func whenTold() error {
	fmt.Println("ready")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

// child is a process of this binary.
type child struct {
	cmd *exec.Cmd
	in  interface{ Write([]byte) (int, error) }
	out *bufio.Reader
}

// startChildren starts n children and returns when all of them are ready.
func startChildren(t *testing.T, n int, role, dsn string, args any) []*child {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(order{Role: role, DSN: dsn, Args: data})
	if err != nil {
		t.Fatal(err)
	}
	children := make([]*child, n)
	for i := range children {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+string(text))
		cmd.Stderr = os.Stderr
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
		children[i] = &child{cmd: cmd, in: in, out: bufio.NewReader(out)}
	}
	for _, c := range children {
		if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("child said %q, %v", line, err)
		}
	}
	return children
}

// finish tells the children to begin and returns what each of them answered.
func finish[T any](t *testing.T, children []*child) []T {
	t.Helper()
	for _, c := range children {
		if _, err := c.in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
	}
	answers := make([]T, len(children))
	for i, c := range children {
		if err := json.NewDecoder(c.out).Decode(&answers[i]); err != nil {
			t.Errorf("child's answer: %v", err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	}
	return answers
}

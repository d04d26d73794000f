package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	torture = flag.Bool("torture", os.Getenv("PTYD_TORTURE") == "1", "run the full numbers, not the short forms")
	seed    = flag.Uint64("seed", 0, "seed of the random choices; 0 takes one from the clock and prints it")
)

// The two builds of the daemon.
var (
	testBinary    string // -race -tags ptydtest
	shippedBinary string // static, as `make build` makes it
)

// childWord as the first argument makes the test binary one of the programs
// that the tests run inside sessions (child_test.go).
const childWord = "e2e-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childWord {
		os.Exit(childMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == machineWord {
		os.Exit(machineMain(os.Args[2:]))
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	fmt.Printf("e2e: seed %d (repeat with -seed %d), torture %v\n", *seed, *seed, *torture)
	// Orphans of a session come to this process instead of process 1, so that
	// leftovers can be found and named.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println("e2e: become subreaper:", err)
		return 1
	}
	if err := build(); err != nil {
		fmt.Println("e2e:", err)
		return 1
	}
	// Ignored under nohup, and inherited; caught, it is as usual for daemons.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	code := m.Run()
	for _, p := range orphans() {
		fmt.Printf("e2e: left behind after all tests: %v\n", p)
		_ = unix.Kill(p.PID, unix.SIGKILL)
		code = max(code, 1)
	}
	return code
}

// build makes both binaries below .cache/e2e of the work tree: an unchanged
// tree links nothing again. PTYD_E2E_BUILT=1 takes what is there as it is.
func build() error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	dir := filepath.Join(root, ".cache", "e2e")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	testBinary = filepath.Join(dir, "ptyd-test")
	shippedBinary = filepath.Join(dir, "ptyd")
	if os.Getenv("PTYD_E2E_BUILT") == "1" {
		return nil
	}
	// What the binaries carry within them comes first.
	stage := exec.Command("make", "--no-print-directory", "internal/ptymgr/stage/bin/stage")
	stage.Dir = root
	if out, err := stage.CombinedOutput(); err != nil {
		return fmt.Errorf("build the stage: %w\n%s", err, out)
	}
	for _, b := range []struct {
		env  string
		args []string
	}{
		{"CGO_ENABLED=1", []string{"build", "-race", "-tags", "ptydtest", "-ldflags", "-X github.com/ptyd/ptyd/internal/config.Version=e2e", "-o", testBinary, "./cmd/ptyd"}},
		{"CGO_ENABLED=0", []string{"build", "-trimpath", "-ldflags", "-s -w -X github.com/ptyd/ptyd/internal/config.Version=e2e", "-o", shippedBinary, "./cmd/ptyd"}},
	} {
		cmd := exec.Command("go", b.args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), b.env)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w\n%s", b.args, err, out)
		}
	}
	return nil
}

// newRand returns the random source of one test: the run's seed and the
// test's name, so that a test repeats alone as it ran among others.
func newRand(t testing.TB) *rand.Rand {
	var h uint64 = 14695981039346656037
	for _, c := range []byte(t.Name()) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(*seed, h))
}

// full returns n under -torture and short otherwise.
func full(short, n int) int {
	if *torture {
		return n
	}
	return short
}

// eventually waits until cond holds. It looks often, because the tests run on
// slow machines too and the limit is only there to end a broken run.
func eventually(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	if !holds(limit, cond) {
		t.Fatalf("after %v still not: %s", limit, what)
	}
}

// holds reports whether cond became true within limit.
func holds(limit time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			return false
		}
		<-tick.C
	}
	return true
}

package ptymgr

import (
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Whoever asks sees what was there before the call, however many ask at once.
func TestLookoutSeesWhatIsThere(t *testing.T) {
	t.Parallel()
	l := newLookout()
	const mark = "s_census_test"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				cmd := exec.Command("sleep", "1000")
				cmd.Env = append(os.Environ(), "PTYD_SESSION="+mark)
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				pid, found := cmd.Process.Pid, false
				for _, p := range l.census().tree(1, mark) {
					found = found || p.pid == pid
				}
				if !found {
					t.Errorf("process %d is not seen by its mark", pid)
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // says that it was killed
				for _, p := range l.census().tree(1, mark) {
					if p.pid == pid {
						t.Errorf("process %d is seen after its end", pid)
					}
				}
			}
		})
	}
	wg.Wait()
}

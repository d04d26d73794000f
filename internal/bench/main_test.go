package bench

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary plays the other parts, as the bench binary does.
func TestMain(m *testing.M) {
	if played, err := Role(os.Args[1:]); played {
		if err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

package daemon

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("PTYD_TEST_HELPER") == "limits" {
		os.Exit(limitsHelper())
	}
	goleak.VerifyTestMain(m)
}

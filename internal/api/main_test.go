package api

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// net/http gives a client half a second to read why it was cut off.
		goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

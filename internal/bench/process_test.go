package bench

import (
	"slices"
	"testing"
)

func TestCleanEnv(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "PTYD_LISTEN=1.2.3.4:5", "XDG_CONFIG_HOME=/home/me", "PTYDX=1"}, "/scratch")
	if want := []string{"PATH=/bin", "PTYDX=1", "XDG_CONFIG_HOME=/scratch"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

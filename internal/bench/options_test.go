package bench

import (
	"slices"
	"testing"
)

func TestParseTests(t *testing.T) {
	for in, want := range map[string][]string{
		"":               TestNames(),
		"all":            TestNames(),
		"echo":           {"echo"},
		"idle, one,idle": {"idle", "one"},
	} {
		got, err := ParseTests(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseTests(%q) = %v, %v", in, got, err)
		}
	}
	for _, bad := range []string{"echos", "echo,,one", "echo;one"} {
		if _, err := ParseTests(bad); err == nil {
			t.Errorf("ParseTests(%q): no error", bad)
		}
	}
}

func TestSizes(t *testing.T) {
	full, short := Options{}.sizes(), Options{Short: true}.sizes()
	if short.oneBytes >= full.oneBytes || short.idle >= full.idle || short.starts >= full.starts {
		t.Errorf("short is not shorter: %+v, %+v", short, full)
	}
	if s := (Options{Reps: 1}).sizes(); s.reps != 1 || s.stalledReps != 1 {
		t.Errorf("reps 1: %+v", s)
	}
	if c := full.crashes; len(c) != 3 || c[0].sessions != 1 || c[1].sessions != 1000 || c[2].sessions != 3000 || !c[2].bar.set {
		t.Errorf("the bars speak of 1, 1,000 and 3,000 sessions: %+v", c)
	}
	if full.idle != 1000 || full.hold.Seconds() != 10 || full.starts != 20 {
		t.Errorf("the bars speak of 1,000 sessions, 10 s and 20 starts: %+v", full)
	}
}

func TestRole(t *testing.T) {
	for _, args := range [][]string{nil, {"-short"}, {RoleChild}, {RoleBaseline}, {"x", RoleFlood}} {
		if played, err := Role(args); played || err != nil {
			t.Errorf("Role(%q) = %v, %v", args, played, err)
		}
	}
}

package auth

import (
	"slices"
	"strings"
	"testing"
)

// The table once more, as sets written by hand: a change of rights has to be
// made twice, on purpose.
func TestTable(t *testing.T) {
	reads := []Action{MeRead, StatusRead, MetricsRead, EventsWatch, TicketCreate, SessionList, SessionRead}
	writes := []Action{SessionCreate, SessionWrite, SessionClose, SessionDelete, TokenManage, LinkCreate}
	admins := []Action{UserManage, GroupManage, AuditRead, DaemonUpgrade}
	for role, want := range map[Role][]Action{
		Viewer:   reads,
		Operator: slices.Concat(reads, writes),
		Approver: reads,
		Agent:    {MeRead, StatusRead},
		Admin:    slices.Concat(reads, writes, admins),
		"":       nil,
		"king":   nil,
	} {
		if got := Actions(role); !slices.Equal(got, want) {
			t.Errorf("%q may %v, want %v", role, got, want)
		}
		for _, row := range Table() {
			if Allowed(role, row.Action) != slices.Contains(want, row.Action) {
				t.Errorf("%q %s: %v", role, row.Action, Allowed(role, row.Action))
			}
		}
		if Allowed(role, "session.fly") || Allowed(role, "") {
			t.Errorf("%q may do what does not exist", role)
		}
	}
}

func TestTableIsWellFormed(t *testing.T) {
	seen := map[Action]bool{}
	for _, row := range Table() {
		if seen[row.Action] {
			t.Errorf("%s stands twice", row.Action)
		}
		seen[row.Action] = true
		if !slices.Contains(row.Roles, Admin) {
			t.Errorf("%s: not even an admin may", row.Action)
		}
		if row.About == "" || row.Scope != Own && row.Scope != Daemon {
			t.Errorf("%s is not described", row.Action)
		}
		for _, r := range row.Roles {
			if !r.Valid() {
				t.Errorf("%s: no role %q", row.Action, r)
			}
		}
		row.Roles[0] = "changed" // a copy
	}
	if Table()[0].Roles[0] == "changed" {
		t.Error("Table hands out the table itself")
	}
}

// The lesser role is the greatest one that may do nothing which either may not.
func TestLesserRole(t *testing.T) {
	within := func(a, b Role) bool {
		for _, x := range Actions(a) {
			if !Allowed(b, x) {
				return false
			}
		}
		return true
	}
	for _, a := range Roles() {
		for _, b := range Roles() {
			got := LesserRole(a, b)
			if got != LesserRole(b, a) || !got.Valid() {
				t.Fatalf("%s, %s: %s, %s", a, b, got, LesserRole(b, a))
			}
			if !within(got, a) || !within(got, b) {
				t.Errorf("%s, %s: %s may do more", a, b, got)
			}
			for _, better := range Roles() {
				if within(better, a) && within(better, b) && len(Actions(better)) > len(Actions(got)) {
					t.Errorf("%s, %s: %s, but %s is within both", a, b, got, better)
				}
			}
			if AtMost(a, b) != (got == a) {
				t.Errorf("AtMost(%s, %s) = %v", a, b, AtMost(a, b))
			}
		}
		for _, nonsense := range []Role{"", "king"} {
			if LesserRole(a, nonsense) != "" || LesserRole(nonsense, a) != "" || AtMost(nonsense, a) || AtMost(a, nonsense) {
				t.Errorf("%q counts for something beside %s", nonsense, a)
			}
		}
	}
}

func TestMarkdownShowsTheTable(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(Markdown()), "\n")
	if len(lines) != len(Table())+2 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, row := range Table() {
		cells := strings.Split(lines[i+2], "|")
		if strings.TrimSpace(cells[1]) != "`"+string(row.Action)+"`" {
			t.Errorf("row %d is %q", i, lines[i+2])
		}
		for n, r := range Roles() {
			if got := strings.TrimSpace(cells[2+n]) == "✓"; got != Allowed(r, row.Action) {
				t.Errorf("%s, %s: %v", row.Action, r, got)
			}
		}
	}
}

func TestCanSee(t *testing.T) {
	for _, tc := range []struct {
		p     Principal
		owner string
		want  bool
	}{
		{Principal{UserID: "u_1", Role: Operator}, "u_1", true},
		{Principal{UserID: "u_1", Role: Viewer}, "u_2", false},
		{Principal{UserID: "u_1", Role: Admin}, "u_2", true},
		{Principal{}, "", false}, // nobody does not own what nobody owns
	} {
		if got := tc.p.CanSee(tc.owner); got != tc.want {
			t.Errorf("%+v sees %q: %v", tc.p, tc.owner, got)
		}
	}
}

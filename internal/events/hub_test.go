package events

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func readable(s *Subscription) bool {
	select {
	case <-s.C():
		return true
	default:
		return false
	}
}

func TestTake(t *testing.T) {
	a, b := Change{Type: "session", ID: "a"}, Change{Type: "session", ID: "b", Owner: "u"}
	many := make([]Change, maxPending+1)
	for i := range many {
		many[i] = Change{Type: "session", ID: fmt.Sprint(i)}
	}
	all := []Change{{Type: TypeAll}}
	for _, tc := range []struct {
		name string
		pub  []Change
		want []Change
	}{
		{"nothing", nil, nil},
		{"one", []Change{a}, []Change{a}},
		{"each once, oldest first", []Change{b, a, b, a, b}, []Change{b, a}},
		{"as many as fit", many[:maxPending], many[:maxPending]},
		{"too many", many, all},
		{"too many and more", append(slices.Clone(many), a, b), all},
		{"all swallows what was there", []Change{a, {Type: TypeAll, ID: "x"}, b}, all},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := NewHub()
			s := h.Subscribe()
			defer s.Close()
			for range 2 { // the second round shows that Take left nothing behind
				for _, c := range tc.pub {
					h.Publish(c)
				}
				if got := readable(s); got != (len(tc.want) > 0) {
					t.Fatalf("readable: %v", got)
				}
				if got := s.Take(); !slices.Equal(got, tc.want) {
					t.Fatalf("got %v, want %v", got, tc.want)
				}
				if got := s.Take(); got != nil || readable(s) {
					t.Fatalf("taken twice: %v", got)
				}
			}
		})
	}
}

func TestTakeWithoutReceivingEmptiesTheChannel(t *testing.T) {
	h := NewHub()
	s := h.Subscribe()
	defer s.Close()
	h.Publish(Change{Type: "user"})
	s.Take()
	if readable(s) {
		t.Fatal("readable with nothing to take")
	}
}

func TestCloseIsFinalAndAlone(t *testing.T) {
	h := NewHub()
	gone, stays := h.Subscribe(), h.Subscribe()
	defer stays.Close()
	h.Publish(Change{Type: "user", ID: "1"})
	gone.Close()
	gone.Close()
	h.Publish(Change{Type: "user", ID: "2"})
	if readable(gone) || gone.Take() != nil {
		t.Error("a closed subscription has something")
	}
	if got := stays.Take(); len(got) != 2 {
		t.Errorf("the other one got %v", got)
	}
	if len(h.subs) != 1 {
		t.Errorf("%d subscriptions", len(h.subs))
	}
}

// Publishers race with a watcher: after the last publication is returned from,
// the watcher sees the last change of every publisher.
func TestNothingIsLost(t *testing.T) {
	h := NewHub()
	s := h.Subscribe()
	defer s.Close()
	const publishers, changes = 8, 200
	want := publishers * changes
	done := make(chan int)
	go func() {
		seen := make(map[Change]bool)
		all := false
		for {
			<-s.C()
			for _, c := range s.Take() {
				if c.Type == "end" {
					if all {
						done <- want
					} else {
						done <- len(seen)
					}
					return
				}
				all = all || c.Type == TypeAll
				seen[c] = true
			}
			if all {
				// An overflow says "read everything": all published so far counts.
				continue
			}
		}
	}()
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for i := range changes {
				h.Publish(Change{Type: "session", ID: fmt.Sprintf("%d-%d", p, i)})
			}
		})
	}
	wg.Wait()
	// "end" itself may meet a full set; a watcher that keeps up takes it soon.
	for {
		h.Publish(Change{Type: "end"})
		select {
		case n := <-done:
			if n != want {
				t.Fatalf("saw %d of %d changes and no overflow", n, want)
			}
			return
		default:
		}
	}
}

// The model: an ordered set that collapses beyond its bound.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHub()
		s := h.Subscribe()
		defer s.Close()
		var model []Change
		all := false
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				n := rapid.IntRange(1, 90).Draw(t, "n")
				from := rapid.IntRange(0, 400).Draw(t, "from")
				for i := from; i < from+n; i++ {
					c := Change{Type: "session", ID: fmt.Sprint(i)}
					h.Publish(c)
					if all || slices.Contains(model, c) {
						continue
					}
					if model = append(model, c); len(model) > maxPending {
						model, all = []Change{{Type: TypeAll}}, true
					}
				}
			},
			"take": func(t *rapid.T) {
				if got := s.Take(); !slices.Equal(got, model) {
					t.Fatalf("got %v, want %v", got, model)
				}
				model, all = nil, false
			},
			"": func(t *rapid.T) {
				if got := len(s.C()) == 1; got != (len(model) > 0) {
					t.Fatalf("readable: %v with %d pending", got, len(model))
				}
			},
		})
	})
}

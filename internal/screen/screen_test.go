package screen

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/vt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is a session whose output and sizes a test makes.
type session struct {
	ring  *buffer.Ring
	mu    sync.Mutex // guards sizes and from
	sizes []ptymgr.SizeAt
	from  uint64
}

func (s *session) resize(cols, rows uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, ptymgr.SizeAt{Seq: s.sizes[len(s.sizes)-1].Seq + 1, Offset: s.ring.Head(), Cols: cols, Rows: rows})
}

// sessions are those by id.
type sessions map[string]*session

func (m sessions) Replay(_ context.Context, id string) (ptymgr.Replay, func(), error) {
	s := m[id]
	if s == nil {
		return ptymgr.Replay{}, func() {}, problem.New(problem.NotFound, "none")
	}
	return ptymgr.Replay{Ring: s.ring, Epoch: s.ring.Epoch(), Sizes: func() ([]ptymgr.SizeAt, uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return append([]ptymgr.SizeAt(nil), s.sizes...), s.from
	}}, func() {}, nil
}

func (m sessions) add(t *testing.T, id string, cols, rows uint16) *session {
	t.Helper()
	ring, err := buffer.New(7, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ring.Close() })
	m[id] = &session{ring: ring, sizes: []ptymgr.SizeAt{{Seq: 1, Cols: cols, Rows: rows}}}
	return m[id]
}

func ask(t *testing.T, c *Cache, id string, f Format) Screen {
	t.Helper()
	s, err := c.Screen(t.Context(), id, f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is played in pieces, with resizes between, is what an emulator shows that
// saw all of it at the time; a new cache and one that goes on agree.
func TestPlaysResizesAtTheirPlaces(t *testing.T) {
	m := sessions{}
	s := m.add(t, "s", 80, 24)
	direct := vt.New(vt.Options{Cols: 80, Rows: 24, ScrollbackLines: historyLines})
	goesOn := New(m, zaptest.NewLogger(t))
	for i := range 40 {
		text := fmt.Appendf(nil, "\x1b[3%dm%d %s\r\n\x1b[%d;5H\xe6\xbc\xa2", i%8, i, strings.Repeat("long line ", 9), i%20+1)
		s.ring.Append(text)
		direct.Write(text)
		if i%3 == 0 {
			cols, rows := 40+7*(i%11), 10+i%17
			s.resize(uint16(cols), uint16(rows))
			direct.Resize(cols, rows)
		}
		want := direct.Text()
		for _, c := range []*Cache{goesOn, New(m, zaptest.NewLogger(t))} {
			got := ask(t, c, "s", Cells)
			if !reflect.DeepEqual(got.Rows, want.Rows) || got.Cursor != want.Cursor || got.Approximate || got.Offset != s.ring.Head() {
				t.Fatalf("after %d pieces:\n%q %+v, approximate %v\nwant\n%q %+v", i+1, got.Rows, got.Cursor, got.Approximate, want.Rows, want.Cursor)
			}
			if !reflect.DeepEqual(got.Cells[3], direct.Cells(3)) {
				t.Fatalf("cells %+v, want %+v", got.Cells[3], direct.Cells(3))
			}
		}
	}
	a := ask(t, goesOn, "s", Text)
	s.resize(81, 25)
	if b := ask(t, goesOn, "s", ANSI); b.Revision <= a.Revision || len(b.Rows) != 25 || len(b.ANSI) == 0 {
		t.Errorf("revision %d and %d, %d rows", a.Revision, b.Revision, len(b.Rows))
	}
}

// Where output was lost, the screen says so and shows what came last; an emulator
// that saw the beginning stays exact.
func TestApproximate(t *testing.T) {
	m := sessions{}
	s := m.add(t, "s", 80, 24)
	c := New(m, zaptest.NewLogger(t))
	fill := func(from, n int) {
		var b []byte
		for i := from; i < from+n; i++ {
			if b = fmt.Appendf(b, "line %07d\r\n", i); len(b) > 32<<10 || i == from+n-1 {
				s.ring.Append(b)
				b = b[:0]
			}
		}
	}
	fill(0, 20_000)
	if got := ask(t, c, "s", Text); got.Approximate || got.Rows[22] != "line 0019999" {
		t.Errorf("%q, approximate %v", got.Rows, got.Approximate)
	}
	fill(20_000, 70_000)
	if got := ask(t, c, "s", Text); got.Approximate || got.Rows[22] != "line 0089999" {
		t.Errorf("the one that saw all: %q, approximate %v", got.Rows, got.Approximate)
	}
	fill(90_000, 10_000)
	if got := ask(t, New(m, zaptest.NewLogger(t)), "s", Text); !got.Approximate || got.Rows[22] != "line 0099999" {
		t.Errorf("one that came late: %q, approximate %v", got.Rows, got.Approximate)
	}
	fill(100_000, 200_000) // far more than is kept
	if got := ask(t, c, "s", Text); !got.Approximate || got.Rows[22] != "line 0299999" || got.Offset != s.ring.Head() {
		t.Errorf("one that fell behind: %q, approximate %v", got.Rows, got.Approximate)
	}
	other := m.add(t, "other", 80, 24)
	other.ring.Append([]byte("text"))
	other.from = 4
	if got := ask(t, c, "other", Text); !got.Approximate || got.Rows[0] != "text" {
		t.Errorf("of unknown size: %q, approximate %v", got.Rows, got.Approximate)
	}
}

// Many at once, of a session that prints: each is a screen of its time, none
// waits for ever, and what is kept stays within its bound.
func TestManyAtOnce(t *testing.T) {
	m := sessions{}
	for i := range 60 {
		s := m.add(t, fmt.Sprint(i), 200, 200)
		s.ring.Append([]byte("\x1b]0;mine\a\x1b[?1049h\x1b[2;3Hhello"))
	}
	c := New(m, zaptest.NewLogger(t))
	var wg sync.WaitGroup
	for i := range 120 {
		wg.Go(func() {
			id := fmt.Sprint(i % 60)
			if i%2 == 0 {
				id = "1"
				m[id].mu.Lock()
				m[id].ring.Append([]byte("\r\x1b[2Chello"))
				m[id].mu.Unlock()
			}
			s, err := c.Screen(t.Context(), id, Text)
			if err != nil || s.Rows[1] != "  hello" || !s.Alt || s.Title != "mine" || s.Cursor.Col != 7 {
				t.Errorf("%q %v", s.Rows, err)
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, e := range c.entries {
		sum += e.cost
	}
	if sum > CacheBytes || sum == 0 {
		t.Errorf("%d bytes are kept", sum)
	}
	c.Expire(time.Now().Add(idleFor - time.Minute))
	if len(c.entries) == 0 {
		t.Error("they were dropped before their time")
	}
	c.Expire(time.Now().Add(idleFor + time.Minute))
	if len(c.entries) != 0 {
		t.Errorf("%d are kept for ever", len(c.entries))
	}
}

// Who waits for a place waits as long as the request lives, and no longer.
func TestWaitsWithItsContext(t *testing.T) {
	m := sessions{}
	m.add(t, "s", 80, 24)
	c := New(m, zaptest.NewLogger(t))
	for range playing {
		c.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Screen(ctx, "s", Text)
		failed <- err
	}()
	cancel()
	if err := <-failed; !problem.Is(err, problem.Unavailable) {
		t.Errorf("%v", err)
	}
	<-c.slots
	ask(t, c, "s", Text)
	if _, err := c.Screen(t.Context(), "none", Text); !problem.Is(err, problem.NotFound) {
		t.Errorf("%v", err)
	}
	m.add(t, "huge", 1000, 1000)
	if _, err := c.Screen(t.Context(), "huge", Text); !problem.Is(err, problem.TooLarge) {
		t.Errorf("%v", err)
	}
}

// An emulator that fails costs an answer; the next one begins anew.
func TestEmulatorFails(t *testing.T) {
	m := sessions{}
	s := m.add(t, "s", 80, 24)
	s.ring.Append([]byte("one"))
	c := New(m, zaptest.NewLogger(t))
	ask(t, c, "s", Text)
	c.entries["s"].p.t = nil
	if _, err := c.Screen(t.Context(), "s", Text); !problem.Is(err, problem.Internal) {
		t.Errorf("%v", err)
	}
	if got := ask(t, c, "s", Text); got.Rows[0] != "one" {
		t.Errorf("%q", got.Rows)
	}
}

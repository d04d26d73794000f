package ptymgr_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/ptyd/ptyd/internal/events"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// Where the output is no longer kept, offsets mean what they did before.
func TestOutputThatIsNotKept(t *testing.T) {
	log := zaptest.NewLogger(t)
	st := openStore(t, log)
	t.Cleanup(func() { _ = st.Close() })
	v, err := ptymgr.NewDirect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	start := func() *ptymgr.Manager {
		m, err := ptymgr.New(ptymgr.Config{Grace: time.Second}, st, v, events.NewHub(), log)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	refused := func(m *ptymgr.Manager, id string, offset uint64) {
		t.Helper()
		_, err := m.Output(t.Context(), id, offset, 0, 0)
		if !problem.Is(err, problem.InvalidArgument) {
			t.Errorf("from %d: %v", offset, err)
		}
	}
	m := start()
	i := exited(t, m, create(t, m, "echo", "hi").ID)
	refused(m, i.ID, 5)
	if err := m.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	lost, _, err := st.CreateSession(t.Context(), ptymgr.Record{ID: "s_lost", Name: "lost", Owner: owner, State: ptymgr.Starting,
		Argv: []string{"a"}, Cwd: "/", Cols: 80, Rows: 24, CreatedAt: time.Now(), Epoch: 1}, "", "", ptymgr.Limits{PerOwner: 9, Total: 9})
	if err != nil {
		t.Fatal(err)
	}
	m = start()
	defer func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	refused(m, i.ID, 5)
	refused(m, i.ID, 1<<62)
	for _, offset := range []uint64{0, 3, 4} {
		if c, err := m.Output(t.Context(), i.ID, offset, 0, 0); err != nil || c.Offset != 4 || c.Next != 4 || !c.EOF || len(c.Data) > 0 {
			t.Errorf("from %d: %+v %v", offset, c, err)
		}
	}
	// Where its output ended is not known: whoever followed it is told of the end.
	if c, err := m.Output(t.Context(), lost.ID, 100, 0, 0); err != nil || !c.EOF {
		t.Errorf("a lost one: %+v %v", c, err)
	}
}

// Input that ends its session was typed all the same.
func TestInputThatEnds(t *testing.T) {
	m := manager(t)
	for range 20 {
		i := sh(t, m, "read x; exit 7")
		if err := m.Input(t.Context(), i.ID, []byte("\n")); err != nil {
			t.Fatal(err)
		}
		exited(t, m, i.ID)
	}
}

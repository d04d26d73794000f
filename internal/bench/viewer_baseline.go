package bench

import (
	"context"
	"fmt"

	"github.com/gorilla/websocket"
)

// baselineViewer counts positions itself: the baseline's messages carry none.
type baselineViewer struct {
	*socket
	at uint64
}

func dialBaseline(ctx context.Context, addr, id string, from uint64) (viewer, error) {
	s, err := dial(ctx, "ws://"+addr+"/ws?id="+id, nil)
	if err != nil {
		return nil, err
	}
	if p, err := s.message(); err != nil || len(p) > 0 {
		s.close()
		return nil, fmt.Errorf("baseline: first message of %d bytes: %w", len(p), err)
	}
	return &baselineViewer{socket: s, at: from}, nil
}

func (v *baselineViewer) next() (uint64, []byte, error) {
	p, err := v.message()
	at := v.at
	v.at += uint64(len(p))
	return at, p, err
}

func (v *baselineViewer) skipped() uint64      { return 0 }
func (v *baselineViewer) input(p []byte) error { return v.c.WriteMessage(websocket.BinaryMessage, p) }

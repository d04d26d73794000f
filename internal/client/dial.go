package client

import (
	"context"
	"errors"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
	"github.com/ptyd/ptyd/internal/ws"
)

// goodbye is how a connection tells why the daemon ended it.
type goodbye = ws.GoodbyeError

// dialFrames opens a connection for frames.
func (c *Client) dialFrames(ctx context.Context, hello wire.Hello) (frames, error) {
	u := *c.base
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	u.Path += "/v1/ws"
	conn, err := ws.Dial(ctx, ws.DialOptions{URL: u.String(), Socket: c.socket, Token: c.opt.Token, Hello: hello})
	if err == nil {
		return conn, nil
	}
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return nil, p
	}
	if bye, ok := errors.AsType[*goodbye](err); ok {
		return nil, closeError(bye.Goodbye)
	}
	return nil, c.unreachable(ctx, err)
}

package main

import (
	"bytes"
	"context"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/ptyd/ptyd/internal/client"
	"github.com/ptyd/ptyd/internal/client/tty"
	"github.com/ptyd/ptyd/internal/problem"
)

const (
	// outputPiece is how much output one request asks for.
	outputPiece = 1 << 20
	// followWait is how long a request waits for more.
	followWait = 45 * time.Second
	// firstLook is how far back -n looks first; four times that each next time.
	firstLook = 64 << 10
)

func newTail(g *globals) *cobra.Command {
	var t tail
	cmd := &cobra.Command{
		Use:   "tail NAME",
		Short: "Print a session's output",
		Long: `Print a session's output: all that is kept, what follows OFFSET, or the last
LINES lines. With -f go on until the session ends.

Without --raw control sequences are left out and line ends are those of files,
so that the text is safe to print and to search. With --raw the bytes come as
the session wrote them.

Offsets count the bytes of output since the session began. When output at OFFSET
is no longer kept, printing begins at the oldest byte that is, a line on
standard error says so, and with --strict the exit status is 125.

With --json each piece is a line: {"offset","next_offset","text"}, or "base64"
in place of "text" with --raw.`,
		Example: `  ptyd tail build
  ptyd tail build -n 20 -f
  ptyd tail build --raw --from 0 >build.typescript
  ptyd tail build --from -1000
  ptyd tail build -f --json | jq -r .text`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSessions(g, 1),
		RunE: action(g, func(ctx context.Context, cmd *cobra.Command, c *client.Client, args []string) error {
			t.cmd, t.json = cmd, g.JSON
			return t.run(ctx, c, args[0])
		}),
	}
	f := cmd.Flags()
	f.BoolVarP(&t.follow, "follow", "f", false, "go on printing until the session ends")
	f.BoolVar(&t.raw, "raw", false, "print the bytes as they are")
	f.Int64Var(&t.from, "from", 0, "begin at `OFFSET`; a negative one counts from the end")
	f.BoolVar(&t.strict, "strict", false, "fail when something is no longer kept")
	f.IntVarP(&t.lines, "lines", "n", 0, "print the last `LINES` lines")
	cmd.MarkFlagsMutuallyExclusive("from", "lines")
	return cmd
}

// tail is one run of ptyd tail.
type tail struct {
	follow, raw, strict, json bool
	from                      int64
	lines                     int

	cmd   *cobra.Command
	strip tty.Stripper
	gone  uint64 // bytes that were asked for and are no longer kept
}

func (t *tail) run(ctx context.Context, c *client.Client, ref string) error {
	if t.lines < 0 {
		return problem.Field("lines", "must not be negative")
	}
	s, err := c.Session(ctx, ref)
	if err != nil {
		return err
	}
	at := t.from
	asked := t.cmd.Flags().Changed("from")
	if t.cmd.Flags().Changed("lines") {
		if at, err = t.printLast(ctx, c, s); err != nil {
			return err
		}
		asked = true
	}
	if err := t.copy(ctx, c, s, at, asked); err != nil {
		return err
	}
	if t.gone > 0 && t.strict {
		return problem.New(problem.Gone, "%d bytes of output are no longer kept", t.gone)
	}
	return nil
}

// copy prints output from at on. asked: at was named, so that it matters when
// something after it is missing.
func (t *tail) copy(ctx context.Context, c *client.Client, s client.Session, at int64, asked bool) error {
	q := client.OutputQuery{Offset: at, Limit: outputPiece}
	retry := retrier{}
	for {
		o, err := c.Output(ctx, s.ID, q)
		if err != nil {
			if t.follow && retry.again(ctx, err) {
				continue
			}
			return err
		}
		retry = retrier{ok: true}
		if q.Offset < 0 {
			if want := uint64(-q.Offset); o.Head > want && o.Offset > o.Head-want && o.Oldest > o.Head-want {
				t.missing(o.Oldest - (o.Head - want))
			}
			t.strip.Cut = o.Offset > 0
		} else if o.Offset > uint64(q.Offset) {
			if asked {
				t.missing(o.Offset - uint64(q.Offset))
			}
			t.strip.Cut = true
		} else if q.Offset == at {
			t.strip.Cut = at > 0 && t.lines == 0
		}
		if err := t.print(o.Offset, o.Data); err != nil {
			return err
		}
		asked = true // what is lost on the way is a gap
		q.Offset = int64(min(o.Next, math.MaxInt64))
		if o.EOF || !t.follow && o.Next >= o.Head {
			return t.end(o.Next)
		}
		if t.follow {
			q.Wait = followWait
		}
	}
}

// missing tells that n bytes of what was asked for are gone.
func (t *tail) missing(n uint64) {
	t.gone += n
	note(t.cmd, "%d bytes of output are no longer kept; this goes on at the oldest byte that is", n)
}

// print prints a piece of output.
func (t *tail) print(offset uint64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	text := data
	if !t.raw {
		text = t.strip.Append(nil, data)
	}
	return t.emit(offset, offset+uint64(len(data)), text)
}

// emit prints what became of the output between two offsets.
func (t *tail) emit(offset, next uint64, text []byte) error {
	if !t.json {
		return emit(t.cmd, text)
	}
	item := struct {
		Offset uint64  `json:"offset"`
		Next   uint64  `json:"next_offset"`
		Text   *string `json:"text,omitempty"`
		Base64 []byte  `json:"base64,omitempty"`
	}{Offset: offset, Next: next}
	if t.raw {
		item.Base64 = text
	} else {
		s := string(text)
		item.Text = &s
	}
	return emit(t.cmd, jsonLine(item))
}

// end prints what waited for more.
func (t *tail) end(at uint64) error {
	if rest := t.strip.Flush(nil); len(rest) > 0 && !t.raw {
		return t.emit(at, at, rest)
	}
	return nil
}

// printLast prints the last lines of what there is now, and returns where to go on.
func (t *tail) printLast(ctx context.Context, c *client.Client, s client.Session) (int64, error) {
	for look := uint64(firstLook); ; look *= 4 {
		from := s.Offset - min(look, s.Offset)
		at, data, err := t.between(ctx, c, s, from)
		if err != nil {
			return 0, err
		}
		text := data
		var strip tty.Stripper
		if !t.raw {
			strip.Cut = at > 0
			text = strip.Append(nil, data)
		}
		start, whole := lastLines(text, t.lines)
		if !whole && at == from && from > 0 {
			continue // more lines lie further back
		}
		t.strip = strip
		end := int64(min(at+uint64(len(data)), math.MaxInt64))
		if start == len(text) {
			return end, nil
		}
		offset := at
		if t.raw {
			offset += uint64(start)
		}
		return end, t.emit(offset, uint64(end), text[start:])
	}
}

// between reads the output from an offset to what was the end when s was read.
func (t *tail) between(ctx context.Context, c *client.Client, s client.Session, from uint64) (at uint64, data []byte, err error) {
	at = from
	for next := from; next < s.Offset; {
		o, err := c.Output(ctx, s.ID, client.OutputQuery{Offset: int64(next), Limit: int(min(s.Offset-next, outputPiece))})
		if err != nil {
			return 0, nil, err
		}
		if o.Offset > next { // dropped meanwhile
			at, data = o.Offset, nil
		}
		if len(o.Data) == 0 {
			break
		}
		data = append(data, o.Data...)
		next = o.Next
	}
	return at, data, nil
}

// lastLines is where the last n lines of text begin; whole tells whether there
// are that many. A line end at the end of the text ends the last one.
func lastLines(text []byte, n int) (start int, whole bool) {
	if n == 0 {
		return len(text), true
	}
	start = len(text)
	if start > 0 && text[start-1] == '\n' {
		start--
	}
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(text[:start], '\n')
		if i < 0 {
			return 0, n == 0
		}
		if n == 1 {
			return i + 1, true
		}
		start = i
	}
	return start, true
}

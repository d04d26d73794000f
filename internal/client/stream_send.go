package client

import (
	"time"

	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/wire"
)

// send sends on one connection what there is to send, until finish or an
// error, which the reading side learns from its own end of the connection.
func (s *Stream) send(conn frames, finish <-chan struct{}, ping time.Duration) {
	pings := time.NewTicker(ping)
	defer pings.Stop()
	ackTimer := time.NewTimer(ackDelay)
	ackTimer.Stop()
	defer ackTimer.Stop()
	var o outgoing
	var pinged uint64
	for {
		for {
			frame, again := s.outgoing(&o)
			if frame == nil {
				if again {
					ackTimer.Reset(ackDelay)
				}
				break
			}
			if err := conn.Send(*frame); err != nil {
				_ = conn.Close() // so that the reading side sees it as well
				return
			}
		}
		select {
		case <-s.changed:
		case <-ackTimer.C:
			o.ackDue = true
		case <-pings.C:
			pinged++
			if err := conn.Send(wire.Frame{Type: wire.TypePing, Offset: pinged}); err != nil {
				_ = conn.Close()
				return
			}
		case <-finish:
			return
		}
	}
}

// outgoing is what send remembers of one connection.
type outgoing struct {
	generation int
	acked      uint64 // what was acknowledged on this connection
	waiting    bool   // the timer of an acknowledgement runs
	ackDue     bool   // it has run out
	buf        []byte
}

// outgoing picks the next frame to send, control before data, or nil. arm asks
// for the timer of an acknowledgement that may still grow.
func (s *Stream) outgoing(o *outgoing) (f *wire.Frame, arm bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != s.viewSent {
		s.viewSent = s.view
		f := wire.Control(wire.TypeView, channel, 0, s.view)
		return &f, false
	}
	if o.generation != s.generation {
		*o = outgoing{generation: s.generation, buf: o.buf}
	}
	if s.acked > o.acked && (o.ackDue || s.acked-o.acked >= ackBytes || o.acked == 0) {
		o.acked, o.ackDue, o.waiting = s.acked, false, false
		return &wire.Frame{Type: wire.TypeAck, Channel: channel, Offset: s.acked}, false
	}
	sent, room := int(s.inputSent-s.inputBase), inputWindow-int(s.inputSent-s.inputAcked)
	if n := min(len(s.input)-sent, room, inputFrame); n > 0 || s.probe {
		s.probe = false
		n = max(n, 0)
		// A copy: the buffer may be shortened while the frame is on its way.
		o.buf = append(o.buf[:0], s.input[sent:sent+n]...)
		f := &wire.Frame{Type: wire.TypeInput, Channel: channel, Offset: s.inputSent, Payload: o.buf}
		s.inputSent += uint64(n)
		return f, false
	}
	if s.acked > o.acked && !o.waiting {
		o.waiting = true
		return nil, true
	}
	return nil, false
}

// inputAck drops the input that is in the session's terminal.
func (s *Stream) inputAck(offset uint64) error {
	s.mu.Lock()
	switch {
	case offset > s.inputSent:
		s.mu.Unlock()
		return &final{problem.New(problem.Internal, "the daemon acknowledged input that was never sent")}
	case offset > s.inputAcked:
		s.inputAcked = offset
		if offset > s.inputBase {
			s.dropInputLocked(offset)
		}
	}
	s.mu.Unlock()
	poke(s.changed)
	poke(s.room)
	return nil
}

// dropInputLocked forgets the input before offset.
func (s *Stream) dropInputLocked(offset uint64) {
	n := copy(s.input, s.input[offset-s.inputBase:])
	s.input = s.input[:n]
	s.inputBase = offset
	if n == 0 && cap(s.input) > inputWindow {
		s.input = nil // a big paste is over
	}
}

// resumeInputLocked goes on with the input where the daemon says it is, and
// returns how many bytes nobody can tell the fate of.
func (s *Stream) resumeInputLocked(accepted int64) (lost int) {
	end := s.inputBase + uint64(len(s.input))
	if accepted >= 0 && uint64(accepted) >= s.inputBase && uint64(accepted) <= end {
		s.dropInputLocked(uint64(accepted))
		s.inputSent = s.inputBase
		// What is accepted still counts against the window until it is in the
		// terminal, and that word may have been lost with the connection.
		s.probe = s.inputBase > s.inputAcked
		poke(s.room)
		poke(s.changed)
		return 0
	}
	// The daemon does not know this client any more. What was sent may have
	// arrived; sending it again could run a command twice.
	lost = len(s.input)
	s.input = nil
	s.inputBase = end
	s.inputSent = end
	s.inputAcked = end
	poke(s.room)
	return lost
}

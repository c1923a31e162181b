package transfer

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Bounds that hold for any Spec at any end, whatever the protocol.
const (
	leastRate  = 1000      // bit/s of a program or a kernel that paces
	mostRate   = 1e15      // bit/s
	mostWrite  = 1 << 30   // bytes of one write
	mostBuffer = 1<<31 - 1 // bytes: SO_SNDBUF and SO_RCVBUF are C's int
	mostStream = 1 << 12   // connections, each of which has a thread
	leastMSS   = 88        // bytes: Linux's TCP_MIN_MSS
	mostMSS    = 32767     // bytes: Linux's MAX_TCP_WINDOW
	mostTOS    = 63 << 2   // the largest DSCP
	ecnBits    = 3         // of the traffic class, RFC 3168: TCP's own
)

// Validate says whether a Spec makes sense at all: nil, or *Unsupported for the first
// field that does not. What a certain far end can do is its Peer's to check.
func (s *Spec) Validate() error {
	no := func(field, why string, args ...any) error {
		return &Unsupported{Field: field, Why: fmt.Sprintf(why, args...)}
	}
	switch p := s.Program; {
	case s.Direction != Up && s.Direction != Down:
		return no("Direction", "%q is neither up nor down", s.Direction)
	case s.Time < 0 || s.Bytes < 0 || s.Time == 0 && s.Bytes == 0:
		return no("Time", "neither a time nor a number of bytes ends the transfer")
	case s.Streams < 0 || s.Streams > mostStream:
		return no("Streams", "%d is not between 1 and %d", s.Streams, mostStream)
	case p.WriteBytes < 0 || p.WriteBytes > mostWrite:
		return no("Program.WriteBytes", "%d is not between 1 and %v", p.WriteBytes, units.Size(mostWrite))
	case p.RequestResponse && p.WriteBytes == 1:
		return no("Program.WriteBytes", "an exchange's request is written in two pieces: at least 2 bytes")
	case badRate(p.WriteBps):
		return no("Program.WriteBps", "%v is below %v", units.Rate(p.WriteBps), units.Rate(leastRate))
	case badRate(p.ReadBps):
		return no("Program.ReadBps", "%v is below %v", units.Rate(p.ReadBps), units.Rate(leastRate))
	}
	for _, end := range []struct {
		name string
		*Socket
	}{{"Near", &s.Near}, {"Far", &s.Far}} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"SendBuffer", end.SendBuffer}, {"ReceiveBuffer", end.ReceiveBuffer}, {"Clamp", end.Clamp}} {
			if size.bytes < 0 || size.bytes > mostBuffer {
				return no(end.name+"."+size.name, "%d is not between 1 and %v", size.bytes, units.Size(mostBuffer))
			}
		}
		if m := end.MSS; m != 0 && (m < leastMSS || m > mostMSS) {
			return no(end.name+".MSS", "%d is not between %d and %d", m, leastMSS, mostMSS)
		}
		if t := end.TOS; t < 0 || t > mostTOS || t&ecnBits != 0 {
			return no(end.name+".TOS", "%d is no DSCP (0 to 63) shifted left by 2", t)
		}
		if badRate(end.PacingBps) {
			return no(end.name+".PacingBps", "%v is below %v", units.Rate(end.PacingBps), units.Rate(leastRate))
		}
	}
	return nil
}

func badRate(bps float64) bool { return bps != 0 && !(bps >= leastRate && bps < mostRate) }

package transfer

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Bounds of a Spec's fields for every end and protocol.
const (
	minRate    = 1000      // bit/s, of a program or of pacing
	maxRate    = 1e15      // bit/s
	maxWrite   = 1 << 30   // bytes of one write
	maxBuffer  = 1<<31 - 1 // bytes: SO_SNDBUF and SO_RCVBUF are C's int
	maxStreams = 1 << 12   // connections; each has a thread
	minMSS     = 88        // bytes: Linux's TCP_MIN_MSS
	maxMSS     = 32767     // bytes: Linux's MAX_TCP_WINDOW
	maxTOS     = 63 << 2   // the largest DSCP
	ecnBits    = 3         // of the traffic class, RFC 3168: TCP's own
)

// Validate returns *Unsupported for the first field of a Spec that no far end can support. Peer.Check adds the limits
// of one far end.
func (s *Spec) Validate() error {
	no := func(field, why string, args ...any) error {
		return &Unsupported{Field: field, Reason: fmt.Sprintf(why, args...)}
	}
	switch p := s.Program; {
	case s.Direction != Up && s.Direction != Down:
		return no("Direction", "%q is neither up nor down", s.Direction)
	case s.Time < 0 || s.Bytes < 0 || s.Time == 0 && s.Bytes == 0:
		return no("Time", "neither a time nor a number of bytes ends the transfer")
	case s.Streams < 0 || s.Streams > maxStreams:
		return no("Streams", "%d is not between 1 and %d", s.Streams, maxStreams)
	case p.WriteBytes < 0 || p.WriteBytes > maxWrite:
		return no("Program.WriteBytes", "%d is not between 1 and %v", p.WriteBytes, units.Size(maxWrite))
	case p.RequestResponse && p.WriteBytes == 1:
		return no("Program.WriteBytes", "an exchange's request is written in two pieces: at least 2 bytes")
	case badRate(p.WriteBps):
		return no("Program.WriteBps", "%v is below %v", units.Rate(p.WriteBps), units.Rate(minRate))
	case badRate(p.ReadBps):
		return no("Program.ReadBps", "%v is below %v", units.Rate(p.ReadBps), units.Rate(minRate))
	}
	for _, end := range []struct {
		name string
		*Socket
	}{{"Near", &s.Near}, {"Far", &s.Far}} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"SendBuffer", end.SendBuffer}, {"ReceiveBuffer", end.ReceiveBuffer}, {"Clamp", end.Clamp}} {
			if size.bytes < 0 || size.bytes > maxBuffer {
				return no(end.name+"."+size.name, "%d is not between 1 and %v", size.bytes, units.Size(maxBuffer))
			}
		}
		if m := end.MSS; m != 0 && (m < minMSS || m > maxMSS) {
			return no(end.name+".MSS", "%d is not between %d and %d", m, minMSS, maxMSS)
		}
		if t := end.TOS; t < 0 || t > maxTOS || t&ecnBits != 0 {
			return no(end.name+".TOS", "%d is no DSCP (0 to 63) shifted left by 2", t)
		}
		if badRate(end.PacingBps) {
			return no(end.name+".PacingBps", "%v is below %v", units.Rate(end.PacingBps), units.Rate(minRate))
		}
	}
	return s.validateRequests()
}

func badRate(bps float64) bool { return bps != 0 && !(bps >= minRate && bps < maxRate) }

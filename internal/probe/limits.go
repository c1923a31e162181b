package probe

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// DefaultLimits are what a server grants one client unless it is told otherwise.
func DefaultLimits() Limits {
	return Limits{Time: time.Hour, Bytes: 1 << 42, Streams: 128, Buffer: 1 << 30, Options: systemOptions}
}

// Bounds that hold for any Spec at any end.
const (
	leastRate = 1000    // bit/s of a paced program
	mostWrite = 1 << 30 // bytes of one write
	leastMSS  = 88      // Linux's TCP_MIN_MSS
	mostMSS   = 32767   // Linux's MAX_TCP_WINDOW
)

// Check says whether a Spec makes sense and whether a server with these limits would
// carry it out: nil or *transfer.Unsupported.
func (h Hello) Check(s transfer.Spec) error {
	no := func(field, why string, args ...any) error {
		return &transfer.Unsupported{Field: field, Why: fmt.Sprintf(why, args...)}
	}
	l := h.Limits
	switch {
	case s.Direction != transfer.Up && s.Direction != transfer.Down:
		return no("Direction", "%q is neither up nor down", s.Direction)
	case s.Time < 0 || s.Bytes < 0 || s.Time == 0 && s.Bytes == 0:
		return no("Time", "neither a time nor a number of bytes ends the transfer")
	case s.Time > l.Time:
		return no("Time", "%v is more than the far end's %v", s.Time, l.Time)
	case s.Bytes > l.Bytes:
		return no("Bytes", "%v is more than the far end's %v", units.Size(s.Bytes), units.Size(l.Bytes))
	case s.Streams < 0 || s.Streams > l.Streams:
		return no("Streams", "%d is not between 1 and the far end's %d", s.Streams, l.Streams)
	case s.Program.WriteBytes < 0 || s.Program.WriteBytes > mostWrite:
		return no("Program.WriteBytes", "%d is not between 1 and %v", s.Program.WriteBytes, units.Size(mostWrite))
	case s.Program.Exchange && s.Program.WriteBytes == 1:
		return no("Program.WriteBytes", "an exchange's request is written in two pieces: at least 2 bytes")
	case badRate(s.Program.WriteBps):
		return no("Program.WriteBps", "%v is below %v", units.Rate(s.Program.WriteBps), units.Rate(leastRate))
	case badRate(s.Program.ReadBps):
		return no("Program.ReadBps", "%v is below %v", units.Rate(s.Program.ReadBps), units.Rate(leastRate))
	case l.Bps > 0 && rate(s) > l.Bps:
		return no("Program.WriteBps", "the far end carries at most %v in a test and wants to be asked for a rate (--write-rate)", units.Rate(l.Bps))
	}
	for _, end := range []struct {
		name   string
		socket transfer.Socket
	}{{"Near", s.Near}, {"Far", s.Far}} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"SendBuffer", end.socket.SendBuffer}, {"ReceiveBuffer", end.socket.ReceiveBuffer}, {"Clamp", end.socket.Clamp}} {
			if size.bytes < 0 || size.bytes > l.Buffer {
				return no(end.name+"."+size.name, "%d is not between 1 and %v", size.bytes, units.Size(l.Buffer))
			}
		}
		if m := end.socket.MSS; m != 0 && (m < leastMSS || m > mostMSS) {
			return no(end.name+".MSS", "%d is not between %d and %d", m, leastMSS, mostMSS)
		}
		if badRate(end.socket.PacingBps) {
			return no(end.name+".PacingBps", "%v is below %v", units.Rate(end.socket.PacingBps), units.Rate(leastRate))
		}
	}
	far := s.Far
	if !l.Options && (far.Clamp > 0 || far.Congestion != "" || far.MSS > 0 || far.PacingBps > 0) {
		return no("Far", "the far end's system (%s) sets buffers only", h.Kernel)
	}
	if far.Congestion != "" && !slices.Contains(h.Congestion, far.Congestion) {
		return no("Far.Congestion", "the far end offers %v, not %s", h.Congestion, far.Congestion)
	}
	return nil
}

// rate is what all streams of a Spec may send together, in bit/s.
func rate(s transfer.Spec) float64 {
	one := math.Inf(1)
	if s.Program.WriteBps > 0 {
		one = s.Program.WriteBps
	}
	pacing := s.Near.PacingBps
	if s.Direction == transfer.Down {
		pacing = s.Far.PacingBps
	}
	if pacing > 0 {
		one = min(one, pacing)
	}
	return one * float64(max(s.Streams, 1))
}

// Excess says that a transfer, or one direction of a test, has moved more than the
// limits allow so long after its first byte. The rate is an average, with a second and a
// tenth to spare: what stood in queues may come at once.
func (l Limits) Excess(bytes int64, elapsed time.Duration) error {
	switch {
	case l.Bytes > 0 && bytes > l.Bytes:
		return fmt.Errorf("more than the %v that one test may move here", units.Size(l.Bytes))
	case l.Bps > 0 && float64(bytes)*8 > 1.1*l.Bps*(elapsed+time.Second).Seconds():
		return fmt.Errorf("faster than the %v that one test may take here", units.Rate(l.Bps))
	}
	return nil
}

func badRate(bps float64) bool { return bps != 0 && !(bps >= leastRate && bps < 1e15) }

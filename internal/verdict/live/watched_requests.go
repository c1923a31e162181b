package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Requests is what samples of a connection show of its requests. Times are sums of the intervals before samples.
type Requests struct {
	Span time.Duration
	// Turns is the number of data segments of the direction that has fewer: a turn has one or more in each. 0: nothing
	// like a turn was seen, or both directions have messages of several segments.
	Turns int64
	// The state at the samples, the first that applies: after a retransmission by the timer, the peer's receive window
	// closed, data unacknowledged, the last data sent, the last data received.
	Timer, ZeroWindow, InFlight, Peer, Program time.Duration
	// Timers is the number of periods in Timer, LongestTimer the longest of them, to a sample's interval.
	Timers       int64
	LongestTimer time.Duration
}

// clockTick is the longest tick of the kernel's clock for the times since data (CONFIG_HZ=100).
const clockTick = 10 * time.Millisecond

// Requests returns what the window shows of requests. segment is the payload of a full segment.
func (w *Samples) Requests(segment int64) (r Requests) {
	n := len(w.Of)
	if n < threshold.WatchedSamples {
		return r
	}
	first := &w.Of[0]
	last := &w.Of[n-1]
	r.Span = last.At - first.At
	out := w.Queues[n-1].DataSent - w.Queues[0].DataSent - (last.Retransmitted - first.Retransmitted)
	in := w.Queues[n-1].DataReceived - w.Queues[0].DataReceived
	fewer := min(out, in)
	bytes := last.Received - first.Received
	if out <= in {
		bytes = last.Acked - first.Acked
	}
	if fewer > 0 && float64(bytes) < threshold.SmallMessages*float64(fewer*segment) {
		r.Turns = fewer
	}
	running := time.Duration(0) // of the timer's period
	for i := 1; i < n; i++ {
		s := &w.Of[i]
		q := &w.Queues[i]
		interval := s.At - w.Of[i-1].At
		if s.Timeouts == 0 {
			running = 0
		}
		switch {
		case s.Timeouts > 0:
			if running == 0 {
				r.Timers++
			}
			running += interval
			r.LongestTimer = max(r.LongestTimer, running)
			r.Timer += interval
		case s.SendWnd == 0 && s.NotSent > 0:
			r.ZeroWindow += interval
		case q.Unacked > 0:
			r.InFlight += interval
		case (q.SinceSent - q.SinceData).Abs() < clockTick: // which came last is not known
		case q.SinceSent < q.SinceData:
			r.Peer += interval
		default:
			r.Program += interval
		}
	}
	return r
}

// Add adds the samples of another connection.
func (r *Requests) Add(o *Requests) {
	r.Span += o.Span
	r.Turns += o.Turns
	r.Timer += o.Timer
	r.ZeroWindow += o.ZeroWindow
	r.InFlight += o.InFlight
	r.Peer += o.Peer
	r.Program += o.Program
	r.Timers += o.Timers
	r.LongestTimer = max(r.LongestTimer, o.LongestTimer)
}

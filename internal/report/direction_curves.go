package report

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// newDirectionCurves thins a sender's samples to what is stored of them.
func newDirectionCurves(e *transfer.End) (c record.DirectionCurves) {
	if e == nil || len(e.Streams) == 0 || len(e.Streams[0].Samples) < 3 {
		return c
	}
	s := &e.Streams[0]
	samples := s.Samples
	from := s.First
	to := samples[len(samples)-1].At
	step := max((to-from)/150, 2*samples[len(samples)-1].MinRTT, 20*time.Millisecond)
	last := samples[0]
	before := samples[0]
	for _, now := range samples {
		at := int64(now.At - from)
		if now.Retransmitted > before.Retransmitted {
			c.Retransmissions = append(c.Retransmissions, flow.Mark{At: at, From: 0, To: max(now.InFlight, 1)})
		}
		before = now
		if now.At < from {
			last = now
			continue
		}
		c.InFlight = append(c.InFlight, flow.Point{At: at, Value: now.InFlight})
		c.Window = append(c.Window, flow.Point{At: at, Value: now.SendWnd})
		c.Cwnd = append(c.Cwnd, flow.Point{At: at, Value: now.Cwnd})
		c.RTT = append(c.RTT, flow.Point{At: at, Value: int64(now.RTT)})
		if span := now.At - last.At; span >= step {
			c.Rate = append(c.Rate, flow.Point{At: at,
				Value: (now.Acked - last.Acked) * 8 * int64(time.Second) / int64(span)})
			last = now
		}
	}
	c.Thin()
	return c
}

package report

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Capacity describes a search by feedback.
func Capacity(r *transfer.DatagramResult) record.CapacityDirection {
	overhead := 1 + float64(r.Headers)/float64(max(r.Spec.Size, 1))
	d := record.CapacityDirection{Direction: r.Spec.Direction, Protocol: "udp", Method: record.ByFeedback,
		AtLeast: !r.Congested,
		Trials:  []search.CapacityTrial{}}
	for _, s := range r.Seconds {
		variation := units.Duration(s.Delay)
		one := search.CapacityTrial{OfferedBps: Bps(s.Sent*int64(r.Spec.Size), s.Duration) * overhead,
			ReceivedBps: Bps(s.Bytes, s.Duration) * overhead, VariationMean: &variation}
		if s.Sent > 0 {
			one.LossRatio = float64(s.Lost) / float64(s.Sent)
		}
		d.CapacityBps = max(d.CapacityBps, one.ReceivedBps)
		d.Trials = append(d.Trials, one)
	}
	return d
}

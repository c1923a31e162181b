package report

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Capacity describes a search by feedback.
func Capacity(r *transfer.DatagramResult) record.CapacityDirection {
	overhead := 1 + float64(r.Headers)/float64(max(r.Spec.Size, 1))
	d := record.CapacityDirection{Direction: r.Spec.Direction, Protocol: "udp", Method: record.ByFeedback,
		AtLeast: !r.Congested,
		Trials:  []record.CapacityTrial{}}
	for _, s := range r.Seconds {
		one := record.CapacityTrial{OfferedBps: Bps(s.Sent*int64(r.Spec.Size), s.Duration) * overhead,
			ReceivedBps: Bps(s.Bytes,
				s.Duration) * overhead,
			VariationMeanS: seconds(s.Delay)}
		if s.Sent > 0 {
			one.LossRatio = float64(s.Lost) / float64(s.Sent)
		}
		d.CapacityBps = max(d.CapacityBps, one.ReceivedBps)
		d.Trials = append(d.Trials, one)
	}
	return d
}

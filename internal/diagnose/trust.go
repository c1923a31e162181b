package diagnose

import (
	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// trustAll adds the reasons of the whole capture to the trust in each direction, lowers the confidence of verdicts that
// they deny, and returns the trust in all directions together. It returns nil if there are none.
func trustAll(a *capture.Analysis, all []judgement) *trust.Trust {
	whole := trust.Capture{Packets: a.Packets, Dropped: a.Lost, HeadersCut: a.HeadersCut, ClockSteps: a.Order.Steps}
	var each []trust.Trust
	var bytes []int64
	for i := range all {
		for j := range all[i].record.Directions {
			d := &all[i].record.Directions[j]
			supported := d.Trust.Supports(d.Limiter)
			d.Trust.AddCapture(whole)
			if supported && !d.Trust.Supports(d.Limiter) {
				d.Confidence = verdict.Lower(d.Confidence)
				all[i].directions[j].diagnosis.Confidence = d.Confidence
			}
			each = append(each, *d.Trust)
			bytes = append(bytes, d.Bytes)
		}
	}
	if len(each) == 0 {
		return nil
	}
	together := trust.Merge(each, bytes)
	return &together
}

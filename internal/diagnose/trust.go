package diagnose

import (
	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// wholeCapture returns the observations about a whole capture.
func wholeCapture(a *capture.Analysis) trust.Capture {
	return trust.Capture{Packets: a.Packets, Dropped: a.Lost, HeadersCut: a.Kinds[capture.Cut], ClockSteps: a.Order.Steps}
}

// addCapture adds the reasons of the whole capture to the trust in a direction. It lowers the confidence of the
// verdict if they deny it.
func addCapture(t *trust.Trust, whole trust.Capture, v *verdict.Verdict) {
	supported := t.Supports(v.Limiter)
	t.AddCapture(whole)
	if supported && !t.Supports(v.Limiter) {
		v.Confidence = verdict.Lower(v.Confidence)
	}
}

// trustAll adds the reasons of the whole capture to the trust in each direction, lowers the confidence of verdicts that
// they deny, and returns the trust in all directions together. It returns nil if there are none.
func trustAll(a *capture.Analysis, all []judgement) *trust.Trust {
	whole := wholeCapture(a)
	var each []trust.Trust
	var bytes []int64
	for i := range all {
		for j := range all[i].record.Directions {
			d := &all[i].record.Directions[j]
			addCapture(d.Trust, whole, &d.Verdict)
			all[i].directions[j].diagnosis.Confidence = d.Confidence
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

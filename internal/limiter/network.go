package limiter

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// finding is what one piece of reasoning came to.
type finding struct {
	name       Name
	subtype    string
	confidence Confidence
	text       string
	values     map[string]float64
}

const (
	// standingQueue is how much longer than the empty path's the round trip must stay for
	// the difference to be a queue.
	standingQueue = 0.1
	// flatRate is the share of the best lasting rate from which the mean says that the
	// link was kept full: whatever loss costs is less than a tenth then.
	flatRate = 0.9
	losing   = 0.0005 // the share of retransmitted bytes from which loss is no accident
)

// judgeNetwork says what limits while neither end does: a full link or loss. Loss alone
// proves nothing, a full link with a shallow queue loses too; what tells them apart is
// whether the rate stays at the best the path ever gave.
func (h *hearing) judgeNetwork() finding {
	p := h.path
	if p.top <= 0 || p.mean <= 0 {
		return finding{name: Unknown, confidence: Low, text: "too few samples to see a rate"}
	}
	level := p.level()
	f := finding{values: map[string]float64{"steady_bps": p.mean, "best_bps": p.top, "retransmitted_ratio": p.resent,
		"rtt_s": p.rtt.Seconds(), "rtt_base_s": p.base.Seconds()}}
	loaded := fmt.Sprintf("round trip %s, %s when empty", units.Time(p.rtt), units.Time(p.base))
	switch {
	case p.policed():
		f.name, f.subtype, f.confidence = Congestion, Policer, Medium
		f.text = fmt.Sprintf("%s of the bytes were sent again at a rate that stays near %s, and no queue ever formed (%s; the first burst went at %s)",
			percent(p.resent), units.Rate(p.mean), loaded, units.Rate(p.top))
	case p.full():
		f.name, f.confidence = Bottleneck, when(level >= clearlyFlat, High)
		f.text = fmt.Sprintf("the path delivers a steady %s and a queue stands in it (%s)", units.Rate(p.mean), loaded)
	case level >= flatRate:
		f.name, f.confidence = Bottleneck, Medium
		f.text = fmt.Sprintf("the path delivers a steady %s, %s of the best it ever gave, without much of a queue (%s, %s sent again)",
			units.Rate(p.mean), percent(level), loaded, percent(p.resent))
	case p.resent > losing || h.timeouts():
		f.name, f.confidence = Congestion, when(level < clearlyUneven, High)
		f.text = fmt.Sprintf("%s of the bytes were sent again, and the rate of %s stays below the %s that the path gave between losses (%s)",
			percent(p.resent), units.Rate(p.mean), units.Rate(p.top), loaded)
	default:
		f.name, f.confidence = Congestion, Low
		f.text = fmt.Sprintf("the congestion window was what was full, without loss and without a queue: %s on average, %s at best (%s)",
			units.Rate(p.mean), units.Rate(p.top), loaded)
	}
	return f
}

// policed says whether there is loss at a steady rate without the queue that a link
// would build before it loses: at least a few packets long, if that can be told from the
// round trip, or else after a first burst at a rate that never came again.
func (p *path) policed() bool {
	const (
		queuePackets, packet = 5, 1500
		resolvable           = 0.05 // of the round trip
		burstOver            = 1.3
		steadyAfter          = 0.75
	)
	if p.resent <= losing || p.later <= 0 || p.mean < steadyAfter*p.later {
		return false
	}
	shortest := seconds(queuePackets * packet * 8 / p.later)
	if p.rtt-p.minRTT > shortest*2/5 {
		return false
	}
	return p.top > burstOver*p.later || shortest > scale(p.minRTT, resolvable)
}

func (h *hearing) timeouts() bool {
	for _, c := range h.connections {
		for i := range c.samples {
			if c.samples[i].Have&transfer.HaveRecovery != 0 && c.samples[i].Timeouts > 0 {
				return true
			}
		}
	}
	return false
}

func percent(share float64) string {
	if share < 0.01 && share > 0 {
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

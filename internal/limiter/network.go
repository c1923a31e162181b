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
	// standingQueue is how much longer than the empty path's the mean round trip must be
	// for the difference to be a queue.
	standingQueue = 0.2
	// flat is the share of the best lasting rate from which the mean says that the link
	// was kept full: the loss of a shallow queue costs less than a tenth then.
	flat = 0.9
	// burstOver is how far the first rate must lie above the settled one to be a
	// policer's full bucket.
	burstOver = 1.3
	// losing is the share of retransmitted bytes from which loss is no accident.
	losing = 0.0005
)

// judgeNetwork says what limits while neither end does: a full link or loss. Loss alone
// proves nothing, a full link with a shallow queue loses too; what tells them apart is
// whether the rate stays at the best the path ever gave.
func (h *hearing) judgeNetwork() finding {
	p := h.path
	if len(p.rates) == 0 || p.top <= 0 {
		return finding{name: Unknown, text: "too few samples to see a rate"}
	}
	level := p.mean / p.top
	values := map[string]float64{"steady_bps": p.mean, "best_bps": p.top, "retransmitted_ratio": p.resent,
		"rtt_s": p.rtt.Seconds(), "rtt_base_s": p.base.Seconds()}
	switch {
	case p.policed():
		return finding{Congestion, Policer, Medium, fmt.Sprintf("the first burst went at %s, everything after it at a constant %s with %s lost and no queue (round trip %s, least %s)",
			units.Rate(p.burst), units.Rate(p.mean), percent(p.resent), units.Time(p.rtt), units.Time(p.minRTT)), values}
	case p.queueing() >= standingQueue && level >= 0.8:
		return finding{Bottleneck, "", High, fmt.Sprintf("the path delivers a steady %s and a queue stands in it: the round trip is %s, %s when empty",
			units.Rate(p.mean), units.Time(p.rtt), units.Time(p.base)), values}
	case level >= flat && (p.resent > losing || p.queueing() > 0.05):
		return finding{Bottleneck, "", Medium, fmt.Sprintf("the path delivers a steady %s, within %s of the best it ever gave, though its queue is short (round trip %s, %s when empty, %s retransmitted)",
			units.Rate(p.mean), percent(1-level), units.Time(p.rtt), units.Time(p.base), percent(p.resent)), values}
	case p.resent > losing || h.timeouts():
		confidence := High
		if level > 0.8 {
			confidence = Medium
		}
		return finding{Congestion, "", confidence, fmt.Sprintf("%s of the bytes were sent again, and the rate of %s stays below the %s it reached between losses; no queue stands in the path (round trip %s, least %s)",
			percent(p.resent), units.Rate(p.mean), units.Rate(p.top), units.Time(p.rtt), units.Time(p.minRTT)), values}
	}
	return finding{name: Unknown, confidence: Low, text: fmt.Sprintf("%s without loss, without a queue (round trip %s, least %s) and without a full window",
		units.Rate(p.mean), units.Time(p.rtt), units.Time(p.minRTT)), values: values}
}

// policed says whether loss without a queue holds the rate well below what a first burst
// reached.
func (p *path) policed() bool {
	return p.resent > losing && p.queueing() < standingQueue && p.mean > 0 && p.burst > burstOver*p.top
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

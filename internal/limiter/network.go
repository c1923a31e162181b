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
	// unlasting is the same from which nothing lasted.
	unlasting = 1.25
	// evenRate is the share within round trips.
	evenRate = 0.8
	losing   = 0.0005 // the share of retransmitted bytes from which loss is no accident
	// heavyLoss is the share that a short queue does not lose even to BBR.
	heavyLoss = 0.1
	// mostlyQueued is the share of samples from which a queue is hardly ever gone.
	mostlyQueued = 0.65
)

// judgeNetwork says what limits while neither end does: a full link or loss. Loss alone
// proves nothing, a full link with a shallow queue loses too; what tells them apart is
// whether the rate stays at the best the path ever gave.
func (h *hearing) judgeNetwork() finding {
	p := h.path
	if p.top <= 0 || p.mean <= 0 {
		return finding{name: Unknown, confidence: Low, text: "too few samples to see a rate"}
	}
	level, answers := p.level(), h.answersShare()
	f := finding{values: map[string]float64{"steady_bps": p.mean, "best_bps": p.top, "retransmitted_ratio": p.resent,
		"rtt_s": p.rtt.Seconds(), "rtt_base_s": p.base.Seconds()}}
	loaded := fmt.Sprintf("round trip %s, %s when empty", units.Time(p.rtt), units.Time(p.base))
	switch {
	case level > unlasting && h.opening():
		f.name, f.confidence = SlowStart, Medium
		f.text = fmt.Sprintf("the congestion window kept opening to the end: %s in the last rounds, more than ever lasted for four round trips", units.Rate(p.mean))
	case p.losesUnqueued():
		f.name, f.confidence = Congestion, when(level < clearlyUneven, High)
		steady := "at " + units.Rate(p.mean).String()
		if h.policed() {
			f.subtype, f.confidence = Policer, Medium
			steady = "at a rate that stays near " + units.Rate(p.mean).String()
			if p.burst() {
				steady += " after a first burst at " + units.Rate(p.peak).String()
			}
		}
		f.text = fmt.Sprintf("%s of the bytes were sent again %s, and no queue ever formed (%s)", percent(p.resent), steady, loaded)
	case answers >= mostlyAnswers:
		f.name, f.confidence = AckPath, Medium
		f.text = fmt.Sprintf("acknowledgements queue on their way back: bytes that the receiver has had are acknowledged ever later (%s)", loaded)
	case (p.full() || p.standing() && level >= flatRate) && (p.resent < heavyLoss || p.queued >= mostlyQueued):
		// The sender alone cannot know which way the queue stands.
		f.name, f.confidence = Bottleneck, when(level >= clearlyFlat && !p.uneven() && h.receiver != nil && answers <= hardlyAnswers, High)
		f.text = fmt.Sprintf("the path delivers a steady %s and a queue stands in it (%s)", units.Rate(p.mean), loaded)
	case level >= flatRate && !p.uneven() && p.resent < heavyLoss: // the queue is too short to be seen
		f.name, f.confidence = Bottleneck, Medium
		f.text = fmt.Sprintf("the path delivers a steady %s, %s of the best it ever gave, without much of a queue (%s, %s sent again)",
			units.Rate(p.mean), percent(level), loaded, percent(p.resent))
	case p.resent > losing || h.timeouts():
		f.name, f.confidence = Congestion, when(level < clearlyUneven && !p.standing(), High)
		f.text = fmt.Sprintf("%s of the bytes were sent again, and the rate of %s stays below the %s that the path gave between losses (%s)",
			percent(p.resent), units.Rate(p.mean), units.Rate(p.top), loaded)
	case h.opening():
		f.name, f.confidence = SlowStart, Medium
		f.text = fmt.Sprintf("the congestion window kept opening without loss to the end and nothing else was full: %s on average, %s at best (%s)",
			units.Rate(p.mean), units.Rate(p.top), loaded)
	default:
		f.name, f.confidence = Congestion, Low
		f.text = fmt.Sprintf("the congestion window was what was full, without loss and without a queue: %s on average, %s at best (%s)",
			units.Rate(p.mean), units.Rate(p.top), loaded)
	}
	return f
}

// opening says whether the congestion windows still grew in the second half of the
// transfer.
func (h *hearing) opening() bool {
	const grows = 1.1
	var middle, last int64
	for _, c := range h.connections {
		middle += c.samples[len(c.samples)/2].Cwnd
		last += c.samples[len(c.samples)-1].Cwnd
	}
	return float64(last) >= grows*float64(middle)
}

// losesUnqueued says whether there is loss without the queue that a link builds before
// it loses: at least a few packets long, where that can be told from the round trip.
// Where it cannot, a first burst at a rate that never came again says the same.
func (p *path) losesUnqueued() bool {
	const (
		queuePackets, packet = 5, 1500
		resolvable           = 0.05 // of the round trip
	)
	if p.resent <= losing || p.later <= 0 {
		return false
	}
	shortest := seconds(queuePackets * packet * 8 / p.later)
	formed := p.rtt-p.minRTT > shortest*2/5
	return !formed && (shortest > scale(p.minRTT, resolvable) || p.burst())
}

// burst says whether the transfer began well above all its later rates.
func (p *path) burst() bool { return p.peak > 1.3*p.later }

// policed says whether unqueued loss comes from a policer: it leaves a steady rate. BBR
// holds one through any loss, so that only the burst tells there.
func (h *hearing) policed() bool {
	const steady = 0.75
	p := h.path
	return p.mean >= steady*p.later && (p.burst() || !h.connections[0].paced())
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

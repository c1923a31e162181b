package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// finding is what one piece of reasoning came to.
type finding struct {
	name       verdict.Name
	subtype    string
	confidence verdict.Confidence
	candidates []verdict.Name // what looks alike, where something does
	code       verdict.Code
	values     verdict.Values
}

// networkFacts are what the verdict on the network hangs on, besides the path.
type networkFacts struct {
	opening      bool    // the congestion windows still grew in the second half
	regrowing    bool    // and what they grew back from was a loss
	timeouts     bool    // a retransmission timeout was seen
	policed      bool    // loss without a queue left a steady rate
	receiverSeen bool    // the receiver's counters tell which way a queue stands
	ackQueue     float64 // the share of the queue that are acknowledgements on their way back
	acksSteady   steadiness
	starved      bool // an end had no core most of the time, and nothing shows loss while both had one
}

// judgeNetwork says what limits while neither end does: a full link or loss. Loss alone
// proves nothing, a full link with a shallow queue loses too; what tells them apart is
// whether the rate stays at the best the path ever gave.
func (p *path) judgeNetwork(facts networkFacts) finding {
	if p.top <= 0 || p.mean <= 0 {
		return finding{name: verdict.Unknown, confidence: verdict.Low, code: verdict.NoRate}
	}
	level := p.level()
	f := finding{values: verdict.Values{"steady_bps": p.mean, "best_bps": p.top, "retransmitted_ratio": p.resent,
		"rtt_s": p.rtt.Seconds(), "rtt_base_s": p.base.Seconds()}}
	steadyWithQueue := p.full() || p.standing() && level >= threshold.FlatRate && !(p.byRates && p.uneven())
	notBBRsLoss := p.resent < threshold.HeavyLoss || p.queued >= threshold.MostlyQueued
	switch {
	case level > threshold.Unlasting && facts.opening && !facts.regrowing:
		f.name = verdict.SlowStart
		f.confidence = verdict.Medium
		f.code = verdict.CwndOpensToTheEnd
	case p.losesWithoutQueue():
		f.name = verdict.Congestion
		f.code = verdict.LossWithoutQueue
		f.confidence = verdict.When(level < threshold.ClearlyUneven, verdict.High)
		if facts.policed {
			f.subtype = verdict.Policer
			f.confidence = verdict.Medium
			f.code = verdict.PolicedRate
			if p.burst() {
				f.values["peak_bps"] = p.peak
			}
		}
	case facts.ackQueue >= threshold.AckQueue:
		f.name = verdict.AckPath
		f.confidence = verdict.Medium
		f.code = verdict.QueueOfAcks
	case p.standing() && facts.acksSteady.clocked():
		// A device whose rate varies may merge what comes in one turn, and its receiver
		// acknowledges each turn: it looks alike.
		f.name = verdict.AckPath
		f.confidence = verdict.Low
		f.code = verdict.SteadyAcks
		f.candidates = []verdict.Name{verdict.AckPath, verdict.Bottleneck}
		facts.acksSteady.tell(f.values)
	case steadyWithQueue && notBBRsLoss:
		// The sender alone cannot know which way the queue stands, and a path that loses while its queue is short may
		// do so on a faster link as well.
		overflows := p.resent <= threshold.Losing || p.queueing() >= threshold.LongQueue
		sure := level >= threshold.ClearlyFlat && !p.uneven() && facts.receiverSeen &&
			facts.ackQueue <= threshold.AckQueueHardly && overflows
		f.confidence = verdict.When(sure, verdict.High)
		f.name = verdict.Bottleneck
		f.code = verdict.FullLink
		if facts.acksSteady.mayBeClocked() {
			f.name = verdict.Unknown
			f.confidence = verdict.Low
			f.code = verdict.QueueEitherWay
			f.candidates = []verdict.Name{verdict.Bottleneck, verdict.AckPath}
			facts.acksSteady.tell(f.values)
		}
	case level >= threshold.FlatRate && !p.uneven() && p.resent < threshold.HeavyLoss: // the queue is too short to be seen
		f.code = verdict.FullLinkNoQueue
		f.values["best_ratio"] = level
		f.name, f.confidence, f.candidates = p.fullWithoutQueue(facts.regrowing)
	case p.resent > threshold.Losing && level >= threshold.FlatRate:
		// Nothing better ever lasted: what loss costs cannot be seen in the rate, only that
		// the link stands idle in between, or that this much is lost.
		f.name = verdict.Congestion
		f.code = verdict.LossAllTheTime
		f.confidence = verdict.Medium
		f.values["best_ratio"] = level
		if p.uneven() {
			f.values["even_ratio"] = p.evenness
		}
	case p.resent > threshold.Losing || facts.timeouts && level < threshold.FlatRate:
		f.name = verdict.Congestion
		f.code = verdict.LossBelowBest
		f.confidence = verdict.When(level < threshold.ClearlyUneven && !p.standing(), verdict.High)
	case facts.opening && facts.regrowing:
		f.name = verdict.Congestion
		f.confidence = verdict.Medium
		f.code = verdict.LossBelowBest
	case facts.opening:
		f.name = verdict.SlowStart
		f.confidence = verdict.Medium
		f.code = verdict.CwndOpens
	default:
		f.name = verdict.Congestion
		f.confidence = verdict.Low
		f.code = verdict.CwndFull
	}
	switch {
	case f.name != verdict.Congestion:
	case p.resent > threshold.Losing && p.needless >= threshold.Needless:
		f.subtype = verdict.Reordering
		f.code = verdict.SentAgainNeedlessly
		f.values["needless_ratio"] = p.needless
	case facts.starved:
		f.name = verdict.Unknown
		f.subtype = ""
		f.confidence = verdict.Low
		f.code = verdict.WhileStarved
	}
	return f
}

func (a *analysis) networkFacts() networkFacts {
	return networkFacts{opening: a.opening(), regrowing: a.regrowing(), timeouts: a.timeouts(), policed: a.policed(),
		receiverSeen: a.receiver != nil, ackQueue: a.ackQueueShare(), acksSteady: a.ackSteadiness(),
		starved: a.starved()}
}

// opening says whether the congestion windows still grew in the second half of the
// transfer.
func (a *analysis) opening() bool {
	var middle, last int64
	for _, c := range a.connections {
		middle += c.samples[len(c.samples)/2].Cwnd
		last += c.samples[len(c.samples)-1].Cwnd
	}
	return float64(last) >= threshold.StillOpening*float64(middle)
}

// regrowing says that the congestion windows grew as they do after a loss, by a segment or
// so a round trip (RFC 5681, 3.1), and were no longer in slow start: even a single loss holds
// them down for seconds on a fast path.
func (a *analysis) regrowing() bool {
	for _, c := range a.connections {
		s := &c.samples[len(c.samples)/2]
		if s.Retransmitted == 0 && !c.hadLost || s.Ssthresh <= 0 || s.Cwnd < s.Ssthresh {
			return false
		}
	}
	return len(a.connections) > 0
}

// fullWithoutQueue is what a steady rate without a queue stands for. CUBIC's window hardly grows where the last loss
// was, so that alone is no full link where its queue could be told from the round trip.
func (p *path) fullWithoutQueue(regrowing bool) (verdict.Name, verdict.Confidence, []verdict.Name) {
	if regrowing && p.showsNoQueue() {
		return verdict.Unknown, verdict.Low, []verdict.Name{verdict.Bottleneck, verdict.Congestion}
	}
	return verdict.Bottleneck, verdict.Medium, nil
}

// losesWithoutQueue says whether there is loss without the queue that a link builds before
// it loses: at least a few packets long, where that can be told from the round trip.
// Where it cannot, a first burst at a rate that never came again says the same.
func (p *path) losesWithoutQueue() bool {
	if p.resent <= threshold.Losing || p.later <= 0 {
		return false
	}
	return p.showsNoQueue() || !p.queueForms() && p.burst()
}

// queueBeforeLoss is how long a queue of a few packets is, behind which a link loses at the earliest.
func (p *path) queueBeforeLoss() time.Duration {
	return seconds(threshold.QueueBeforeLoss * threshold.PacketBytes * 8 / p.later)
}

// queueForms says that round trips grew by such a queue.
func (p *path) queueForms() bool {
	return p.rtt-p.minRTT > scale(p.queueBeforeLoss(), threshold.QueueFormed)
}

// showsNoQueue says that such a queue could be told from the round trip, and that there is none.
func (p *path) showsNoQueue() bool {
	return p.later > 0 && p.queueBeforeLoss() > scale(p.minRTT, threshold.QueueResolvable) && !p.queueForms()
}

// burst says whether the transfer began well above all its later rates.
func (p *path) burst() bool { return p.peak > threshold.FirstBurst*p.later }

func (a *analysis) timeouts() bool {
	for _, c := range a.connections {
		for i := range c.samples {
			if c.samples[i].Have&transfer.HaveRecovery != 0 && c.samples[i].Timeouts > 0 {
				return true
			}
		}
	}
	return false
}

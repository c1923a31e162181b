package live

import (
	"cmp"
	"maps"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// outcome is the conclusion of a network rule. The function values adds the evidence's values.
type outcome struct {
	name       verdict.Name
	subtype    string
	confidence verdict.Confidence // one step lower without certain
	certain    condition
	candidates []verdict.Name
	code       verdict.Code
	values     func(facts, verdict.Values)
}

// networkRule is one rule on the limiter while neither end limits.
type networkRule struct {
	name string
	when condition
	then outcome
}

var (
	// hasSteadyQueue is also true where only the congestion window was ever full.
	hasSteadyQueue = rule.Define("hasSteadyQueue", "a full link, or a standing queue at a steady rate",
		rule.Any(isFull, rule.All(hasStandingQueue, utilization.AtLeast(threshold.FlatRate),
			rule.Not(rule.All(evennessByDeliveryRate, isUneven)))))
	// BBR may lose a tenth and more behind a short queue. A window of few segments overflows one every few round trips,
	// and is repeated as a whole where too few duplicate acknowledgements follow a loss.
	explainsLoss = rule.Define("queueExplainsLoss", "the queue explains the losses",
		rule.Any(retransmitRatio.Below(threshold.HeavyLoss),
			queuedRatio.AtLeast(threshold.MostlyQueued),
			rule.All(rule.Not(modelPaced), segmentsInFlight.Below(threshold.FewInFlight))))
	isFullLink       = rule.All(hasSteadyQueue, explainsLoss)
	isSteadyUnqueued = rule.All(utilization.AtLeast(threshold.FlatRate), rule.Not(isUneven),
		retransmitRatio.Below(threshold.HeavyLoss))
	isBelowBest = utilization.Below(threshold.ClearlyUneven)
	isLosing    = retransmitRatio.Above(threshold.Losing)
)

// networkRules decide what limits in the time that no end accounts for: the first one that applies. Loss alone proves
// nothing, because a full link with a shallow queue loses too. A rate that stays at the best one shows a full link.
var networkRules = []networkRule{
	{"no-rate", rule.Not(rule.All(lastingRate.Positive(), meanRate.Positive())),
		outcome{name: verdict.Unknown, confidence: verdict.Low, code: verdict.NoRate}},
	{"low-ssthresh", rule.All(cwndGrows, avoidsFrom.Positive(), rule.Not(hasStandingQueue), rule.Not(modelPaced)),
		outcome{name: verdict.Congestion, subtype: verdict.LowSsthresh, confidence: verdict.Medium,
			code: verdict.CwndAvoids, values: addSsthresh}},
	{"still-growing", rule.All(utilization.Above(threshold.StillGrowing), cwndGrows,
		rule.Not(cwndRegrows)),
		outcome{name: verdict.SlowStart, confidence: verdict.Medium, code: verdict.CwndOpensToTheEnd, values: addPath}},
	{"policer", rule.All(losesManyAtOnce,
		rule.Any(rule.All(losesWithoutQueue, keepsRate), rule.All(losesBeyondQueue, keepsSawtooth))),
		outcome{name: verdict.Congestion, subtype: verdict.Policer, confidence: verdict.Medium, certain: policerClear,
			code: verdict.PolicedRate, values: addPeak}},
	{"loss-without-queue", losesWithoutQueue,
		outcome{name: verdict.Congestion, confidence: verdict.High, certain: isBelowBest, code: verdict.LossWithoutQueue,
			values: addPath}},
	{"queue-of-acks", ackQueueRatio.AtLeast(threshold.AckQueue),
		outcome{name: verdict.AckPath, confidence: verdict.Medium, code: verdict.QueueOfAcks, values: addPath}},
	// A device with a varying rate may merge packets, and its receiver then acknowledges each batch. That looks alike.
	{"steady-acks", rule.All(hasStandingQueue, isClocked),
		outcome{name: verdict.AckPath, confidence: verdict.Low, code: verdict.SteadyAcks, values: addAckRates,
			candidates: []verdict.Name{verdict.AckPath, verdict.Bottleneck}}},
	{"queue-either-way", rule.All(isFullLink, mayBeClocked),
		outcome{name: verdict.Unknown, confidence: verdict.Low, code: verdict.QueueEitherWay, values: addAckRates,
			candidates: []verdict.Name{verdict.Bottleneck, verdict.AckPath}}},
	// The sender alone cannot know in which direction the queue is. A path that loses segments while its queue is short
	// may do so on a faster link as well.
	{"full-link", isFullLink,
		outcome{name: verdict.Bottleneck, confidence: verdict.High, code: verdict.FullLink, values: addPath,
			certain: rule.All(utilization.AtLeast(threshold.ClearlyFlat), rule.Not(isUneven), receiverSeen,
				ackQueueRatio.AtMost(threshold.AckQueueHardly),
				rule.Any(rule.Not(isLosing), queueRatio.AtLeast(threshold.LongQueue)))}},
	// CUBIC's window hardly grows near the last loss, so a steady rate alone proves no full link.
	{"steady-after-loss", rule.All(isSteadyUnqueued, cwndRegrows, showsNoQueue),
		outcome{name: verdict.Unknown, confidence: verdict.Low, code: verdict.FullLinkNoQueue, values: addUtilization,
			candidates: []verdict.Name{verdict.Bottleneck, verdict.Congestion}}},
	{"full-link-no-queue", isSteadyUnqueued,
		outcome{name: verdict.Bottleneck, confidence: verdict.Medium, code: verdict.FullLinkNoQueue, values: addUtilization}},
	{"marks-below-best", marksReduceCwnd,
		outcome{name: verdict.Congestion, subtype: verdict.Marked, confidence: verdict.Medium, code: verdict.MarksBelowBest,
			values: addMarks, certain: utilization.Below(threshold.FlatRate)}},
	// No better rate ever lasted, so the rate does not show what the loss costs.
	{"loss-all-the-time", rule.All(isLosing, utilization.AtLeast(threshold.FlatRate)),
		outcome{name: verdict.Congestion, confidence: verdict.Medium, code: verdict.LossAllTheTime, values: addEvenness}},
	{"loss-below-best",
		rule.Any(isLosing, rule.All(hasTimeouts, utilization.Below(threshold.FlatRate))),
		outcome{name: verdict.Congestion, confidence: verdict.High, code: verdict.LossBelowBest, values: addPath,
			certain: rule.All(isBelowBest, rule.Not(hasStandingQueue))}},
	{"cwnd-regrows", rule.All(cwndGrows, cwndRegrows),
		outcome{name: verdict.Congestion, confidence: verdict.Medium, code: verdict.LossBelowBest, values: addPath}},
	{"cwnd-opens", cwndGrows,
		outcome{name: verdict.SlowStart, confidence: verdict.Medium, code: verdict.CwndOpens, values: addPath}},
	{"cwnd-full", condition{},
		outcome{name: verdict.Congestion, confidence: verdict.Low, code: verdict.CwndFull, values: addPath}},
}

// congestionRules refine a verdict of congestion: the first one that applies. Fields that its outcome omits stay.
var congestionRules = []networkRule{
	{"reordering", rule.All(isCongestion, isLosing, dsackRatio.AtLeast(threshold.SpuriousRatio)),
		outcome{name: verdict.Congestion, subtype: verdict.Reordering, code: verdict.SpuriousRetransmissions,
			values: func(f facts, v verdict.Values) { v["needless_ratio"] = f.path.dsackRatio }}},
	{"starved-host", rule.All(isCongestion, isStarved),
		outcome{name: verdict.Unknown, confidence: verdict.Low, code: verdict.LossWithoutCPU}},
}

// finding is the conclusion of the network rules.
type finding struct {
	name       verdict.Name
	subtype    string
	confidence verdict.Confidence
	candidates []verdict.Name // limiters with the same symptoms, if any
	code       verdict.Code
	values     verdict.Values
}

// judgeNetwork applies the rules on the network to the transfer.
func (a *analysis) judgeNetwork() {
	f := a.whole()
	for i := range networkRules {
		if r := &networkRules[i]; r.when.IsTrue(f) {
			a.network = r.then.finding(f)
			break
		}
	}
	for i := range congestionRules {
		if r := &congestionRules[i]; r.when.IsTrue(f) {
			refined := r.then.finding(f)
			refined.confidence = cmp.Or(refined.confidence, a.network.confidence)
			refined.candidates = a.network.candidates
			values := a.network.values
			maps.Copy(values, refined.values)
			refined.values = values
			a.network = refined
			break
		}
	}
}

func (o *outcome) finding(f facts) finding {
	found := finding{name: o.name, subtype: o.subtype, confidence: o.confidence, candidates: o.candidates, code: o.code}
	if !o.certain.IsTrue(f) {
		found.confidence = verdict.Lower(o.confidence)
	}
	if o.values != nil {
		found.values = verdict.Values{}
		o.values(f, found.values)
	}
	return found
}

// String describes the outcome: limiter, subtype, confidence, candidates.
func (o *outcome) String() string {
	text := string(o.name) + verdict.Suffix(o.subtype)
	if o.confidence != "" {
		text += ", " + string(o.confidence)
	}
	if !o.certain.IsAlways() {
		text += "; " + string(verdict.Lower(o.confidence)) + " unless " + o.certain.Text()
	}
	if len(o.candidates) > 0 {
		text += "; candidates " + verdict.Join(o.candidates, ", ")
	}
	return text
}

// addPath adds the path's rates, losses and round trips.
func addPath(f facts, v verdict.Values) {
	v["steady_bps"] = f.path.meanRate
	v["best_bps"] = f.path.lastingRate
	v["retransmitted_ratio"] = f.path.retransmitRatio
	v["rtt_s"] = f.path.meanRTT.Seconds()
	v["rtt_base_s"] = f.path.baseRTT.Seconds()
}

func addPeak(f facts, v verdict.Values) {
	addPath(f, v)
	switch {
	case startsWithBurst.IsTrue(f):
		v["peak_bps"] = f.path.peakRate
	case deliversBurst.IsTrue(f):
		v["peak_bps"] = f.measured.delivery.first
	}
}

func addSsthresh(f facts, v verdict.Values) {
	addPath(f, v)
	v["ssthresh_bytes"] = float64(f.measured.avoidsFrom)
}

func addMarks(f facts, v verdict.Values) {
	addPath(f, v)
	v["marks"] = float64(f.measured.markedTrips)
}

func addAckRates(f facts, v verdict.Values) {
	addPath(f, v)
	v["acks_scatter_ratio"] = f.measured.ackRates.acks
	v["data_scatter_ratio"] = f.measured.ackRates.data
}

func addUtilization(f facts, v verdict.Values) {
	addPath(f, v)
	v["best_ratio"] = min(f.path.utilization(), 1) // the best one leaves single spans out
}

func addEvenness(f facts, v verdict.Values) {
	addUtilization(f, v)
	if isUneven.IsTrue(f) {
		v["even_ratio"] = f.path.evenness
	}
}

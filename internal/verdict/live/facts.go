package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// facts are what the rules of a transfer read. Rules on the transfer as a whole read the analysis alone.
type facts struct {
	*analysis
	c *connection
	r *round
}

// cache keep what several rules ask of the transfer as a whole.
type cache struct{ isFull, isFullInBatches, isContinuous, isClearlyFull rule.Result }

type (
	quantity  = rule.Quantity[facts]
	condition = rule.Condition[facts]
)

type numbers = []*threshold.Number

func ofTime(d time.Duration) float64 { return float64(d) }

// Inputs of the rules on the transfer as a whole.
var (
	meanRate = &quantity{Name: "meanRate", Unit: "bit/s", Means: "rate of all connections after slow start",
		Of: func(f facts) float64 { return f.path.meanRate }}
	lastingRate = &quantity{Name: "lastingRate", Unit: "bit/s",
		Means: "best rate over two spans in a row, the best spans left out",
		Of:    func(f facts) float64 { return f.path.lastingRate },
		Uses:  numbers{threshold.BestLeftOut}}
	lastingRateStarted = &quantity{Name: "lastingRateStarted", Unit: "bit/s", Means: "lastingRate after slow start",
		Of: func(f facts) float64 { return f.path.lastingRateStarted }}
	peakRate = &quantity{Name: "peakRate", Unit: "bit/s", Means: "best rate over two spans in a row",
		Of: func(f facts) float64 { return f.path.peakRate }}
	utilization = &quantity{Name: "utilization", Unit: "ratio", Means: "meanRate / lastingRate",
		Of: func(f facts) float64 { return f.path.utilization() }}
	queueRatio = &quantity{Name: "queueRatio", Unit: "ratio",
		Means: "standing queue (srtt - 2 rttvar - base RTT) / base RTT",
		Of:    func(f facts) float64 { return f.path.queueRatio() }}
	queuedRatio = &quantity{Name: "queuedRatio", Unit: "ratio", Means: "share of the samples with a standing queue",
		Of:   func(f facts) float64 { return f.path.queuedRatio },
		Uses: numbers{threshold.StandingQueue}}
	evenness = &quantity{Name: "evenness", Unit: "ratio",
		Means: "mean rate / best tenth of the rates within half a round trip; 0: not known",
		Of:    func(f facts) float64 { return f.path.evenness },
		Uses: numbers{threshold.EvenSegments,
			threshold.EvenStretches,
			threshold.EvenBest}}
	retransmitRatio = &quantity{Name: "retransmitRatio", Unit: "ratio", Means: "retransmitted bytes / bytes sent",
		Of: func(f facts) float64 { return f.path.retransmitRatio }}
	segmentsInFlight = &quantity{Name: "segmentsInFlight", Unit: "segments",
		Means: "meanRate x mean round trip of each connection",
		Of: func(f facts) float64 {
			return f.path.meanRate / 8 * f.path.meanRTT.Seconds() / float64(len(f.connections)) / float64(f.connections[0].mss)
		}}
	dsackRatio = &quantity{Name: "dsackRatio", Unit: "ratio",
		Means: "retransmitted segments that had arrived (DSACK), where reordering was seen",
		Of:    func(f facts) float64 { return f.path.dsackRatio },
		Uses:  numbers{threshold.ReorderedSegments}}
	minRTT = &quantity{Name: "minRTT", Unit: "time", Means: "least round trip of all connections",
		Of: func(f facts) float64 { return ofTime(f.path.minRTT) }}
	rttGrowth = &quantity{Name: "rttGrowth", Unit: "time", Means: "mean round trip after slow start - minRTT",
		Of: func(f facts) float64 { return ofTime(f.path.meanRTT - f.path.minRTT) }}
	queueBeforeLoss = &quantity{Name: "queueBeforeLoss", Unit: "time",
		Means: "queueing delay of the shortest queue that a link has when it drops",
		Of:    func(f facts) float64 { return ofTime(f.path.queueBeforeLoss()) },
		Uses: numbers{threshold.QueueBeforeLoss,
			threshold.PacketBytes}}
	rttJitterRatio = &quantity{Name: "rttJitterRatio", Unit: "ratio",
		Means: "standard deviation of srtt / (mean RTT - minRTT), of watched connections",
		Of:    func(f facts) float64 { return f.path.rttJitterRatio }}
	linkHeadroom = &quantity{Name: "linkHeadroom", Unit: "ratio",
		Means: "least link rate / lastingRateStarted, by serialisation delay; 0: not known",
		Of:    func(f facts) float64 { return f.path.linkHeadroom },
		Uses: numbers{threshold.SerialisationSeen,
			threshold.MinSerialisation,
			threshold.SmoothedAfter,
			threshold.LeastWaits,
			threshold.MaxHeadroom}}
	arrivalVariation = &quantity{Name: "arrivalVariation", Unit: "ratio",
		Means: "standard deviation of the bytes in half a round trip / bytes in a round trip; 0: not known",
		Of:    func(f facts) float64 { return f.path.arrivalVariation },
		Uses:  numbers{threshold.VariationSpan}}
	gapEvenness = &quantity{Name: "gapEvenness", Unit: "ratio",
		Means: "evenness, or the same by stretches of few segments",
		Of: func(f facts) float64 {
			if f.path.evenness == 0 {
				return f.path.evennessShortWindows
			}
			return f.path.evenness
		},
		Uses: numbers{threshold.ByChance}}
	lossDispersion = &quantity{Name: "lossDispersion", Unit: "ratio",
		Means: "variance / mean of the retransmissions in a round after slow start; 0: not known",
		Of:    func(f facts) float64 { return f.measured.lossDispersion },
		Uses: numbers{threshold.DispersionRounds,
			threshold.PolicedTime}}
	queueAtLoss = &quantity{Name: "queueAtLoss", Unit: "time",
		Means: "growth of the round trip when losses begin in congestion avoidance, the median",
		Of:    func(f facts) float64 { return ofTime(f.measured.laterLosses.queue) }}
	lostTime = &quantity{Name: "lostTime", Unit: "time",
		Means: "time that the segments lost at once take at lastingRateStarted; 0: not known",
		Of:    func(f facts) float64 { return ofTime(f.measured.laterLosses.time(f.path)) },
		Uses:  numbers{threshold.PacketBytes}}
	lossEventCount = &quantity{Name: "lossEventCount", Unit: "events", Means: "number of such losses",
		Of: func(f facts) float64 { return float64(f.measured.laterLosses.count) }}
	lossWindowSpread = &quantity{Name: "lossWindowSpread", Unit: "ratio",
		Means: "largest / smallest congestion window when later losses begin; 0: not known",
		Of:    func(f facts) float64 { return f.measured.laterLosses.windowSpread() },
		Uses: numbers{threshold.SettledTrips,
			threshold.PolicedLosses}}
	queueAtAnyLoss = &quantity{Name: "queueAtAnyLoss", Unit: "time", Means: "queueAtLoss, slow start included",
		Of: func(f facts) float64 { return ofTime(f.measured.losses.queue) }}
	anyLostTime = &quantity{Name: "anyLostTime", Unit: "time", Means: "lostTime, slow start included; 0: not known",
		Of:   func(f facts) float64 { return ofTime(f.measured.losses.time(f.path)) },
		Uses: numbers{threshold.PacketBytes}}
	firstDeliveryRate = &quantity{Name: "firstDeliveryRate", Unit: "bit/s",
		Means: "best delivery rate of the kernel until the first losses end",
		Of:    func(f facts) float64 { return f.measured.delivery.first }}
	laterDeliveryRate = &quantity{Name: "laterDeliveryRate", Unit: "bit/s",
		Means: "best one after them, the best twentieth left out; 0: not known",
		Of:    func(f facts) float64 { return f.measured.delivery.later },
		Uses: numbers{threshold.SettledTrips,
			threshold.BestLeftOut}}
	ackQueueRatio = &quantity{Name: "ackQueueRatio", Unit: "ratio",
		Means: "share of the queueing delay in which acknowledgements waited; 0: not known",
		Of:    func(f facts) float64 { return f.measured.ackQueue },
		Uses: numbers{threshold.AckLags,
			threshold.AckLagResolved,
			threshold.AckLagGap}}
	ackRateVariation = &quantity{Name: "ackRateVariation", Unit: "ratio",
		Means: "standard deviation / mean of the rate of acknowledgements; 0: not known",
		Of:    func(f facts) float64 { return f.measured.ackRates.acks },
		Uses: numbers{threshold.SteadySpans,
			threshold.EvenedOut}}
	dataRateVariation = &quantity{Name: "dataRateVariation", Unit: "ratio",
		Means: "the same of the data that they acknowledge",
		Of:    func(f facts) float64 { return f.measured.ackRates.data }}

	cwndGrows = rule.Fact("cwndGrows", "the congestion windows grew in the second half",
		func(f facts) bool { return f.measured.cwndGrows },
		threshold.StillOpening)
	markedTrips = &quantity{Name: "markedTrips", Unit: "round trips",
		Means: "round trips in which the receiver reported congestion marks (ECN)",
		Of:    func(f facts) float64 { return float64(f.measured.markedTrips) }}
	lossyTrips = &quantity{Name: "lossyTrips", Unit: "round trips",
		Means: "round trips in which segments were retransmitted",
		Of:    func(f facts) float64 { return float64(f.measured.lossyTrips) }}
	cwndRegrows = rule.Fact("cwndRegrows", "they were in congestion avoidance after a loss or a mark (RFC 5681, 3.1)",
		func(f facts) bool { return f.measured.cwndRegrows })
	avoidsFrom = &quantity{Name: "avoidsFrom", Unit: "bytes",
		Means: "ssthresh of senders in congestion avoidance (RFC 5681, 3.1) without a loss or a mark; 0: other senders",
		Of:    func(f facts) float64 { return float64(f.measured.avoidsFrom) }}
	hasTimeouts = rule.Fact("hasTimeouts", "a retransmission timeout was seen",
		func(f facts) bool { return f.measured.hasTimeouts })
	modelPaced = rule.Fact("isModelPaced", "the congestion control paces by its model of the path (BBR)",
		func(f facts) bool { return f.measured.isModelPaced })
	receiverSeen = rule.Fact("receiverSeen", "the receiver's samples are known",
		func(f facts) bool { return f.measured.receiverSeen })
	isStarved = rule.Fact("isStarved", "an end had no core most of the time, and nothing shows loss while both had one",
		func(f facts) bool { return f.measured.isStarved },
		threshold.StarvedHost,
		threshold.RunDelay,
		threshold.MinRounds)
	queueDrained = rule.Fact("queueDrained", "the queue was often empty, and the rate then lower",
		func(f facts) bool { return f.path.queueDrained },
		threshold.QueueDrained,
		threshold.ClearlyUneven)
	evennessByDeliveryRate = rule.Fact("evennessByDeliveryRate", "evenness comes from the kernel's delivery rates",
		func(f facts) bool { return f.path.evennessByDeliveryRate })
	isSingle = rule.Fact("isSingle", "the transfer has one connection",
		func(f facts) bool { return len(f.connections) == 1 })
	pacesToDelivery = rule.Fact("pacesToDelivery", "the sender paces to the rate that arrives",
		func(f facts) bool { return f.analysis.pacesToDelivery() },
		threshold.PacedFaster)
	isCongestion = rule.Fact("isCongestion", "the rules before found congestion",
		func(f facts) bool { return f.network.name == verdict.Congestion })

	hasStandingQueue = rule.Define("hasStandingQueue", "a queue is in the path between bursts",
		queueRatio.AtLeast(threshold.StandingQueue))
	isUneven = rule.Define("isUneven", "data arrives in bursts with idle time in between",
		rule.All(evenness.Positive(), evenness.Below(threshold.EvenRate)))
	// A queue longer than the sender's own bursts make it, without loss, leaves only the link to be unsteady.
	isFull = rule.Once(rule.Define("isFull", "a link is full: it has a standing queue and a steady rate",
		rule.All(meanRate.Positive(), hasStandingQueue, rule.Not(queueDrained), rule.Not(windowAckedAtOnce),
			rule.Not(rule.All(isUneven, queueRatio.Below(threshold.BeyondBursts))),
			rule.Any(utilization.AtLeast(threshold.FlatRate),
				rule.All(queueRatio.AtLeast(threshold.BeyondBursts),
					queuedRatio.AtLeast(threshold.MostlyQueued)),
				rule.All(evenness.AtLeast(threshold.EvenRate),
					utilization.AtLeast(threshold.VeryUnsteady)),
				rule.All(rule.Not(evenness.AtLeast(threshold.EvenRate)),
					queueRatio.AtLeast(threshold.LongQueue), utilization.AtLeast(threshold.Unsteady),
					retransmitRatio.AtMost(threshold.Losing))))),
		func(f facts) *rule.Result { return &f.cache.isFull })
	// isFullInBatches is true if a link looks full except that its rate is uneven. Wi-Fi and DOCSIS release packets in
	// batches. Windows that are sent in bursts look the same.
	isFullInBatches = rule.Once(rule.Define("isFullInBatches", "only unevenness speaks against a full link",
		rule.All(rule.Not(isFull), isUneven, utilization.AtLeast(threshold.FlatRate),
			queuedRatio.AtLeast(threshold.MostlyQueued),
			queueRatio.Above(threshold.QueueOfWindow))),
		func(f facts) *rule.Result { return &f.cache.isFullInBatches })
	startsWithBurst = rule.Define("startsWithBurst", "the transfer began well above all later rates",
		peakRate.Above(threshold.FirstBurst, lastingRateStarted))
	deliversBurst = rule.Define("deliversBurst", "the first round trips delivered more than all later ones",
		rule.All(laterDeliveryRate.Positive(),
			firstDeliveryRate.Above(threshold.DeliveryBurst, laterDeliveryRate)))
	queueForms = rule.Define("queueForms", "round trips grew by the queue that precedes loss",
		rttGrowth.Above(threshold.QueueFormed, queueBeforeLoss))
	showsNoQueue = rule.Define("showsNoQueue", "that queue would be seen, and is not there",
		rule.All(lastingRateStarted.Positive(), queueBeforeLoss.Above(threshold.QueueResolvable, minRTT),
			rule.Not(queueForms)))
	// A sender far below the link's rate fills a short queue only with its bursts, which the mean round trip hides.
	losesWithoutQueue = rule.Define("losesWithoutQueue",
		"loss without the queue that a full link builds before it drops, on average and when losses begin",
		rule.All(retransmitRatio.Above(threshold.Losing), lastingRateStarted.Positive(),
			rule.Not(queueAtAnyLoss.Above(threshold.QueueFormed, queueBeforeLoss)),
			rule.Any(showsNoQueue, rule.All(rule.Not(queueForms), startsWithBurst))))
	// A policer drops at its own rate. A short queue drops bursts, at whatever rate they are sent.
	losesAtOneRate = rule.Define("losesAtOneRate", "a single connection's losses begin at one rate",
		rule.Any(rule.Not(isSingle), modelPaced, rule.All(lossWindowSpread.Positive(),
			lossWindowSpread.AtMost(threshold.PolicedSpread))))
	// A queue that drops in congestion avoidance is about as long as what it drops at once. The bucket of a policer
	// empties while the round trip stays, and then it drops all that exceeds its rate. Slow start drops more than a
	// queue contains, but only a bucket lets more through at first than later.
	losesBeyondQueue = rule.Define("losesBeyondQueue", "far more is lost at once than the queue before could contain",
		rule.All(retransmitRatio.Above(threshold.Losing), rule.Any(
			rule.All(lossEventCount.AtLeast(threshold.PolicedLosses), lostTime.Positive(),
				queueAtLoss.AtMost(threshold.QueueOfLost, lostTime)),
			rule.All(deliversBurst, losesAtOneRate, anyLostTime.Positive(),
				queueAtAnyLoss.AtMost(threshold.QueueOfLost, anyLostTime)))))
	policerClear = rule.Define("policerClear", "losses begin at one rate, and no visible queue forms before later ones",
		rule.All(losesAtOneRate, rule.Not(rule.All(
			queueBeforeLoss.Above(threshold.QueueResolvable, minRTT),
			queueAtLoss.Above(threshold.QueueFormed, queueBeforeLoss)))))
	keepsRate = rule.Define("keepsRate", "a steady rate remains",
		rule.Not(meanRate.Below(threshold.PolicedSteady, lastingRateStarted)))
	// CUBIC's rate is between its decrease and the best one.
	keepsSawtooth = rule.Define("keepsSawtooth", "the rate is that of a saw-tooth below the best one",
		rule.Not(meanRate.Below(threshold.CubicDecrease, lastingRateStarted)))
	// BBR keeps a steady rate through any loss, so only a first burst shows a policer there.
	losesManyAtOnce = rule.Define("losesManyAtOnce", "segments are lost many at a time",
		rule.Any(rule.All(modelPaced, startsWithBurst),
			rule.All(rule.Any(rule.Not(modelPaced), deliversBurst), lossDispersion.AtLeast(threshold.LossInBursts))))
	// BBR does not react to marks.
	marksReduceCwnd = rule.Define("marksReduceCwnd", "marks reduced the congestion window more often than losses",
		rule.All(rule.Not(modelPaced), markedTrips.AtLeast(threshold.MinRounds),
			markedTrips.Exceeds(lossyTrips)))
	mayBeClocked = rule.Define("ackRateMayLimit", "acknowledgements are steadier than the data",
		rule.All(ackRateVariation.Positive(), ackRateVariation.AtMost(threshold.AcksSteady),
			ackRateVariation.AtMost(threshold.AcksSteadier, dataRateVariation)))
	// A full return path carries a fixed number of acknowledgements a second, however much each acknowledges.
	isClocked = rule.Define("ackRateLimits", "acknowledgements arrive at a rate of their own",
		rule.All(mayBeClocked, dataRateVariation.AtLeast(threshold.DataVaries)))
	hasIdleGaps = rule.Define("hasIdleGaps", "data arrives with gaps that a larger window would fill",
		rule.Any(rule.All(rule.Not(evennessByDeliveryRate),
			rule.Any(rule.All(gapEvenness.Positive(), gapEvenness.Below(threshold.ClearlyUneven)),
				arrivalVariation.AtLeast(threshold.VariationOfGaps))),
			linkHeadroom.AtLeast(threshold.LinkClearlyFree)))
	isContinuous = rule.Once(rule.Define("isContinuous", "data arrives without gaps",
		rule.All(rule.Not(evennessByDeliveryRate), rule.Not(linkHeadroom.AtLeast(threshold.LinkFree)),
			rule.Any(rule.All(evenness.Positive(), rule.Not(pacesToDelivery), evenness.AtLeast(threshold.FlatRate)),
				rule.All(rule.Any(rule.Not(evenness.Positive()), pacesToDelivery), linkHeadroom.Positive(),
					rule.Not(hasIdleGaps))))), func(f facts) *rule.Result { return &f.cache.isContinuous })
)

// whole returns the facts of the transfer as a whole.
func (a *analysis) whole() facts { return facts{analysis: a} }

// has returns a fact: every sample of the sender has these fields.
func has(name, means string, fields transfer.Fields) condition {
	return rule.Fact(name, means, func(f facts) bool { return f.c.has(fields) })
}

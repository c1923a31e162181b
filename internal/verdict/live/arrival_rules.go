package live

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

var (
	programIdleRatio = &rule.Quantity[*arrivalFacts]{Name: "programIdleRatio", Unit: "ratio",
		Means: "share of the time in which the sending program had nothing queued",
		Of:    func(a *arrivalFacts) float64 { return a.idle }}
	arrivalUtilization = &rule.Quantity[*arrivalFacts]{Name: "arrivalUtilization", Unit: "ratio",
		Means: "mean rate of arrival after slow start / best one that lasted",
		Of: func(a *arrivalFacts) float64 {
			if a.top <= 0 {
				return 0
			}
			return a.mean / a.top
		}}
	lateRatio = &rule.Quantity[*arrivalFacts]{Name: "lateRatio", Unit: "ratio",
		Means: "share of the time in which the sending program was to run and did not",
		Of:    func(a *arrivalFacts) float64 { return a.late }}
	arrivalDeviation = &rule.Quantity[*arrivalFacts]{Name: "arrivalDeviation", Unit: "ratio",
		Means: "standard deviation / mean of the rate of arrival",
		Of:    func(a *arrivalFacts) float64 { return a.deviation },
		Uses: numbers{threshold.SpanOfArrivals,
			threshold.EvenRoundTrips}}
	outOfOrderRatio = &rule.Quantity[*arrivalFacts]{Name: "outOfOrderRatio", Unit: "ratio",
		Means: "segments that arrived out of order / all, after slow start",
		Of:    func(a *arrivalFacts) float64 { return a.disordered },
		Uses:  numbers{threshold.StartSpans}}
	arrivalsKnown = rule.Fact("arrivalsKnown", "the rate of arrival and the receiver's round trips are known",
		func(a *arrivalFacts) bool { return a.top > 0 && a.base > 0 && a.rtt > 0 })
	lossExplainsRate = rule.Fact("lossExplains", "as much arrived as Reno reaches with these losses",
		func(a *arrivalFacts) bool { return a.lossExplains() }, threshold.LossExplains)
	rttShowsQueue = rule.Fact("rttShowsQueue", "the receiver's round trips under load show a queue",
		func(a *arrivalFacts) bool { return showsQueue(a.base, a.rtt) },
		threshold.StandingQueue, threshold.SmallPacketQueue)
	rttShowsStandingQueue = rule.Fact("rttShowsStandingQueue", "the same without their usual deviation",
		func(a *arrivalFacts) bool { return showsQueue(a.base, a.standing) },
		threshold.StandingQueue, threshold.SmallPacketQueue)
	echoesContradict = rule.Fact("echoesContradict", "the sending program's own echoes show no queue",
		func(a *arrivalFacts) bool { return a.idleEcho > 0 && !showsQueue(a.idleEcho, a.loadedEcho) },
		threshold.StandingQueue, threshold.SmallPacketQueue)

	probesShowQueue = rule.Fact("probesShowQueue", "round trips of the probes under load show a queue",
		func(a *arrivalFacts) bool { return showsQueue(a.idleEcho, a.loadedEcho) },
		threshold.StandingQueue, threshold.SmallPacketQueue)

	probesShowStandingQueue = rule.Fact("probesShowStandingQueue", "nearly all probes under load show a queue",
		func(a *arrivalFacts) bool { return showsQueue(a.idleEcho, a.standingEcho) },
		threshold.StandingQueue, threshold.SmallPacketQueue,
		threshold.FastProbes, threshold.FewProbes)

	arrivalsQueue = rule.Define("arrivalsQueue", "a queue forms in the path",
		rule.All(rttShowsQueue, rule.Not(echoesContradict)))
	arrivalsShowStandingQueue = rule.Define("arrivalsShowStandingQueue", "a queue is in the path",
		rule.All(arrivalsQueue, rttShowsStandingQueue))
	arrivalsLose = rule.Define("arrivalsLose", "losses explain the rate",
		rule.All(outOfOrderRatio.Above(threshold.Losing), lossExplainsRate))
)

// arrivalRules decide what limits an upload with data from the receiver's kernel and from the sending program.
var arrivalRules = []decision[*arrivalFacts]{
	{"idle-program", programIdleRatio.AtLeast(threshold.HeadlineShare),
		verdict.Application, verdict.Medium, nil, verdict.SenderHadNothing},
	{"arrivals-unknown", rule.Not(arrivalsKnown), verdict.Unknown, verdict.Low, nil, ""},
	{"late-sender", rule.All(rule.Not(arrivalsLose),
		rule.Any(rule.All(lateRatio.AtLeast(threshold.StarvedHost), rule.Not(arrivalsShowStandingQueue)),
			rule.All(lateRatio.AtLeast(threshold.StarvedDevice),
				arrivalDeviation.AtLeast(threshold.ArrivesUnevenly)))),
		verdict.CPU, verdict.Medium, nil, verdict.SenderScheduledLate},
	{"full-link", rule.All(arrivalsShowStandingQueue, rule.Any(arrivalUtilization.AtLeast(threshold.FlatRate),
		rule.All(rule.Not(arrivalsLose), arrivalUtilization.AtLeast(threshold.VeryUnsteady)))),
		verdict.Bottleneck, verdict.Medium, nil, verdict.ArrivesThroughAQueue},
	// A receiver that sends little measures few round trips. Probes of a late program show its own delay as well.
	{"full-link-by-probes", rule.All(rule.Any(probesShowStandingQueue, rule.All(arrivalsLose, probesShowQueue)),
		lateRatio.Below(threshold.StarvedDevice),
		arrivalUtilization.AtLeast(threshold.FlatRate)),
		verdict.Bottleneck, verdict.Low, nil, verdict.ArrivesThroughAQueue},
	// Bursts of a late device may overflow a queue.
	{"loss-without-queue", rule.All(arrivalsLose, rule.Not(arrivalsQueue), rule.Not(probesShowQueue),
		lateRatio.Below(threshold.StarvedDevice)),
		verdict.Congestion, verdict.Medium, nil, verdict.ArrivesWithHoles},
	{"loss-or-queue", rule.Any(arrivalsLose, arrivalsQueue, probesShowQueue), verdict.Unknown, verdict.Low, nil, ""},
	{"sender", rule.Condition[*arrivalFacts]{}, verdict.Sender, verdict.Low,
		[]verdict.Name{verdict.SendBuffer, verdict.Pacing, verdict.CPU, verdict.Application}, verdict.ArrivesUnlimited},
}

// probeRules decide what limits a transfer by its receiver and the probes during it.
var probeRules = []decision[*arrivalFacts]{
	// A host that is late delays single probes, a full link all of them.
	{"full-link-by-all-probes", rule.All(probesShowStandingQueue,
		arrivalUtilization.AtLeast(threshold.FlatRate)),
		verdict.Bottleneck, verdict.Medium, nil, verdict.ArrivesThroughAQueue},
	{"full-link-by-probes", rule.All(probesShowQueue, arrivalUtilization.AtLeast(threshold.FlatRate)),
		verdict.Bottleneck, verdict.Low, nil, verdict.ArrivesThroughAQueue},
	{"sender-unseen", rule.Condition[*arrivalFacts]{}, verdict.Unknown, verdict.Low, nil, ""},
}

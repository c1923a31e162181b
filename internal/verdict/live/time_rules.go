package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// timeRule attributes time of a round to a limiter.
type timeRule struct {
	name    string
	when    condition
	limiter verdict.Name
	claims  *claim
	code    verdict.Code // the observation, for Unknown and for what is sent at once
}

// claim is a time within a round. It is at most the round's length, and less than 0 counts as 0.
type claim struct {
	name, means string
	of          func(facts) time.Duration
	uses        numbers
}

// Inputs of the rules on a round.
var (
	roundLength = &quantity{Name: "roundLength", Unit: "time", Means: "length of the round",
		Of:   func(f facts) float64 { return ofTime(f.r.length) },
		Uses: numbers{threshold.RoundTrips, threshold.ShortestRound}}
	roundRate = &quantity{Name: "roundRate", Unit: "bit/s", Means: "goodput of the round",
		Of: func(f facts) float64 { return f.r.bps }}
	smoothedRate = &quantity{Name: "smoothedRate", Unit: "bit/s",
		Means: "roundRate, or the connection's mean rate where they hardly differ",
		Of:    func(f facts) float64 { return f.analysis.smoothedRate(f.r.bps) },
		Uses:  numbers{threshold.RoundScatter}}
	windowAtBaseRTT = &quantity{Name: "windowAtBaseRTT", Unit: "bit/s", Means: "receive window / base RTT",
		Of: func(f facts) float64 { return f.path.rateAtBaseRTT(f.c.window(f.r)) }}
	windowAtMeanRTT = &quantity{Name: "windowAtMeanRTT", Unit: "bit/s", Means: "receive window / mean RTT",
		Of: func(f facts) float64 { return f.path.rateAtMeanRTT(f.c.window(f.r)) }}
	outstandingAtBaseRTT = &quantity{Name: "outstandingAtBaseRTT", Unit: "bit/s",
		Means: "most bytes queued or in flight / base RTT",
		Of:    func(f facts) float64 { return f.path.rateAtBaseRTT(f.c.outstanding(f.r)) }}
	timeoutsInARow = &quantity{Name: "timeoutsInARow",
		Means: "consecutive retransmission timeouts at the end of the round",
		Of:    func(f facts) float64 { return float64(f.r.end.Timeouts) }}
	ackedBytes = &quantity{Name: "ackedBytes", Unit: "bytes", Means: "bytes acknowledged in the round",
		Of: func(f facts) float64 { return float64(f.r.end.Acked - f.r.start.Acked) }}
	senderThread = &quantity{Name: "senderThread", Unit: "ratio",
		Means: "CPU time / wall time of the busiest sending thread",
		Of:    func(f facts) float64 { return busiestThread(f.sender) }}
	receiverThread = &quantity{Name: "receiverThread", Unit: "ratio",
		Means: "CPU time / wall time of the busiest receiving thread",
		Of:    func(f facts) float64 { return busiestThread(f.receiver) }}
	runningRatio = &quantity{Name: "runningRatio", Unit: "ratio",
		Means: "share of the time in which the writer did not wait",
		Of:    func(f facts) float64 { return f.c.runningRatio }}
	runqueueRatio = &quantity{Name: "runDelayRatio", Unit: "ratio",
		Means: "share of the time in which the writer had no core and all it had written was sent",
		Of:    func(f facts) float64 { return f.c.runqueueRatio }}
	bufferEmptyRatio = &quantity{Name: "bufferEmptyRatio", Unit: "ratio",
		Means: "share of the time in which the writer waited with nothing unsent",
		Of:    func(f facts) float64 { return f.c.bufferEmptyRatio }}
	unsentRatio = &quantity{Name: "unsentRatio", Unit: "ratio",
		Means: "share of the time in which data waited though both windows had room",
		Of:    func(f facts) float64 { return f.c.unsentRatio }}
	windowFullRatio = &quantity{Name: "windowFullRatio", Unit: "ratio",
		Means: "share of the time in which the receive window was full",
		Of:    func(f facts) float64 { return f.c.windowFullRatio }}
	segmentsPerAck = &quantity{Name: "segmentsPerAck", Unit: "segments", Means: "segments that an acknowledgement covers",
		Of: func(f facts) float64 { return f.c.segmentsPerAck(f.path) }}
	rttGrowthSeconds = &quantity{Name: "rttAboveBase", Unit: "s", Means: "mean RTT - base RTT",
		Of: func(f facts) float64 { return (f.path.meanRTT - f.path.baseRTT).Seconds() }}
	ackedSegmentsTime = &quantity{Name: "ackedSegmentsTime", Unit: "s",
		Means: "time in which the segments of one acknowledgement arrive",
		Of: func(f facts) float64 {
			return f.c.segmentsPerAck(f.path) * float64(f.c.mss) * 8 * float64(len(f.connections)) / f.path.meanRate
		}}
	readerPaused = &quantity{Name: "readerPaused", Unit: "time",
		Means: "time in which the receiving program chose not to read",
		Of:    func(f facts) float64 { return ofTime(f.c.readerPaused(f.r)) }}
	readerRunqueue = &quantity{Name: "readerRunDelay", Unit: "time",
		Means: "time in which the receiving program had no core",
		Of:    func(f facts) float64 { return ofTime(f.c.readerSpent(f.r, runqueueClock)) }}
	readerRunqueueRatio = &quantity{Name: "readerRunDelayRatio", Unit: "ratio", Means: "readerRunDelay / roundLength",
		Of: func(f facts) float64 { return ratio(f.c.readerSpent(f.r, runqueueClock), f.r.length) }}
	receiverRunqueueRatio = &quantity{Name: "receiverRunDelay", Unit: "ratio",
		Means: "share of the transfer in which the receiving thread had no core",
		Of: func(f facts) float64 {
			if f.receiver == nil || f.receiver.CPU == nil {
				return 0
			}
			return f.receiver.CPU.RunqueueWait
		}}
	pacingLimit = &quantity{Name: "pacingLimit", Unit: "bit/s", Means: "SO_MAX_PACING_RATE of the socket; 0: none",
		Of: func(f facts) float64 { return f.c.spec.PacingBps }}
	pacingRate = &quantity{Name: "pacingRate", Unit: "bit/s", Means: "mean pacing rate of the kernel in the round",
		Of: func(f facts) float64 {
			return mean(f.r.samples, func(s *transfer.Sample) float64 { return s.PacingBps })
		}}
	largerRate = &quantity{Name: "largerRate", Unit: "bit/s",
		Means: "roundRate or the connection's mean rate, the larger",
		Of:    func(f facts) float64 { return max(f.r.bps, f.path.meanRate/float64(len(f.connections))) }}

	receiverCPUKnown = rule.Fact("receiverCPUKnown", "the receiver reported its threads' CPU time",
		func(f facts) bool { return f.receiver != nil && f.receiver.CPU != nil })
	isNoDelay    = rule.Fact("isNoDelay", "TCP_NODELAY is set", func(f facts) bool { return f.c.spec.NoDelay })
	hasResponses = rule.Fact("hasResponses", "the peer sends often enough for the program to wait for its responses",
		func(f facts) bool { return f.c.hasResponses },
		threshold.NagleResponses, threshold.DelayedAck)
	usesModelPacing = rule.Fact("usesModelPacing", "the connection's congestion control paces by its model (BBR)",
		func(f facts) bool { return f.c.isModelPaced() })
	isStarted = rule.Fact("isStarted", "the round begins after slow start",
		func(f facts) bool { return f.r.start.At >= f.c.startedAt })
	leavesUnread = rule.Fact("leavesUnread",
		"the receiving program leaves data unread; where the receiver is not seen, its window closes",
		func(f facts) bool { return f.c.leavesUnread(f.r, f.watched != nil) },
		threshold.Unread, threshold.MostlyWaiting,
		threshold.WindowCloses, threshold.WindowClosesOften,
		threshold.WindowHasClosed, threshold.EarnedSegments)
	// Neither a congestion window nor a full link ever delays less than a segment.
	belowSegment = rule.Fact("belowSegment", "less than a segment was queued or in flight, at every sample",
		func(f facts) bool { return f.c.isBelowSegment() }, threshold.PacketBytes)
	isFullIn = rule.Fact("isFullInRound", "a queue is in the path and the round reaches the lasting rate",
		func(f facts) bool { return f.path.isFullIn(f.c, f.r, len(f.connections)) },
		threshold.StandingQueue, threshold.FlatRate)
	networkOpens = rule.Fact("networkOpens", "the network rules found slow start",
		func(f facts) bool { return f.network.name == verdict.SlowStart })
	networkBelowBest = rule.Fact("networkBelowBest", "they found loss below the best rate",
		func(f facts) bool { return f.network.code == verdict.LossBelowBest })
	knowsRecovery = has("knowsRecovery", "the kernel reports timeouts and acknowledged bytes",
		transfer.HaveRecovery|transfer.HaveAcked)
	knowsUnsent  = has("knowsUnsent", "the kernel reports unsent bytes", transfer.HaveNotSent)
	knowsFlight  = has("knowsFlight", "the kernel reports bytes in flight", transfer.HaveInFlight)
	knowsProgram = has("knowsProgram", "the program's own clocks are known", transfer.HaveProgram)
	rulesOutEnds = has("rulesOutEnds", "the kernel reports its three clocks, unsent bytes and cwnd",
		transfer.HaveLimits|transfer.HaveNotSent|transfer.HaveCwnd)

	senderSaturated = rule.Define("senderSaturated", "the sending thread has no CPU time left",
		rule.Any(senderThread.AtLeast(threshold.SaturatedThread),
			runningRatio.AtLeast(threshold.SaturatedThread)))
	receiverSaturated = rule.Define("receiverSaturated", "the receiving thread has no CPU time left",
		receiverThread.AtLeast(threshold.SaturatedThread))
	readerStarved = rule.Define("readerRunDelayed", "the reader had no core for longer than it paused",
		rule.All(readerRunqueue.Exceeds(readerPaused), readerRunqueueRatio.AtLeast(threshold.RunDelay)))
	// A receiver that reads slowly acknowledges as it reads, a dozen segments at once.
	acksFollowReads = rule.Define("acksFollowReads",
		"each acknowledgement covers several segments, which may explain the longer round trip",
		rule.All(rule.Not(receiverSeen), windowFullRatio.AtLeast(threshold.MostlyWaiting),
			segmentsPerAck.AtLeast(threshold.SegmentsPerRead),
			rttGrowthSeconds.AtMost(threshold.ReadDelay, ackedSegmentsTime)))
	mayBeFullLink = rule.Define("mayBeFullLink", "a full window and a full link look alike",
		rule.All(rule.Any(isFullInBatches, rule.All(isFull, acksFollowReads)),
			windowAtBaseRTT.Above(threshold.WindowLimits, smoothedRate)))
	// A window that a queue emptied leaves a longer RTT. Few round trips do not show the queue.
	windowExplainsRate = rule.Define("windowExplainsRate", "a full receive window explains the rate of the round",
		rule.Any(rule.All(rttJitterRatio.AtLeast(threshold.RTTJitterRatio),
			windowAtMeanRTT.AtMost(threshold.WindowLimits, smoothedRate)),
			rule.All(windowAtBaseRTT.AtMost(threshold.WindowLimits, smoothedRate),
				rule.Not(rule.All(isSingle, isContinuous)),
				rule.Any(rule.Not(isFull), queueRatio.AtMost(threshold.QueueOfWindow))),
			rule.All(rule.Not(windowAtBaseRTT.AtMost(threshold.WindowLimits, smoothedRate)), rule.Not(isFull),
				windowAtMeanRTT.AtMost(threshold.WindowFarAbove, smoothedRate))))
	windowMatchesPath = rule.Define("windowMatchesPath",
		"neither a larger window nor a faster link alone gives a tenth more",
		matchesPath(windowAtBaseRTT))
	outstandingMatchesPath = rule.Define("outstandingMatchesPath", "the same of the send buffer",
		matchesPath(outstandingAtBaseRTT))
	isClearlyFull = rule.Once(rule.Define("isClearlyFull",
		"a full link with known evenness or a clearly flat rate",
		rule.All(isFull, rule.Any(evenness.Positive(), utilization.AtLeast(threshold.ClearlyFlat)))),
		func(f facts) *rule.Result { return &f.cache.isClearlyFull })
	// A buffer that runs dry is refilled in bursts, and the kernel does not open a cwnd that is not used (RFC 7661).
	bufferRunsDry = rule.Define("bufferRunsDry", "the send buffer runs dry often enough to limit all the time",
		rule.All(rule.Not(isClearlyFull), bufferEmptyRatio.AtLeast(threshold.BufferEmpty)))
	bufferMayLimit = rule.Define("bufferMayLimit", "the send buffer is not above what the full link carries",
		rule.Any(rule.Not(isClearlyFull),
			rule.Not(outstandingAtBaseRTT.Above(threshold.WindowLimits, roundRate))))
	pacedByLimit = rule.Define("pacedByLimit", "the socket's pacing limit is near the rate",
		rule.All(pacingLimit.Positive(), pacingLimit.AtMost(threshold.PacedNear, largerRate)))
	pacedByKernel = rule.Define("pacedByKernel", "the kernel's pacing rate is near the rate, without BBR",
		rule.All(rule.Not(pacedByLimit), rule.Not(usesModelPacing), pacingRate.Positive(),
			pacingRate.AtMost(threshold.PacedNear, largerRate)))
	// A host that stops for a moment fills the cwnd once, so frequent waiting without loss is true between samples too.
	oftenUnsent = rule.Define("oftenUnsent", "data waits so often that it does so between the samples too",
		rule.All(rule.Not(bufferEmptyRatio.AtLeast(threshold.BufferEmpty)),
			unsentRatio.AtLeast(threshold.UnsentOften), rule.Not(isLosing), isStarted))
	// BBR leaves room in its cwnd on purpose when it probes.
	sometimesUnsent = rule.Define("sometimesUnsent",
		"data waits in some samples, and neither buffer nor BBR explains it",
		rule.All(rule.Not(bufferEmptyRatio.AtLeast(threshold.BufferEmpty)), rule.Not(oftenUnsent),
			rule.Not(rule.All(usesModelPacing, unsentRatio.Below(threshold.UnsentOften)))))
)

var sendQueueEmpties = rule.Define("sendQueueEmpties",
	"all that was written may be on its way, and the program's clocks are not known",
	rule.All(rule.Not(knowsProgram), knowsUnsent, rule.Not(rule.All(isFull, evenness.Positive(),
		outstandingAtBaseRTT.Above(threshold.WindowLimits, roundRate)))))

// matchesPath is the condition that a window at the base RTT gives hardly more than a rate that arrives without gaps.
func matchesPath(window *quantity) condition {
	return rule.All(isSingle, isContinuous,
		rule.Any(rule.All(isFull, window.AtMost(threshold.CauseFactor, smoothedRate)),
			rule.All(rule.Not(isFull), window.AtMost(threshold.WindowLimits, smoothedRate))))
}

// Times that the rules claim.
var (
	allTime = &claim{name: "the round", means: "all of it", of: func(f facts) time.Duration { return f.r.length }}
	ranTime = &claim{name: "writer's running time", means: "time in which the writer neither waited nor paused",
		of: func(f facts) time.Duration { return f.c.writerRan(f.r) }}
	runqueueTime = &claim{name: "writer's run-queue delay", means: "while all it had written was sent",
		of: func(f facts) time.Duration { return f.c.clockWhile(f.r, f.c.sendQueueEmpty, runqueueClock) }}
	nagleTime = &claim{name: "time delayed by Nagle's rule",
		means: "less than a segment waits for an acknowledgement, with room in every window",
		of:    func(f facts) time.Duration { return f.c.nagle(f.r) },
		uses:  numbers{threshold.NagleSegments, threshold.NagleWindow}}
	idleTime = &claim{name: "idle time",
		means: "nothing queued or in flight, or the program pauses or awaits an answer with all data sent",
		of:    func(f facts) time.Duration { return f.c.programIdle(f.r) }}
	rwndTime = &claim{name: "rwnd-limited time",
		means: "tcp_info's rwnd_limited, or a window with less than a segment free",
		of:    func(f facts) time.Duration { return f.c.windowLimited(f.r) }}
	closedTime = &claim{name: "time with a closed window",
		means: "rwnd-limited time, or time with less than a segment free, if that is more",
		of:    func(f facts) time.Duration { return max(f.c.windowLimited(f.r), f.c.segmentBlocked(f.r)) }}
	windowTime = &claim{name: "time limited by the window",
		means: "rwnd-limited time; all time under BBR, which fills a window rarely",
		of:    func(f facts) time.Duration { return f.windowTime(f.c, f.r) },
		uses:  numbers{threshold.PacedWindow, threshold.WindowLimits}}
	sndbufTime = &claim{name: "sndbuf-limited time",
		means: "tcp_info's sndbuf_limited, or the writer waits with nothing unsent, the longer",
		of:    func(f facts) time.Duration { return max(f.c.sendLimited(f.r), f.c.bufferEmptyTime(f.r)) }}
	emptyQueueTime = &claim{name: "time with an empty send queue", means: "by samples without loss recovery",
		of: func(f facts) time.Duration {
			return scale(f.r.length, portion(f.r.samples, f.c.sendQueueEmptyNoLoss))
		}}
	slowStartTime = &claim{name: "time before the end of slow start",
		means: "cwnd reaches ssthresh, a loss, or two round trips with little growth",
		of:    func(f facts) time.Duration { return min(f.c.startedAt, f.r.end.At) - f.r.start.At },
		uses: numbers{threshold.SlowStartGrows,
			threshold.SlowStartSpan}}
	waitingTime = &claim{name: "time with data unsent", means: "while both windows had room",
		of: func(f facts) time.Duration {
			return scale(f.r.length, portion(f.r.samples, func(s *transfer.Sample) bool {
				return f.c.dataWaits(s, threshold.OpenSteadyWindow.Value)
			}))
		},
		uses: numbers{threshold.OpenSteadyWindow, threshold.OpenWindow,
			threshold.Deferred}}
	unsentTime = &claim{name: "time with data unsent in samples", means: "the same, with a cwnd that does not grow",
		of: func(f facts) time.Duration { return scale(f.r.length, f.c.unsentShare(f.r)) },
		uses: numbers{threshold.OpenSteadyWindow, threshold.OpenWindow,
			threshold.Deferred, threshold.BBRProbing,
			threshold.MostlyWaiting}}
)

// timeRules are applied to each round in this order. Each claims time that the rules before left.
var timeRules = []timeRule{
	{"mtu-black-hole", rule.All(knowsRecovery, timeoutsInARow.AtLeast(threshold.BlackHoleTimeouts),
		rule.Not(ackedBytes.Positive())), verdict.MTUBlackHole, allTime, ""},
	{"sender-cpu", senderSaturated, verdict.CPU, ranTime, ""},
	{"sender-run-delay", rule.All(rule.Not(senderSaturated), runqueueRatio.AtLeast(threshold.RunDelay)),
		verdict.CPU, runqueueTime, ""},
	{"nagle", rule.All(rule.Not(isNoDelay), rule.Any(rule.Not(isWatched), hasResponses), knowsUnsent, knowsFlight),
		verdict.NagleDelayedAck, nagleTime, ""},
	{"idle-program", condition{}, verdict.Application, idleTime, ""},
	{"receiver-cpu", rule.All(rule.Any(receiverSaturated,
		rule.All(rule.Any(rule.Not(receiverCPUKnown), receiverRunqueueRatio.AtLeast(threshold.RunDelay)),
			readerStarved)), leavesUnread), verdict.CPU, rwndTime, ""},
	{"reader-pauses", rule.All(rule.Not(receiverSaturated), rule.Not(readerStarved), leavesUnread,
		readerPaused.AtLeast(threshold.MostlyWaiting, roundLength)),
		verdict.ReceiverApplication, allTime, ""},
	{"unread-data", rule.All(rule.Not(receiverSaturated), rule.Not(readerStarved), leavesUnread),
		verdict.ReceiverApplication, closedTime, ""},
	{"ack-timer", rule.All(rule.Not(leavesUnread), awaitsAckTimer), verdict.NagleDelayedAck, rwndTime, ""},
	{"receive-window", rule.All(rule.Not(leavesUnread), rule.Not(mayBeFullLink), windowExplainsRate),
		verdict.ReceiverWindow, windowTime, ""},
	{"window-or-link", rule.All(rule.Not(leavesUnread), mayBeFullLink), verdict.Unknown, rwndTime, verdict.WindowOrLink},
	{"window-matches-path", rule.All(rule.Not(leavesUnread), windowMatchesPath),
		verdict.Unknown, windowTime, verdict.WindowEqualsBDP},
	{"dry-buffer-matches-path", rule.All(outstandingMatchesPath, bufferRunsDry),
		verdict.Unknown, allTime, verdict.SendBufferEqualsBDP},
	{"buffer-matches-path", rule.All(outstandingMatchesPath, bufferMayLimit),
		verdict.Unknown, sndbufTime, verdict.SendBufferEqualsBDP},
	{"dry-send-buffer", bufferRunsDry, verdict.SendBuffer, allTime, ""},
	{"send-buffer", bufferMayLimit, verdict.SendBuffer, sndbufTime, ""},
	{"below-segment", belowSegment, verdict.Application, allTime, ""},
	{"full-queue-sent", sendQueueEmpties, verdict.SendBuffer, fullQueueTime, verdict.ProgramOrBuffer},
	{"program-with-room", sendQueueEmpties, verdict.Application, roomQueueTime, verdict.ProgramOrBuffer},
	{"program-or-buffer", sendQueueEmpties, verdict.Sender, restQueueTime, verdict.ProgramOrBuffer},
	{"dry-queue", rule.All(sendQueueEmpties, queueRunsDry), verdict.SendBuffer, allTime, ""},
	{"slow-start", condition{}, verdict.SlowStart, slowStartTime, ""},
	{"pacing-limit", pacedByLimit, verdict.Pacing, waitingTime, ""},
	{"pacing-often", rule.All(pacedByKernel, oftenUnsent), verdict.Pacing, allTime, ""},
	{"pacing", rule.All(pacedByKernel, sometimesUnsent), verdict.Pacing, unsentTime, ""},
	{"local-queue-often", oftenUnsent, verdict.LocalQueue, allTime, ""},
	{"local-queue", sometimesUnsent, verdict.LocalQueue, unsentTime, ""},
}

// remainderRules name the limiter of the time that is left: the first one that applies. "" is the network's. Windows
// that grow slowly, or shrink by losses, may meet a full link on the way.
var remainderRules = []timeRule{
	{"buffer-or-link", bufferOrLink, verdict.Unknown, allTime, verdict.SendBufferOrLink},
	{"full-meanwhile", rule.All(rule.Any(networkOpens, rule.All(networkBelowBest, queueDrained)), isFullIn),
		verdict.Bottleneck, allTime, ""},
	{"network", rule.Any(rulesOutEnds, isFull), "", allTime, ""},
	{"kernel-silent", condition{}, verdict.Unknown, allTime, ""},
}

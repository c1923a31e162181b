package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// windowOf is the window or buffer that an open question is about; the other answer is a full link.
var windowOf = map[verdict.Code]verdict.Name{verdict.WindowOrLink: verdict.ReceiverWindow,
	verdict.WindowEqualsBDP: verdict.ReceiverWindow, verdict.SendBufferEqualsBDP: verdict.SendBuffer,
	verdict.SendBufferOrLink: verdict.SendBuffer,
	verdict.BetweenClosings:  verdict.ReceiverApplication}

// mainQuestion returns the open question behind most of the unknown time, or "" if there is none.
func (a *analysis) mainQuestion() (most verdict.Code) {
	sum := time.Duration(0)
	for code := range windowOf {
		sum += a.unknownTime[code]
		if a.unknownTime[code] > a.unknownTime[most] {
			most = code
		}
	}
	if 2*sum <= a.time[verdict.Unknown] {
		return ""
	}
	return most
}

// pacesToDelivery reports whether the sender paces to the rate that arrives.
func (a *analysis) pacesToDelivery() bool {
	c := a.connections[0]
	pacing := mean(c.samples, func(s *transfer.Sample) float64 { return s.PacingBps })
	return (c.isModelPaced() || c.spec.PacingBps > 0) &&
		pacing < threshold.PacedFaster.Value*a.path.meanRate/float64(len(a.connections))
}

var (
	closedRatio = &quantity{Name: "closedRatio", Unit: "ratio",
		Means: "share of the time that the rules gave to receiver-application",
		Of:    func(f facts) float64 { return ratio(f.time[verdict.ReceiverApplication], f.judged) }}
	hasSubtype = rule.Fact("hasSubtype", "the network rules found a subtype",
		func(f facts) bool { return f.network.subtype != "" })
	closesBetween = rule.All(rule.Not(receiverSeen), rule.Not(hasSubtype), rule.Any(isCongestion, networkOpens),
		closedRatio.AtLeast(threshold.ClosesOften))
)

// leaveOpenBetweenClosings moves time of the congestion window between two closings of the receive window to unknown,
// if the sender alone was seen. A program that reads at its own rate closes the window for less time the slower it is
// filled, and the kernel does not open a congestion window that is not used (RFC 7661, 4.4). So without the losses
// that such bursts suffer, no more might arrive.
func (a *analysis) leaveOpenBetweenClosings() {
	if !closesBetween.IsTrue(a.whole()) {
		return
	}
	name := a.network.name
	open := a.time[name]
	if name == verdict.SlowStart {
		open -= a.slowStartTime
	}
	a.time[name] -= open
	a.time[verdict.Unknown] += open
	a.unknownTime[verdict.BetweenClosings] += open
}

// candidates returns the limiters that a question leaves open. A sender cannot distinguish a small window from
// a program that does not read.
func (a *analysis) candidates(code verdict.Code) []verdict.Name {
	if code == verdict.WindowOrLink && a.receiver == nil {
		return []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication, verdict.Bottleneck}
	}
	if code == verdict.BetweenClosings {
		return []verdict.Name{verdict.ReceiverApplication, a.network.name}
	}
	return []verdict.Name{windowOf[code], verdict.Bottleneck}
}

func (a *analysis) unknownEvidence(took verdict.Values) (verdict.Code, verdict.Values) {
	code := a.mainQuestion()
	if code == "" {
		return verdict.KernelSilent, took
	}
	if code == verdict.BetweenClosings {
		took["closed_ratio"] = ratio(a.time[verdict.ReceiverApplication], a.judged)
		took["steady_bps"] = a.path.meanRate
		took["retransmitted_ratio"] = a.path.retransmitRatio
		return code, took
	}
	size := a.median((*connection).window)
	if windowOf[code] == verdict.SendBuffer {
		size = a.median((*connection).outstanding)
	}
	took["allows_bps"] = a.path.rateAtBaseRTT(size)
	took["window_bytes"] = float64(size)
	took["steady_bps"] = a.path.meanRate
	took["rtt_s"] = a.path.meanRTT.Seconds()
	took["rtt_base_s"] = a.path.baseRTT.Seconds()
	if c := a.connections[0]; code == verdict.WindowOrLink && acksFollowReads.IsTrue(facts{a, c, nil}) {
		took["ack_segments"] = c.segmentsPerAck(a.path)
	}
	if code != verdict.WindowOrLink && a.path.evenness > 0 {
		took["even_ratio"] = a.path.evenness
	}
	return code, took
}

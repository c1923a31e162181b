package verdict

import (
	"cmp"
	"maps"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Figures are the measurements of the judge that a verdict must agree with. A zero is not known and is not compared.
// Times are seconds, sizes bytes, rates bit/s.
type Figures struct {
	LengthS float64 // wall time of one connection
	// CarriedBytes is payload that crossed the path, retransmissions included.
	CarriedBytes float64
	// FullLinkBps is the rate at which the link is said to have been full.
	FullLinkBps float64
	// WindowBytes is the receive window that is said to limit, WindowRateBps the rate while it did, and WindowTripS
	// the mean RTT then. If WindowTripS is 0, Check uses RTTLoadedS. WindowUsedBytes is the least of the window that the
	// sender fills each round trip; 0: all of it.
	WindowBytes, WindowUsedBytes, WindowRateBps, WindowTripS float64
	MinRTTS, RTTLoadedS                                      float64
	// Queue reports a queue in the path. Then the RTT under load is longer than the path's, and Check compares a window
	// with the min RTT.
	Queue bool
	// IdleRatio is the share of the time in which nothing was outstanding at the sender; a
	// tap elsewhere does not know it.
	IdleRatio float64
	// SlowStarts is how many slow starts there may have been: 1, and one after each timeout
	// and each pause.
	SlowStarts float64
	// Retransmitted is how much was retransmitted, segments or bytes.
	Retransmitted float64
	// LossAllowsBps is the rate that a congestion window allows at the measured loss, and GoodputBps the measured rate.
	LossAllowsBps, GoodputBps float64
}

// Figure names the one that does not fit a verdict.
type Figure string

const (
	FullLinkFigure  Figure = "full-link-rate"  // more than was carried
	WindowFigure    Figure = "receive-window"  // would allow far more, or less, than came
	RTTFigure       Figure = "round-trip"      // shorter under load than when empty
	IdleFigure      Figure = "idle-time"       // time without anything outstanding given to the network
	SlowStartFigure Figure = "slow-start"      // more round trips than any slow start takes
	LossFigure      Figure = "retransmissions" // though nothing is said to have been lost
	LossRateFigure  Figure = "loss-rate"       // so few losses leave a window that gives far more
)

// Contradiction is a figure that a verdict does not agree with: the value that the verdict says, and the largest or
// smallest value that the figures allow.
type Contradiction struct {
	Figure        Figure
	Said, Allowed float64
}

// Check compares a verdict with its own figures. It returns nil if all agree.
func Check(v Verdict, f Figures) (all []Contradiction) {
	add := func(fails bool, figure Figure, said, allowed float64) {
		if fails {
			all = append(all, Contradiction{figure, said, allowed})
		}
	}
	blamed := func(names ...Name) (share float64) {
		for _, n := range names {
			share += v.Shares[n]
		}
		return share
	}
	if full := blamed(Bottleneck); v.Limiter == Bottleneck && f.FullLinkBps > 0 && f.CarriedBytes > 0 {
		said := f.FullLinkBps / 8 * full * f.LengthS
		allowed := threshold.CarriedMax.Value * f.CarriedBytes
		add(said > allowed, FullLinkFigure, said, allowed)
	}
	if v.Limiter == ReceiverWindow && f.WindowBytes > 0 && f.MinRTTS > 0 && f.WindowRateBps > 0 {
		trip := f.MinRTTS
		if !f.Queue {
			trip = max(trip, cmp.Or(f.WindowTripS, f.RTTLoadedS)) // jitter
		}
		most := threshold.WindowMax.Value * f.WindowRateBps
		least := f.WindowRateBps / threshold.WindowMin.Value
		used := cmp.Or(f.WindowUsedBytes, f.WindowBytes)
		add(used*8/trip > most, WindowFigure, used*8/trip, most)
		add(f.WindowBytes*8/f.MinRTTS < least, WindowFigure, f.WindowBytes*8/f.MinRTTS, least)
	}
	if f.MinRTTS > 0 && f.RTTLoadedS > 0 {
		add(f.RTTLoadedS*threshold.RTTScatter.Value < f.MinRTTS, RTTFigure, f.MinRTTS, f.RTTLoadedS)
	}
	if network := blamed(Bottleneck, Congestion, AckPath, ReceiverWindow, MTUBlackHole); f.IdleRatio > 0 {
		allowed := 1 - f.IdleRatio + threshold.IdleTolerance.Value
		add(network > allowed, IdleFigure, network, allowed)
	}
	if f.MinRTTS > 0 && v.Limiter == SlowStart {
		trips := blamed(SlowStart) * f.LengthS / f.MinRTTS
		allowed := threshold.SlowStartTrips.Value * max(f.SlowStarts, 1)
		add(trips > allowed, SlowStartFigure, trips, allowed)
	}
	if v.Limiter == Congestion && f.GoodputBps > 0 {
		allowed := threshold.LossAllows.Value * f.GoodputBps
		add(f.LossAllowsBps > allowed, LossRateFigure, f.LossAllowsBps, allowed)
	}
	for _, e := range v.Evidence {
		saysNone := e.Code == CapturedSenderWaits && e.Values["retransmitted_segments"] == 0
		add(saysNone && e.Limiter == v.Limiter && f.Retransmitted > 0, LossFigure, 0, f.Retransmitted)
	}
	return all
}

// Contradicted returns the verdict to report if the figures contradict v and no other input resolves the contradiction:
// the limiter is unknown, and the evidence names the figure that does not fit.
func Contradicted(v Verdict, why Contradiction) Verdict {
	return Refuted(v, why.evidence(FigureDoesNotFit))
}

// Refuted returns v with an unknown limiter, because of evidence against it. The limiter's share of the time is unknown
// too, its own evidence says nothing, and it remains a candidate.
func Refuted(v Verdict, why Evidence) Verdict {
	out := Verdict{Limiter: Unknown, Confidence: Low, Shares: maps.Clone(v.Shares), Candidates: v.Candidates}
	if v.Limiter != Unknown && v.Limiter != Mixed {
		out.Candidates = append([]Name{v.Limiter}, without(v.Candidates, v.Limiter)...)
		out.Shares[Unknown] += out.Shares[v.Limiter]
		delete(out.Shares, v.Limiter)
	}
	out.Evidence = []Evidence{why}
	for _, e := range v.Evidence {
		if e.Limiter != v.Limiter || v.Limiter == Unknown {
			out.Evidence = append(out.Evidence, e)
		}
	}
	return out
}

// Rejudged returns a verdict that was reached without an input that did not fit. Its confidence is one step lower, and
// the evidence names the input's figure.
func Rejudged(v Verdict, why Contradiction) Verdict {
	v.Confidence = Lower(v.Confidence)
	v.Evidence = append(v.Evidence, why.evidence(JudgedAgain))
	return v
}

func (c Contradiction) evidence(code Code) Evidence {
	figure := string(c.Figure)
	return Evidence{Limiter: Unknown, Code: code, Values: Values{"said_" + figure: c.Said, "allowed_" + figure: c.Allowed}}
}

func without(all []Name, name Name) (rest []Name) {
	for _, n := range all {
		if n != name {
			rest = append(rest, n)
		}
	}
	return rest
}

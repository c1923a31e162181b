package report

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// ComparedDirection compares two ways.
func ComparedDirection(direction transfer.Direction, peers [2]string, sides [2]compare.Side) record.ComparedDirection {
	d := compare.Sides(sides[0], sides[1])
	out := record.ComparedDirection{Direction: direction, First: newWay(peers[0], &sides[0]), Second: newWay(peers[1],
		&sides[1]),
		Slower: [...]string{"", "first", "second"}[d.Slower], Cause: d.Cause, Confidence: d.Confidence,
		Candidates: d.Candidates, Code: d.Why, Values: d.Values, Explanations: []record.Explanation{}}
	if !math.IsNaN(d.Factor.Mid) {
		out.Factor = &record.TuneGain{Factor: d.Factor.Mid, CI95: bounds(d.Factor)}
	}
	for _, e := range d.Explanations {
		one := record.Explanation{Cause: e.Cause, FactorLow: e.Low, FactorHigh: e.High, Values: e.Values}
		one.Text = text.ExplanationSentence(&one)
		out.Explanations = append(out.Explanations, one)
	}
	out.Text = text.DifferenceSentence(&out)
	return out
}

func newWay(peer string, s *compare.Side) record.ComparedWay {
	w := record.ComparedWay{Peer: peer, GoodputsBps: append([]float64{}, s.Goodputs...), Limiters: []string{},
		MSSBytes: known(s.MSS), PathMTUBytes: known(s.PathMTU),
		WindowBytes: known(s.Window), InFlightBytes: known(s.InFlight), NearCPURatio: s.NearCPU, FarCPURatio: s.FarCPU}
	goodput := stats.Estimate(s.Goodputs, 0.95)
	w.GoodputBps = rate(goodput.Mid)
	if len(s.Goodputs) > 1 {
		w.CI95Bps = &[2]float64{goodput.Low, goodput.High}
	}
	for _, v := range s.Verdicts {
		w.Limiters = append(w.Limiters, string(v.Limiter))
	}
	if s.RTTMin > 0 {
		w.RTTMinS = seconds(s.RTTMin)
	}
	if s.RTTMean > 0 {
		w.RTTMeanS = seconds(s.RTTMean)
	}
	if ratio, ok := s.LossRatio(); ok {
		w.ResentRatio = &ratio
	}
	return w
}

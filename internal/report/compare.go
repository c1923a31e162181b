package report

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// ComparedDirection compares two ways.
func ComparedDirection(direction transfer.Direction, peers [2]string, sides [2]compare.Side) record.ComparedDirection {
	out := record.ComparedDirection{Direction: direction, First: newWay(peers[0], &sides[0]), Second: newWay(peers[1],
		&sides[1]), Difference: compare.Sides(sides[0], sides[1])}
	if factor := out.Difference.Factor; !math.IsNaN(factor.Mid) {
		out.Factor = new(record.NewGain(factor))
	}
	guard.Compared(&out)
	for i := range out.Explanations {
		e := &out.Explanations[i]
		e.Text = text.ExplanationSentence(e)
	}
	out.Text = text.DifferenceSentence(&out)
	return out
}

func newWay(peer string, s *compare.Side) record.ComparedWay {
	w := record.ComparedWay{Peer: peer, GoodputsBps: append([]float64{}, s.Goodputs...), Limiters: []string{},
		RTTMin: units.Duration(s.RTTMin), RTTMean: units.Duration(s.RTTMean), MSSBytes: s.MSS, PathMTUBytes: s.PathMTU,
		WindowBytes: s.Window, InFlightBytes: s.InFlight, NearCPURatio: s.NearCPU, FarCPURatio: s.FarCPU}
	goodput := stats.Estimate(s.Goodputs, 0.95)
	w.GoodputBps = rate(goodput.Mid)
	if len(s.Goodputs) > 1 {
		w.CI95Bps = &[2]float64{goodput.Low, goodput.High}
	}
	for _, v := range s.Verdicts {
		w.Limiters = append(w.Limiters, string(v.Limiter))
	}
	if ratio, ok := s.LossRatio(); ok {
		w.ResentRatio = &ratio
	}
	return w
}

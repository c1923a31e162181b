package record

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// Compare is the object that `measure --compare --json` prints.
type Compare struct {
	Header
	Peers       [2]string           `json:"peers"`
	Rounds      int                 `json:"rounds"` // of first, second, second, first
	Directions  []ComparedDirection `json:"directions"`
	Interrupted bool                `json:"interrupted,omitempty"`
	Error       *Failure            `json:"error,omitempty"`
}

// ComparedDirection is what both ways gave in one direction, and why they differ.
type ComparedDirection struct {
	Direction    transfer.Direction `json:"direction"`
	First        ComparedWay        `json:"first"`
	Second       ComparedWay        `json:"second"`
	Factor       *TuneGain          `json:"second_over_first,omitempty"`
	Slower       string             `json:"slower,omitempty"` // first or second; absent: no difference is shown
	Cause        compare.Cause      `json:"cause"`
	Confidence   verdict.Confidence `json:"confidence"`
	Candidates   []compare.Cause    `json:"candidates,omitempty"`
	Code         verdict.Code       `json:"code,omitempty"` // how the cause was decided
	Text         string             `json:"text"`
	Values       verdict.Values     `json:"values,omitempty"`
	Explanations []Explanation      `json:"explanations"`
}

// ComparedWay is one of the two ways, over all its transfers.
type ComparedWay struct {
	Peer          string      `json:"peer"`
	GoodputBps    *float64    `json:"goodput_bps,omitempty"`
	CI95Bps       *[2]float64 `json:"ci95_bps,omitempty"`
	GoodputsBps   []float64   `json:"goodputs_bps"`
	Limiters      []string    `json:"limiters"` // of each transfer
	MSSBytes      *int        `json:"mss_bytes,omitempty"`
	PathMTUBytes  *int        `json:"path_mtu_bytes,omitempty"`
	RTTMinS       *float64    `json:"rtt_min_s,omitempty"`
	RTTMeanS      *float64    `json:"rtt_mean_s,omitempty"`
	ResentRatio   *float64    `json:"retransmitted_ratio,omitempty"`
	WindowBytes   *int        `json:"window_bytes,omitempty"`
	InFlightBytes *int        `json:"in_flight_bytes,omitempty"`
	NearCPURatio  *float64    `json:"near_host_cpu_ratio,omitempty"`
	FarCPURatio   *float64    `json:"far_host_cpu_ratio,omitempty"`
}

// Explanation is one cause, and the factor that the slower way would give without it.
type Explanation struct {
	Cause      compare.Cause  `json:"cause"`
	FactorLow  float64        `json:"factor_low"`
	FactorHigh float64        `json:"factor_high"`
	Text       string         `json:"text"`
	Values     verdict.Values `json:"values,omitempty"`
}

// NewComparedDirection compares two ways.
func NewComparedDirection(direction transfer.Direction, peers [2]string, sides [2]compare.Side) ComparedDirection {
	d := compare.Sides(sides[0], sides[1])
	out := ComparedDirection{Direction: direction, First: newWay(peers[0], &sides[0]), Second: newWay(peers[1], &sides[1]),
		Slower: [...]string{"", "first", "second"}[d.Slower], Cause: d.Cause, Confidence: d.Confidence,
		Candidates: d.Candidates, Code: d.Why, Values: d.Values, Explanations: []Explanation{}}
	if !math.IsNaN(d.Factor.Mid) {
		out.Factor = &TuneGain{d.Factor.Mid, bounds(d.Factor)}
	}
	for _, e := range d.Explanations {
		out.Explanations = append(out.Explanations, Explanation{e.Cause, e.Low, e.High, "", e.Values})
	}
	return out
}

func newWay(peer string, s *compare.Side) ComparedWay {
	w := ComparedWay{Peer: peer, GoodputsBps: append([]float64{}, s.Goodputs...), Limiters: []string{},
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

package record

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// A late lab lowers the confidence of verdicts. A gain that was shown in turn keeps its own.
func TestLowerDoubtful(t *testing.T) {
	gain := func(low float64) *TuneGain { return &TuneGain{Factor: 4, CI95: &[2]float64{low, 5}} }
	for _, tt := range []struct {
		name       string
		believable bool
		gain       *TuneGain
		doubtful   bool
		want       verdict.Confidence
	}{
		{"exact lab", true, nil, false, verdict.High},
		{"late lab, no gain", false, nil, true, verdict.Medium},
		{"late lab, gain not shown", false, gain(0.9), true, verdict.Medium},
		{"late lab, gain shown", false, gain(3.9), false, verdict.High},
	} {
		d := TuneDirection{Chosen: &TuneChosen{WindowBytes: 1 << 20}, Gain: tt.gain}
		d.Before.Confidence = verdict.High
		tune := &Tune{Header: Header{Late: &Late{Believable: tt.believable}}, Directions: []TuneDirection{d}}
		LowerDoubtful(tune)
		if got := tune.Directions[0].Before.Confidence; got != tt.want || Doubtful(tune) != tt.doubtful {
			t.Errorf("%s: %s, doubtful %t", tt.name, got, Doubtful(tune))
		}
	}
	m := &Measure{Header: Header{Late: &Late{}},
		Directions: []Direction{{Verdict: verdict.Verdict{Confidence: verdict.Low}}}}
	LowerDoubtful(m)
	if m.Directions[0].Confidence != verdict.Low {
		t.Error(m.Directions[0].Confidence)
	}
}

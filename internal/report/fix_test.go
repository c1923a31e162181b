package report

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestFixesOfATune checks that the chosen remedy comes first with its gain, and remedies that did not help last.
func TestFixesOfATune(t *testing.T) {
	d := &tune.Direction{Before: tune.Measured{Verdict: verdict.Verdict{Limiter: verdict.Congestion}},
		Remedies: []tune.Remedy{{Name: "bbr", Setup: tune.Setup{Congestion: "bbr"}}}}
	d.Remedies[0].Gain.Mid = 0.98
	fixes := tuneFixes(d, &record.TuneDirection{})
	if fixes[0].Action == advice.OtherControl || fixes[len(fixes)-1].Action != advice.OtherControl {
		t.Errorf("%+v", fixes)
	}
	d.Remedies[0].Gain.Mid = 2
	d.Chosen = &tune.Chosen{Setup: tune.Setup{Congestion: "bbr", Streams: 4}}
	fixes = tuneFixes(d, &record.TuneDirection{After: &record.TuneMeasured{CI95Bps: &[2]float64{1e6, 2e6}}})
	if fixes[0].Action != advice.OtherControl || fixes[1].Action != advice.ParallelFlows || fixes[0].Expected == nil ||
		fixes[0].Expected.HighBps != 2e6 {
		t.Errorf("%+v", fixes)
	}
	full := &tune.Direction{Goal: tune.Latency,
		Before: tune.Measured{Verdict: verdict.Verdict{Limiter: verdict.Bottleneck}}}
	if first := tuneFixes(full, &record.TuneDirection{})[0]; first.Action != advice.FairQueue {
		t.Errorf("a full link is no answer to a queue: %+v", first)
	}
}

// TestFixesOfATuneThatIsOpen checks that the action agrees with the reason: a larger budget comes first if it would
// decide, remedies without a proven gain come last and without an expected gain.
func TestFixesOfATuneThatIsOpen(t *testing.T) {
	d := &tune.Direction{Before: tune.Measured{Verdict: verdict.Verdict{Limiter: verdict.Congestion}},
		Open:     &tune.Open{Setup: tune.Setup{Congestion: "bbr"}, Budget: time.Minute},
		Remedies: []tune.Remedy{{Name: "bbr", Setup: tune.Setup{Congestion: "bbr"}}}}
	d.Remedies[0].Gain = stats.Interval{Low: 0.9, Mid: 2.4, High: 6}
	doc := &record.TuneDirection{Before: record.TuneMeasured{MedianBps: 1e6}}
	fixes := tuneFixes(d, doc)
	if f := fixes[0]; f.Action != advice.LargerBudget || len(f.Settings) != 1 || f.Settings[0].Value != "1m" ||
		!f.Action.OnlyObserves() {
		t.Errorf("%+v", f)
	}
	if last := fixes[len(fixes)-1]; last.Action != advice.OtherControl || last.Expected != nil {
		t.Errorf("%+v", last)
	}
	d.Open.Gain = 1.03 // of little weight
	if first := tuneFixes(d, doc)[0]; first.Action == advice.LargerBudget {
		t.Errorf("%+v", first)
	}
	d.Open.Gain, d.Open.Budget = 2.4, 0 // no acceptable budget would decide
	if first := tuneFixes(d, doc)[0]; first.Action == advice.LargerBudget || first.Action == advice.OtherControl {
		t.Errorf("%+v", first)
	}
	d.Open, d.Remedies[0].Gain.Low = nil, 1.2
	if first := tuneFixes(d, doc)[0]; first.Action != advice.OtherControl {
		t.Errorf("it was shown to help: %+v", first)
	}
}

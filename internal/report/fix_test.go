package report

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func fixOf(t *testing.T, fixes []record.Fix, action remedy.Action) record.Fix {
	t.Helper()
	for _, f := range fixes {
		if f.Action == action {
			return f
		}
	}
	t.Fatalf("no %s in %+v", action, fixes)
	return record.Fix{}
}

// What is known of the path decides the settings and what to expect of them.
func TestFixesOfAPath(t *testing.T) {
	policed := verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Policer,
		Evidence: []verdict.Evidence{{Code: verdict.PolicedRate, Values: verdict.Values{"steady_bps": 8e6}}}}
	pace := fixOf(t, Fixes(policed, FixFacts{GoodputBps: 7e6}), remedy.PaceBelow)
	if len(pace.Settings) != 1 || pace.Settings[0].Value != "970000" || pace.Expected == nil || !pace.Expected.AtLeast {
		t.Errorf("8 Mbit/s are a million bytes a second: %+v", pace)
	}

	// 1 MB at 100 ms: 10 segments take 7 round trips to open, 100 take 4 (10 × (2^7 - 1)
	// segments are 1.8 MB, 100 × (2^3 - 1) 1.01 MB).
	short := FixFacts{GoodputBps: 8e6, Bytes: 1000000, DurationS: 1, RTTS: 0.1, MSSBytes: 1448}
	start := fixOf(t, Fixes(verdict.Verdict{Limiter: verdict.SlowStart}, short), remedy.InitialWindow)
	if len(start.Settings) != 2 || start.Settings[0].Name != "initcwnd" || start.Settings[1].Name != "initrwnd" ||
		start.Settings[0].Value != "100" || start.Expected == nil || start.Expected.HighBps <= 8e6/0.75 ||
		start.Expected.HighBps >= 8e6/0.55 {
		t.Errorf("%+v, %+v", start, start.Expected)
	}

	known := Fixes(verdict.Verdict{Limiter: verdict.ReceiverWindow}, FixFacts{GoodputBps: 5e6, PathBps: 20e6})
	if e := known[0].Expected; e == nil || e.LowBps != 5.5e6 || e.HighBps != 20e6 || e.AtLeast {
		t.Errorf("%+v", e)
	}
	bbr := fixOf(t, Fixes(verdict.Verdict{Limiter: verdict.Congestion}, FixFacts{Congestion: "bbr"}), remedy.OtherControl)
	if bbr.Settings[0].Value == "bbr" {
		t.Errorf("it is what it has: %+v", bbr)
	}
	// A sender cannot tell these apart, so the line says how to.
	open := verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.Low,
		Candidates: []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}}
	if first := Fixes(open, FixFacts{})[0]; first.Action != remedy.AskReceiver {
		t.Errorf("%+v", first)
	}
}

// Where a disturbance left hardly any confidence, measuring again comes before what would mend a guess.
func TestADisturbedMeasurementIsMeasuredAgain(t *testing.T) {
	v := verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.Low,
		Evidence: []verdict.Evidence{{Code: verdict.LossBelowBest}, {Code: verdict.HostWasLate}}}
	fixes := again(v, Fixes(v, FixFacts{}))
	if fixes[0].Action != remedy.MeasureAgain || !fixes[0].Action.Tells() || len(fixes) < 2 ||
		fixes[0].Settings == nil {
		t.Errorf("%+v", fixes)
	}
	v.Confidence = verdict.Medium
	if fixes := again(v, Fixes(v, FixFacts{})); fixes[0].Action == remedy.MeasureAgain {
		t.Errorf("%+v", fixes[0])
	}
	v.Confidence, v.Evidence = verdict.Low, v.Evidence[:1]
	if fixes := again(v, Fixes(v, FixFacts{})); fixes[0].Action == remedy.MeasureAgain {
		t.Errorf("%+v", fixes[0])
	}
}

// What tune tried and did not help is advised last, what it chose first, with what it gave.
func TestFixesOfATune(t *testing.T) {
	d := &tune.Direction{Before: tune.Measured{Verdict: verdict.Verdict{Limiter: verdict.Congestion}},
		Remedies: []tune.Remedy{{Name: "bbr", Setup: tune.Setup{Congestion: "bbr"}}}}
	d.Remedies[0].Gain.Mid = 0.98
	fixes := tuneFixes(d, &record.TuneDirection{})
	if fixes[0].Action == remedy.OtherControl || fixes[len(fixes)-1].Action != remedy.OtherControl {
		t.Errorf("%+v", fixes)
	}
	d.Remedies[0].Gain.Mid = 2
	d.Chosen = &tune.Chosen{Setup: tune.Setup{Congestion: "bbr", Streams: 4}}
	fixes = tuneFixes(d, &record.TuneDirection{After: &record.TuneMeasured{CI95Bps: &[2]float64{1e6, 2e6}}})
	if fixes[0].Action != remedy.OtherControl || fixes[1].Action != remedy.ParallelFlows || fixes[0].Expected == nil ||
		fixes[0].Expected.HighBps != 2e6 {
		t.Errorf("%+v", fixes)
	}
	full := &tune.Direction{Goal: tune.Latency,
		Before: tune.Measured{Verdict: verdict.Verdict{Limiter: verdict.Bottleneck}}}
	if first := tuneFixes(full, &record.TuneDirection{})[0]; first.Action != remedy.FairQueue {
		t.Errorf("a full link is no answer to a queue: %+v", first)
	}
}

// The line that says what to do and the reason above it are one: what more time would decide comes
// first, what was tried and not shown to help last and without a promise.
func TestFixesOfATuneThatIsOpen(t *testing.T) {
	d := &tune.Direction{Before: tune.Measured{Verdict: verdict.Verdict{Limiter: verdict.Congestion}},
		Open:     &tune.Open{Of: "congestion control bbr", Budget: time.Minute},
		Remedies: []tune.Remedy{{Name: "bbr", Setup: tune.Setup{Congestion: "bbr"}}}}
	d.Remedies[0].Gain = stats.Interval{Low: 0.9, Mid: 2.4, High: 6}
	doc := &record.TuneDirection{Before: record.TuneMeasured{MedianBps: 1e6}}
	fixes := tuneFixes(d, doc)
	if f := fixes[0]; f.Action != remedy.LargerBudget || len(f.Settings) != 1 || f.Settings[0].Value != "1m" ||
		!f.Action.Tells() {
		t.Errorf("%+v", f)
	}
	if last := fixes[len(fixes)-1]; last.Action != remedy.OtherControl || last.Expected != nil {
		t.Errorf("%+v", last)
	}
	d.Open.Gain = 1.03 // of little weight
	if first := tuneFixes(d, doc)[0]; first.Action == remedy.LargerBudget {
		t.Errorf("%+v", first)
	}
	d.Open.Gain, d.Open.Budget = 2.4, 0 // nothing that anybody waits for would tell
	if first := tuneFixes(d, doc)[0]; first.Action == remedy.LargerBudget || first.Action == remedy.OtherControl {
		t.Errorf("%+v", first)
	}
	d.Open, d.Remedies[0].Gain.Low = nil, 1.2
	if first := tuneFixes(d, doc)[0]; first.Action != remedy.OtherControl {
		t.Errorf("it was shown to help: %+v", first)
	}
}

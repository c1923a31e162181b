package guard

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestCaptured_RemovesContradictions(t *testing.T) {
	tests := []struct {
		name    string
		code    verdict.Code
		values  verdict.Values
		removed bool
		without string // the only value that is removed
	}{
		{"agrees", verdict.CapturedFullLink, verdict.Values{"time_ratio": 1, "best_bps": 8e6, "rtt_s": 0.05,
			"rtt_base_s": 0.04}, false, ""},
		{"loaded round trip below the least", verdict.CapturedFullLink, verdict.Values{"time_ratio": 1, "best_bps": 8e6,
			"rtt_s": 0.03, "rtt_base_s": 0.04}, true, ""},
		{"rate above what was carried", verdict.CapturedFullLink, verdict.Values{"time_ratio": 1, "best_bps": 3.7e12,
			"rtt_s": 0.05, "rtt_base_s": 0.04}, true, ""},
		{"no round trip", verdict.CapturedWindowFull, verdict.Values{"time_ratio": 0.2, "window_bytes": 65535, "rtt_s": 0},
			true, ""},
		{"window allows less than came", verdict.CapturedWindowFull, verdict.Values{"time_ratio": 1, "rtt_s": 0.04,
			"window_bytes": 20_000, "allows_bps": 4e6}, true, ""},
		{"twice is less", verdict.CapturedProgramWindow, verdict.Values{"time_ratio": 1, "rtt_s": 0.04,
			"program_window_bytes": 605_000, "allows_bps": 121e6, "twice_bps": 114e6, "eightfold_bps": 118e6}, false,
			"twice_bps"},
		{"eightfold is less", verdict.CapturedProgramWindow, verdict.Values{"time_ratio": 1, "rtt_s": 0.04,
			"program_window_bytes": 605_000, "allows_bps": 121e6, "twice_bps": 214e6, "eightfold_bps": 118e6}, false,
			"eightfold_bps"},
		{"super-segments beyond a small buffer", verdict.SendQueueSeen, verdict.Values{"granted_bytes": 16_384,
			"queued_bytes": 455_160, "full_ratio": 0.5, "room_ratio": 0.2}, false, ""},
		{"share above the whole", verdict.CapturedIdle, verdict.Values{"time_ratio": 1.43}, true, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			goodput := 8e6
			d := record.CapturedDirection{Bytes: 10e6, ShownBytes: 10e6, DurationS: 10, GoodputBps: &goodput,
				Verdict: verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.High,
					Evidence: []verdict.Evidence{{Limiter: verdict.Bottleneck, Code: test.code, Values: test.values}}}}
			Captured(&d, 10)
			kept := d.Evidence[0].Code == test.code
			if kept == test.removed {
				t.Fatalf("%v", d.Evidence)
			}
			changed := test.removed || test.without != ""
			if want := verdict.LowerUnless(!changed, verdict.High); d.Confidence != want {
				t.Errorf("%s confidence, want %s", d.Confidence, want)
			}
			if changed != (d.Evidence[len(d.Evidence)-1].Code == verdict.FiguresRemoved) {
				t.Errorf("%v", d.Evidence)
			}
			if test.without != "" {
				if _, ok := d.Evidence[0].Values[test.without]; ok || test.values[test.without] == 0 {
					t.Errorf("%v of %v", d.Evidence[0].Values, test.values)
				}
			}
			again := d
			Captured(&again, 10)
			if again.Confidence != d.Confidence {
				t.Errorf("checked again: %s confidence, before %s", again.Confidence, d.Confidence)
			}
		})
	}
}

func TestCaptured_RemovesFigures(t *testing.T) {
	goodput := 3.7e12
	least := 0.04
	most := 0.03
	d := record.CapturedDirection{Bytes: 10e6, ShownBytes: 10e6, DurationS: 10, GoodputBps: &goodput, RTTMinS: &least,
		RTTMaxS: &most, Verdict: verdict.Verdict{Confidence: verdict.High}}
	if Captured(&d, 10); d.GoodputBps != nil || d.RTTMaxS != nil || d.Confidence != verdict.Medium {
		t.Errorf("%v, %v, %s", d.GoodputBps, d.RTTMaxS, d.Confidence)
	}
	goodput = 8e6
	d = record.CapturedDirection{DurationS: 10, GoodputBps: &goodput,
		Prediction: &record.CapturedPrediction{LowBps: 7e6, HighBps: 6e6}}
	if Captured(&d, 10); d.Prediction != nil || d.Evidence[0].Values["figures"] != 1 {
		t.Errorf("predicted less than was measured, and two bounds in the wrong order: %v, %v", d.Prediction, d.Evidence)
	}
}

func TestDirection_RemovesFigures(t *testing.T) {
	bytes := int64(1e6)
	took := 1.0
	goodput := 8e6
	steady := 23.5e6
	d := record.Direction{Bytes: &bytes, DurationS: &took, GoodputBps: &goodput, SteadyGoodputBps: &steady,
		Startup: &record.Startup{DurationS: 0.5}, RTTMin: units.Duration(40 * time.Millisecond),
		RTTLoaded: units.Duration(20 * time.Millisecond),
		Intervals: []record.Interval{{EndS: 0.5, Bytes: 5e6, GoodputBps: 80e6}}}
	Direction(&d)
	if d.GoodputBps == nil || d.SteadyGoodputBps != nil || d.RTTLoaded != 0 || d.Intervals != nil {
		t.Errorf("%v, %v, %v, %v", d.GoodputBps, d.SteadyGoodputBps, d.RTTLoaded, d.Intervals)
	}
}

func TestLoops_RemoveFigures(t *testing.T) {
	capacity := 19e6
	high := 23.5e6
	middle := 18.8e6
	tune := record.TuneDirection{Path: record.TunePath{CapacityBps: capacity, BottleneckBps: capacity},
		Before: record.TuneMeasured{MedianBps: middle, CI95Bps: &[2]float64{14e6, high}}}
	if Tune(&tune); tune.Before.CI95Bps != nil || tune.Path.CapacityBps == 0 {
		t.Errorf("%v, %v", tune.Before.CI95Bps, tune.Path.CapacityBps)
	}
	tune.Trials = []record.TuneTrial{{GoodputBps: high}}
	if Tune(&tune); tune.Path.CapacityBps != 0 || tune.Path.BottleneckBps != 0 {
		t.Errorf("%v", tune.Path.CapacityBps)
	}
	line := record.RFC6349Direction{Bottleneck: record.RFC6349Bottleneck{Bps: 20e6},
		Tests: []record.RFC6349Test{{GoodputBps: &high, CI95Bps: &[2]float64{high, high}},
			{GoodputBps: &middle, CI95Bps: &[2]float64{14e6, high}}, {GoodputBps: &middle}}}
	RFC6349(&line)
	if line.Tests[0].GoodputBps != nil || line.Tests[1].CI95Bps != nil || line.Tests[1].GoodputBps == nil {
		t.Errorf("%+v", line.Tests)
	}
}

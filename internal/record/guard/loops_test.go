package guard

import (
	"reflect"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestLoopRelations_EachRemovesItsFigures(t *testing.T) {
	table := loopRelations
	defer func() { loopRelations = table }()
	sound := func() *record.TuneDirection {
		d := &record.TuneDirection{
			Path:   record.TunePath{CapacityBps: 20e6, BottleneckBps: 20e6, RTTMin: ms(40), RTTLoaded: ms(50)},
			File:   &record.TuneFile{Bytes: 10e6, Before: ms(8000), After: ms(5000)},
			Before: record.TuneMeasured{MedianBps: 10e6, CI95Bps: &[2]float64{9e6, 11e6}},
			After:  &record.TuneMeasured{MedianBps: 18e6, CI95Bps: &[2]float64{17e6, 19e6}},
			Gain:   &record.TuneGain{Factor: 1.8, CI95: &[2]float64{1.6, 2}},
			Chosen: &record.TuneChosen{WindowBytes: 100_000},
			Trials: []record.TuneTrial{{GoodputBps: 18e6, WindowBytes: 100_000, EffectiveBytes: 100_000,
				RetransmittedRatio: new(0.1)}},
			Remedies: []record.TuneRemedy{{TuneGain: record.TuneGain{Factor: 2, CI95: &[2]float64{1.8, 2.2}}}}}
		d.Path.BDPBytes = 100_000
		d.Before.Verdict = verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.High}
		return d
	}
	untested := map[string]bool{}
	for _, r := range table {
		untested[r.left+">"+r.right] = true
	}
	for name, change := range map[string]func(d *record.TuneDirection, gone bool){
		"goodput_bps>capacity_bps": func(d *record.TuneDirection, gone bool) {
			d.Trials[0].GoodputBps = 22e6
			if gone {
				dropCapacity(&d.Path)
			}
		},
		"capacity_bps>bottleneck_bps": func(d *record.TuneDirection, gone bool) {
			d.Path.BottleneckBps /= 3
			if gone {
				dropCapacity(&d.Path)
			}
		},
		"bdp_bytes>product_bytes": func(d *record.TuneDirection, gone bool) {
			d.Path.BDPBytes = unless0(gone, 300_000)
		},
		"product_bytes>bdp_bytes": func(d *record.TuneDirection, gone bool) {
			d.Path.BDPBytes = unless0(gone, 30_000)
		},
		"interval_low_bps>median_bps": func(d *record.TuneDirection, gone bool) {
			d.Before.MedianBps /= 3
			if gone {
				d.Before.CI95Bps = nil
			}
		},
		"median_bps>interval_high_bps": func(d *record.TuneDirection, gone bool) {
			d.Before.MedianBps = 14e6
			if gone {
				d.Before.CI95Bps = nil
			}
		},
		"factor_low>factor": func(d *record.TuneDirection, gone bool) {
			d.Remedies[0].Factor /= 3
			if gone {
				d.Remedies[0].CI95 = nil
			}
		},
		"factor>factor_high": func(d *record.TuneDirection, gone bool) {
			d.Remedies[0].Factor *= 3
			if gone {
				d.Remedies[0].CI95 = nil
			}
		},
		"factor_low>most_factor": func(d *record.TuneDirection, gone bool) {
			d.Gain = &record.TuneGain{Factor: 5.4, CI95: &[2]float64{4.8, 6}}
			if gone {
				d.Gain = nil
			}
		},
		"least_factor>factor_high": func(d *record.TuneDirection, gone bool) {
			d.Gain = &record.TuneGain{Factor: 0.6, CI95: &[2]float64{0.5, 0.7}}
			if gone {
				d.Gain = nil
			}
		},
		"chosen_bytes>tried_bytes": func(d *record.TuneDirection, gone bool) {
			d.Chosen.WindowBytes *= 3
			if gone {
				d.Chosen.WindowBytes = 0
			}
		},
		"flight_bytes>effective_bytes": func(d *record.TuneDirection, gone bool) {
			d.Trials[0].EffectiveBytes /= 3
			if gone {
				d.Trials[0].EffectiveBytes = 0
			}
		},
		"retransmitted_ratio>1": func(d *record.TuneDirection, gone bool) {
			d.Trials[0].RetransmittedRatio = new(3.0)
			if gone {
				d.Trials[0].RetransmittedRatio = nil
			}
		},
		"interval_high_bps>capacity_bps": func(d *record.TuneDirection, gone bool) {
			d.Before.CI95Bps[1] *= 3
			if gone {
				d.Before.CI95Bps = nil
			}
		},
		"file_bps>capacity_bps": func(d *record.TuneDirection, gone bool) {
			d.File.Bytes *= 3
			if gone {
				d.File = nil
			}
		},
		"rtt_min_s>rtt_loaded_s": func(d *record.TuneDirection, gone bool) { d.Path.RTTLoaded = unless(gone, ms(50)/3) },
	} {
		for _, relations := range [][]relation{table, without(table, name)} {
			loopRelations = relations
			acts := len(relations) == len(table)
			got, want := sound(), sound()
			change(got, false)
			change(want, acts)
			lowered(&want.Before.Verdict, acts)
			if Tune(got); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, in the table: %t: %+v, want %+v", name, acts, got, want)
			}
		}
		if len(table)-len(without(table, name)) != 1 {
			t.Errorf("%s is not in the table once", name)
		}
		delete(untested, name)
	}
	if len(untested) > 0 {
		t.Errorf("not tested: %v", untested)
	}
}

// unless0 returns the figure, or 0 where it is gone.
func unless0(gone bool, figure float64) float64 {
	if gone {
		return 0
	}
	return figure
}

// TestTune_EvidenceWithinCapacity checks that no rate of a verdict exceeds what the path carries, unless the path may
// carry more or a policer let it through at first.
func TestTune_EvidenceWithinCapacity(t *testing.T) {
	faster := verdict.Values{"steady_bps": 46.3e3, "best_bps": 95.8e3}
	for _, c := range []struct {
		name    string
		code    verdict.Code
		atLeast bool
		kept    bool
	}{
		{"a rate between losses", verdict.LossBelowBest, false, false},
		{"the path may carry more", verdict.LossBelowBest, true, true},
		{"a policer", verdict.PolicedRate, false, true},
	} {
		sound := func() verdict.Verdict {
			return verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.Medium,
				Evidence: []verdict.Evidence{{Limiter: verdict.Congestion, Code: c.code, Values: faster}}}
		}
		d := &record.TuneDirection{Path: record.TunePath{CapacityBps: 46.5e3, BottleneckBps: 48e3, AtLeast: c.atLeast},
			Before: record.TuneMeasured{MedianBps: 46.3e3}, After: &record.TuneMeasured{MedianBps: 46.4e3}}
		d.Before.Verdict = sound()
		d.After.Verdict = sound()
		Tune(d)
		for _, v := range []verdict.Verdict{d.Before.Verdict, d.After.Verdict} {
			kept := v.Evidence[0].Code == c.code
			if kept != c.kept || kept != (v.Confidence == verdict.Medium) || d.Path.CapacityBps == 0 {
				t.Errorf("%s: %+v", c.name, v)
			}
		}
	}
}

// TestTune_WindowsAllowTheGoodput checks a window's rate against the goodput of all runs and all streams.
func TestTune_WindowsAllowTheGoodput(t *testing.T) {
	for streams, kept := range map[int]bool{1: false, 2: false, 4: true} {
		full := verdict.Values{"time_ratio": 0.99, "window_bytes": 819e3, "rtt_s": 0.12, "allows_bps": 54.6e6}
		d := &record.TuneDirection{Before: record.TuneMeasured{MedianBps: 182e6}}
		d.Before.Streams = make([]record.Stream, streams)
		d.Before.Verdict = verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.High,
			Evidence: []verdict.Evidence{{Limiter: verdict.ReceiverWindow, Code: verdict.ReceiveWindowFull, Values: full}}}
		Tune(d)
		v := d.Before.Verdict
		if v.Evidence[0].Code == verdict.ReceiveWindowFull != kept || v.Confidence == verdict.High != kept {
			t.Errorf("%d streams: %+v", streams, v)
		}
	}
}

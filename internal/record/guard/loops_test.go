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
			Before: record.TuneMeasured{MedianBps: 10e6, CI95Bps: &[2]float64{9e6, 11e6}}}
		d.Before.Verdict = verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.High}
		return d
	}
	for name, change := range map[string]func(d *record.TuneDirection, gone bool){
		"goodput_bps>capacity_bps": func(d *record.TuneDirection, gone bool) {
			d.Before.MedianBps *= 3
			if gone {
				dropCapacity(&d.Path)
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
	}
}

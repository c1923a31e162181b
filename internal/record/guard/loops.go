package guard

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Tune checks the rates of one direction of `tune` against the capacity of its path.
func Tune(d *record.TuneDirection) {
	p := &d.Path
	measured := []*record.TuneMeasured{&d.Before}
	if d.After != nil {
		measured = append(measured, d.After)
	}
	s := scope{}
	s.addTime("rtt_min_s", p.RTTMin)
	s.addTime("rtt_loaded_s", p.RTTLoaded)
	if !p.AtLeast && p.CapacityBps > 0 {
		s["capacity_bps"] = p.CapacityBps
	}
	for _, m := range measured {
		s["goodput_bps"] = max(s["goodput_bps"], m.MedianBps)
	}
	for i := range d.Trials {
		s["goodput_bps"] = max(s["goodput_bps"], d.Trials[i].GoodputBps)
	}
	if f := d.File; f != nil && f.After > 0 && f.Before > 0 {
		s["file_bps"] = float64(f.Bytes) * 8 / min(f.After, f.Before).Seconds()
	}
	remove := drop{"rtt_loaded_s": func() { p.RTTLoaded = 0 },
		"file_bps":     func() { d.File = nil },
		"capacity_bps": func() { dropCapacity(p) }}
	broken := check(loopRelations, s, remove)
	for _, m := range measured {
		broken += checkInterval(s, &m.CI95Bps)
	}
	conclude(&d.Before.Verdict, broken, false)
}

func dropCapacity(p *record.TunePath) {
	p.BottleneckBps = 0
	p.CapacityBps = 0
	p.BDPBytes = 0
}

// checkInterval removes an interval whose end exceeds the capacity of the path.
func checkInterval(s scope, ci **[2]float64) int {
	if *ci == nil {
		return 0
	}
	s["interval_high_bps"] = (*ci)[1]
	defer delete(s, "interval_high_bps")
	return check(loopRelations, s, drop{"interval_high_bps": func() { *ci = nil }})
}

// RFC6349 checks one direction of `rfc6349`. A test's rate above its bottleneck leaves neither of the two certain: the
// rate is removed with its interval.
func RFC6349(d *record.RFC6349Direction) {
	if d.Bottleneck.IsZero() || d.Bottleneck.AtLeast {
		return
	}
	path := scope{"capacity_bps": d.Bottleneck.Bps}
	for i := range d.Criteria {
		if c := &d.Criteria[i]; c.Unit == "bps" {
			checkInterval(path, &c.CI95)
		}
	}
	for i := range d.Tests {
		t := &d.Tests[i]
		checkInterval(path, &t.CI95Bps)
		s := scope{"capacity_bps": d.Bottleneck.Bps}
		s.add("goodput_bps", t.GoodputBps)
		check(loopRelations, s, drop{"capacity_bps": func() {
			t.GoodputBps = nil
			t.CI95Bps = nil
		}})
	}
}

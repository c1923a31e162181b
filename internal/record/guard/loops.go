package guard

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Tune checks the rates of one direction of `tune`, and those of its evidence, against the capacity of its path.
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
	for i := range d.Remedies {
		s["goodput_bps"] = max(s["goodput_bps"], d.Remedies[i].GoodputBps)
	}
	if f := d.File; f != nil && f.After > 0 && f.Before > 0 {
		s["file_bps"] = float64(f.Bytes) * 8 / min(f.After, f.Before).Seconds()
	}
	remove := drop{"rtt_loaded_s": func() { p.RTTLoaded = 0 },
		"file_bps":     func() { d.File = nil },
		"capacity_bps": func() { dropCapacity(p) }}
	if p.CapacityBps > 0 {
		s["bottleneck_bps"] = p.BottleneckBps
		s["bdp_bytes"] = p.BDPBytes
		s["product_bytes"] = p.CapacityBps / 8 * p.RTTMin.Seconds()
		remove["bdp_bytes"] = func() { p.BDPBytes = 0 }
	}
	if c := d.Chosen; c != nil && len(d.Trials) > 0 {
		s["chosen_bytes"] = float64(c.WindowBytes)
		remove["chosen_bytes"] = func() { c.WindowBytes = 0 }
	}
	for i := range d.Trials {
		s["tried_bytes"] = max(s["tried_bytes"], float64(d.Trials[i].WindowBytes))
	}
	broken := check(loopRelations, s, remove)
	for i := range d.Trials {
		broken += checkTrial(&d.Trials[i], p)
	}
	for _, m := range measured {
		broken += checkInterval(s, &m.CI95Bps)
		broken += checkMedian(m)
	}
	broken += checkGains(d)
	for _, m := range measured {
		brokenRates, causeRemoved := checkRates(m, p)
		conclude(&m.Verdict, broken+brokenRates, causeRemoved)
		broken = 0 // counted in the verdict before
	}
}

// checkRates checks the rates of a verdict's evidence against the goodput and the path's capacity.
func checkRates(m *record.TuneMeasured, p *record.TunePath) (broken int, causeRemoved bool) {
	s := scope{"stream_bps": m.MedianBps / float64(max(len(m.Streams), 1))}
	if !p.AtLeast {
		s["path_bps"] = p.CapacityBps
	}
	return evidence(&m.Verdict, s)
}

// checkTrial checks the window and the losses of one transfer.
func checkTrial(t *record.TuneTrial, p *record.TunePath) int {
	s := scope{"1": 1}
	s.add("retransmitted_ratio", t.RetransmittedRatio)
	if t.Remedy == "" { // by one connection
		s["flight_bytes"] = t.GoodputBps / 8 * p.RTTMin.Seconds()
		s["effective_bytes"] = float64(t.EffectiveBytes)
	}
	return check(loopRelations, s, drop{"effective_bytes": func() { t.EffectiveBytes = 0 },
		"retransmitted_ratio": func() { t.RetransmittedRatio = nil }})
}

// checkMedian removes an interval that its median is not in.
func checkMedian(m *record.TuneMeasured) int {
	if m.CI95Bps == nil {
		return 0
	}
	s := scope{"interval_low_bps": m.CI95Bps[0], "median_bps": m.MedianBps}
	broken := check(loopRelations, s, drop{"interval_bps": func() { m.CI95Bps = nil }})
	if m.CI95Bps == nil {
		return broken
	}
	s = scope{"median_bps": m.MedianBps, "interval_high_bps": m.CI95Bps[1]}
	return check(loopRelations, s, drop{"interval_bps": func() { m.CI95Bps = nil }})
}

// checkGains checks the factors of one direction: of its gain, which is of goodput, of its remedies, of the delay and
// of other flows.
func checkGains(d *record.TuneDirection) (broken int) {
	if d.Gain != nil {
		s := scope{}
		if a := d.After; a != nil && a.CI95Bps != nil && d.Before.CI95Bps != nil && d.Before.CI95Bps[0] > 0 {
			s["most_factor"] = a.CI95Bps[1] / d.Before.CI95Bps[0]
			s["least_factor"] = a.CI95Bps[0] / d.Before.CI95Bps[1]
		}
		broken += checkGain(s, d.Gain, func() { d.Gain = nil })
	}
	for i := range d.Remedies {
		r := &d.Remedies[i]
		s := scope{"1": 1}
		s.add("retransmitted_ratio", r.RetransmittedRatio)
		broken += check(loopRelations, s, drop{"retransmitted_ratio": func() { r.RetransmittedRatio = nil }})
		broken += checkGain(scope{}, &r.TuneGain, nil)
	}
	if d.Delay != nil {
		broken += checkGain(scope{}, &d.Delay.TuneGain, nil)
	}
	if d.Others != nil {
		broken += checkGain(scope{}, &d.Others.TuneGain, nil)
	}
	return broken
}

// checkGain checks a factor against its interval and against the factors in s.
func checkGain(s scope, g *record.TuneGain, whole func()) int {
	s["factor"] = g.Factor
	s["factor_low"] = g.Factor
	s["factor_high"] = g.Factor
	if g.CI95 != nil {
		s["factor_low"] = g.CI95[0]
		s["factor_high"] = g.CI95[1]
	}
	remove := drop{"factor_interval": func() { g.CI95 = nil }}
	if whole != nil {
		remove["factor"] = whole
	}
	return check(loopRelations, s, remove)
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

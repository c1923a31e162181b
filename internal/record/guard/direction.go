package guard

import (
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Direction checks one direction of a measured transfer.
func Direction(d *record.Direction) {
	s := scope{}
	s.add("goodput_bps", d.GoodputBps)
	s.add("duration_s", d.DurationS)
	s.addTime("rtt_min_s", d.RTTMin)
	s.addTime("rtt_mean_s", d.RTTMean)
	s.addTime("rtt_loaded_s", d.RTTLoaded)
	if d.GoodputBps != nil {
		s["stream_bps"] = *d.GoodputBps / float64(max(len(d.Streams), 1))
	}
	if d.Bytes != nil {
		carries(s, float64(*d.Bytes))
	}
	if d.SteadyGoodputBps != nil && d.Startup != nil {
		s["steady_bytes"] = *d.SteadyGoodputBps / 8 * (s["duration_s"] - d.Startup.DurationS)
	}
	for i := range d.Intervals {
		one := &d.Intervals[i]
		s["interval_bytes"] += float64(one.Bytes)
		if took := one.EndS - one.StartS; took > 0 && one.GoodputBps > agree*float64(one.Bytes)*8/took {
			s["interval_bps"] = one.GoodputBps
			s["interval_carried_bps"] = float64(one.Bytes) * 8 / took
		}
	}
	if l := d.Latency; l != nil {
		s.add("latency_loaded_s", l.LoadedS)
		s.add("latency_p95_s", l.LoadedP95S)
		s.add("latency_largest_s", l.LoadedLargestS)
	}
	finish(&d.Verdict, d.Fix, s, drop{"goodput_bps": func() { d.GoodputBps = nil },
		"steady_goodput_bps": func() { d.SteadyGoodputBps = nil },
		"rtt_mean_s":         func() { d.RTTMean = 0 },
		"rtt_loaded_s":       func() { d.RTTLoaded = 0 },
		"latency":            func() { d.Latency = nil },
		"intervals":          func() { d.Intervals = nil }})
}

// Captured checks one direction of a captured connection, which lasted the given number of seconds.
func Captured(d *record.CapturedDirection, lasted float64) {
	s := scope{"duration_s": d.DurationS, "connection_s": max(lasted, d.DurationS+d.SYNWaitS),
		"uncaptured_bytes": float64(d.UncapturedBytes), "bytes": float64(d.Bytes)}
	s.add("goodput_bps", d.GoodputBps)
	s.add("stream_bps", d.GoodputBps)
	s.add("rtt_min_s", d.RTTMinS)
	s.add("rtt_max_s", d.RTTMaxS)
	carries(s, float64(d.ShownBytes))
	if p := d.Prediction; p != nil {
		s["prediction_low_bps"] = p.LowBps
		s["prediction_high_bps"] = p.HighBps
	}
	finish(&d.Verdict, d.Fix, s, drop{"goodput_bps": func() { d.GoodputBps = nil },
		"rtt_max_s":  func() { d.RTTMaxS = nil },
		"prediction": func() { d.Prediction = nil }})
}

// Watched checks one direction of a watched connection.
func Watched(d *record.WatchedDirection) {
	s := scope{"goodput_bps": d.GoodputBps, "stream_bps": d.GoodputBps}
	s.addTime("rtt_min_s", d.RTTMin)
	s.addTime("rtt_s", d.RTT)
	finish(&d.Verdict, d.Fix, s, drop{"rtt_s": func() { d.RTT = 0 }})
}

// carries adds the bytes that packets or acknowledgements show, and their rate; 0 is not known.
func carries(s scope, bytes float64) {
	if bytes <= 0 {
		return
	}
	s["carried_bytes"] = bytes
	if length := s["duration_s"]; length > 0 {
		s["carried_bps"] = bytes * 8 / length
	}
}

// finish checks a direction's figures, the expected gains of its fixes and its evidence.
func finish(v *verdict.Verdict, fixes []advice.Fix, s scope, remove drop) {
	broken := check(directionRelations, s, remove)
	for i := range fixes {
		if e := fixes[i].Expected; e != nil {
			gain := scope{"goodput_bps": s["goodput_bps"], "expected_low_bps": e.LowBps, "expected_high_bps": e.HighBps}
			broken += check(directionRelations, gain, drop{"expected": func() { fixes[i].Expected = nil }})
		}
	}
	delete(s, "rtt_s") // evidence has its own
	removed, causeRemoved := evidence(v, s)
	conclude(v, broken+removed, causeRemoved)
}

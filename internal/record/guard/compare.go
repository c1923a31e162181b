package guard

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// Compared checks the figures of two compared paths in one direction.
func Compared(d *record.ComparedDirection) {
	removed := checkWay(&d.First) + checkWay(&d.Second) + checkFactor(d)
	kept := len(d.Explanations)
	d.Explanations = slices.DeleteFunc(d.Explanations, contradicts)
	removed += kept - len(d.Explanations)
	if removed == 0 {
		return
	}
	d.Confidence = verdict.Lower(d.Confidence)
	causeLeft := slices.ContainsFunc(d.Explanations, func(e compare.Explanation) bool { return e.Cause == d.Cause })
	if d.Code == compare.OneCause && !causeLeft {
		d.Cause = compare.UnknownCause
		d.Code = compare.Unexplained
		d.Values = nil
	}
}

func contradicts(e compare.Explanation) bool {
	s := scope{"explained_low": e.Low, "explained_high": e.High}
	return check(wayRelations, s, drop{"explanation": func() {}}) > 0
}

func checkWay(w *record.ComparedWay) int {
	s := scope{"1": 1, "mss_bytes": float64(w.MSSBytes), "path_mtu_bytes": float64(w.PathMTUBytes)}
	s.add("goodput_bps", w.GoodputBps)
	s.add("retransmitted_ratio", w.ResentRatio)
	s.add("near_cpu_ratio", w.NearCPURatio)
	s.add("far_cpu_ratio", w.FarCPURatio)
	s.addTime("rtt_min_s", w.RTTMin)
	s.addTime("rtt_mean_s", w.RTTMean)
	addRuns(s, w.GoodputsBps)
	if w.CI95Bps != nil {
		s["interval_low_bps"] = w.CI95Bps[0]
		s["interval_high_bps"] = w.CI95Bps[1]
	}
	return check(wayRelations, s, drop{
		"goodput_bps": func() {
			w.GoodputBps = nil
			w.CI95Bps = nil
		},
		"interval_bps":        func() { w.CI95Bps = nil },
		"rtt_mean_s":          func() { w.RTTMean = 0 },
		"path_mtu_bytes":      func() { w.PathMTUBytes = 0 },
		"retransmitted_ratio": func() { w.ResentRatio = nil },
		"near_cpu_ratio":      func() { w.NearCPURatio = nil },
		"far_cpu_ratio":       func() { w.FarCPURatio = nil }})
}

// checkFactor checks the factor between two paths against their transfers.
func checkFactor(d *record.ComparedDirection) int {
	f := d.Factor
	first := d.First.GoodputsBps
	second := d.Second.GoodputsBps
	if f == nil || len(first) == 0 || len(second) == 0 {
		return 0
	}
	s := scope{"factor": f.Factor, "least_factor": slices.Min(second) / slices.Max(first),
		"most_factor": slices.Max(second) / slices.Min(first)}
	if f.CI95 != nil {
		s["factor_low"] = f.CI95[0]
		s["factor_high"] = f.CI95[1]
	}
	return check(wayRelations, s, drop{"factor": func() { d.Factor = nil }, "factor_interval": func() { f.CI95 = nil }})
}

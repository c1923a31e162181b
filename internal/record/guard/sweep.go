package guard

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Sweep checks the figures of each cell of a grid and of each path.
func Sweep(doc *record.Sweep) {
	for i := range doc.Paths {
		checkPath(&doc.Paths[i])
	}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		path := &record.SweepPath{}
		if j := slices.IndexFunc(doc.Paths, func(p record.SweepPath) bool { return p.Direction == c.Direction }); j >= 0 {
			path = &doc.Paths[j]
		}
		checkCell(c, path)
	}
}

func checkPath(p *record.SweepPath) {
	check(gridRelations, scope{"bdp_bytes": p.BDPBytes, "product_bytes": p.CapacityBps / 8 * p.RTTMin.Seconds()},
		drop{"bdp_bytes": func() { p.BDPBytes = 0 }})
}

// checkCell checks a cell. If a measured cell exceeds the capacity of its path, the capacity is removed.
func checkCell(c *record.SweepCell, path *record.SweepPath) {
	s := scope{}
	if path.CapacityBps > 0 && (c.Measured() || !path.AtLeast) {
		s["capacity_bps"] = path.CapacityBps
	}
	if c.CI95Bps != nil {
		s["interval_low_bps"] = c.CI95Bps[0]
		s["interval_high_bps"] = c.CI95Bps[1]
	}
	if c.Predicted {
		s["predicted_bps"] = c.GoodputBps
		s["predicted_high_bps"] = s["interval_high_bps"]
	}
	if c.Measured() {
		s["goodput_bps"] = c.GoodputBps
		addRuns(s, c.Runs)
	}
	check(gridRelations, s, drop{
		"goodput_bps": func() {
			c.GoodputBps = 0
			c.CI95Bps = nil
			c.Predicted = false
		},
		"interval_bps": func() { c.CI95Bps = nil },
		"capacity_bps": func() {
			path.CapacityBps = 0
			path.BDPBytes = 0
			path.KneeSendBytes = 0
			path.KneeReceiveBytes = 0
		}})
}

// addRuns adds the smallest and the greatest goodput of several runs.
func addRuns(s scope, runs []float64) {
	if len(runs) > 0 {
		s["run_least_bps"] = slices.Min(runs)
		s["run_most_bps"] = slices.Max(runs)
	}
}

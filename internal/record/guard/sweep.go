package guard

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Sweep checks the figures of each cell of a grid and of each path.
func Sweep(doc *record.Sweep) {
	for i := range doc.Paths {
		checkPath(&doc.Paths[i], &doc.Axes)
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

func checkPath(p *record.SweepPath, axes *record.SweepAxes) {
	s := scope{"bdp_bytes": p.BDPBytes, "product_bytes": p.CapacityBps / 8 * p.RTTMin.Seconds(),
		"knee_send_bytes": p.KneeSendBytes, "knee_receive_bytes": p.KneeReceiveBytes}
	if !axes.SendAutomatic && len(axes.SendBuffers) > 0 {
		s["send_most_bytes"] = float64(slices.Max(axes.SendBuffers))
	}
	if !axes.ReceiveAutomatic && len(axes.ReceiveBuffers) > 0 {
		s["receive_most_bytes"] = float64(slices.Max(axes.ReceiveBuffers))
	}
	check(gridRelations, s, drop{"bdp_bytes": func() { p.BDPBytes = 0 },
		"knee_send":    func() { p.KneeSendBytes = 0 },
		"knee_receive": func() { p.KneeReceiveBytes = 0 }})
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
		s["flight_bytes"] = c.GoodputBps / 8 * path.RTTMin.Seconds()
		if c.SendBuffer != nil {
			s["sent_effective_bytes"] = float64(c.SendBuffer.EffectiveBytes)
		}
		if c.ReceiveBuffer != nil {
			s["received_effective_bytes"] = float64(c.ReceiveBuffer.EffectiveBytes)
		}
	}
	check(gridRelations, s, drop{
		"goodput_bps": func() {
			c.GoodputBps = 0
			c.CI95Bps = nil
			c.Predicted = false
		},
		"interval_bps":   func() { c.CI95Bps = nil },
		"send_buffer":    func() { c.SendBuffer = nil },
		"receive_buffer": func() { c.ReceiveBuffer = nil },
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

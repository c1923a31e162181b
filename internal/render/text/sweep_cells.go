package text

import (
	"fmt"
	"io"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// CellAxes are the columns of the cells of two sweeps: the axes on which cells differ.
func CellAxes(cells []record.DifferenceCell) (names []string, values func(record.SweepSetup) []string) {
	var shown []func(record.SweepSetup) string
	for _, axis := range []struct {
		name string
		of   func(record.SweepSetup) string
	}{
		{"direction", func(s record.SweepSetup) string { return string(s.Direction) }},
		{"congestion", func(s record.SweepSetup) string { return s.Congestion }},
		{"send buffer", func(s record.SweepSetup) string { return record.SweepSize(s.Send) }},
		{"receive buffer", func(s record.SweepSetup) string { return record.SweepSize(s.Receive) }},
		{"write size", func(s record.SweepSetup) string { return record.SweepSize(s.Write) }},
	} {
		if slices.ContainsFunc(cells, func(c record.DifferenceCell) bool {
			return axis.of(c.First.SweepSetup) != axis.of(cells[0].First.SweepSetup)
		}) {
			names = append(names, axis.name)
			shown = append(shown, axis.of)
		}
	}
	return names, func(s record.SweepSetup) (all []string) {
		for _, of := range shown {
			all = append(all, of(s))
		}
		return all
	}
}

// CellsSummary returns the range of the factors between the cells of two sweeps.
func CellsSummary(cells []record.DifferenceCell) string {
	var factors []float64
	for _, c := range cells {
		factors = append(factors, c.Factor)
	}
	return fmt.Sprintf("%d cells in both: the second sweep has × %s the goodput in the median, × %s to × %s",
		len(cells), factor(stats.Median(slices.Clone(factors))), factor(slices.Min(factors)), factor(slices.Max(factors)))
}

func writeCells(w io.Writer, cells []record.DifferenceCell) {
	if len(cells) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", CellsSummary(cells))
	names, values := CellAxes(cells)
	n := len(names)
	t := newTable(n, n+1, n+2)
	t.row(append(slices.Clone(names), "first", "second", "factor", "first limited by", "second limited by")...)
	for _, c := range cells {
		t.row(append(values(c.First.SweepSetup), units.Rate(c.First.GoodputBps).String(),
			units.Rate(c.Second.GoodputBps).String(), "× "+factor(c.Factor), string(c.First.Limiter),
			string(c.Second.Limiter))...)
	}
	t.write(w, "")
}

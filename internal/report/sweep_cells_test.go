package report

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestDifference_OfTwoSweeps pairs the cells of a sweep with the systems' default buffer with those of one with a
// tuned buffer: they agree in their write size.
func TestDifference_OfTwoSweeps(t *testing.T) {
	sweep := func(receive int, bps map[int]float64) *record.Sweep {
		s := &record.Sweep{}
		for _, write := range []int{0, 1024, 8192, 65536} {
			c := record.SweepCell{SweepSetup: record.SweepSetup{Direction: "up", Receive: receive, Write: write},
				GoodputBps: bps[write]}
			c.Predicted = write == 65536
			s.Cells = append(s.Cells, c)
		}
		return s
	}
	d := Difference(record.Header{}, sweep(0, map[int]float64{0: 9e6, 1024: 4e6, 8192: 8e6, 65536: 9e6}),
		sweep(262144, map[int]float64{0: 90e6, 1024: 5e6, 65536: 90e6}))
	want := map[int]float64{0: 10, 1024: 1.25} // one cell has no run in the second sweep, one is predicted
	if len(d.Cells) != len(want) {
		t.Fatalf("%+v", d.Cells)
	}
	for _, c := range d.Cells {
		if c.Factor != want[c.First.Write] || c.Second.Receive != 262144 || c.First.Receive != 0 {
			t.Errorf("%+v", c)
		}
	}
	a, b := sweep(0, map[int]float64{1024: 1e6}), sweep(0, map[int]float64{1024: 2e6})
	b.Cells = append(b.Cells, record.SweepCell{SweepSetup: record.SweepSetup{Direction: "up", Send: 4096, Write: 1024},
		GoodputBps: 7e6})
	cells := Difference(record.Header{}, a, b).Cells
	if len(cells) != 1 || cells[0].Factor != 2 {
		t.Errorf("an axis that varies in one sweep: %+v", cells)
	}
}

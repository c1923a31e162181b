package model

import (
	"math"
	"slices"
	"testing"
)

func TestAFDOutstanding(t *testing.T) {
	for _, tt := range []struct{ quota, write, want int }{
		{8192, 1024, 8192}, {8192, 3000, 8192}, {8192, 8192, 8192}, {8192, 16384, 24576}, {16384, 16384, 16384}, {8192, 0, 0},
	} {
		if got := (AFD{tt.quota}).Outstanding(tt.write); got != tt.want {
			t.Errorf("quota %d, writes of %d: %d outstanding, want %d", tt.quota, tt.write, got, tt.want)
		}
	}
}

// The default columns of the published tables (network, 100 Mbit/s), in Mbit/s for writes
// of 1 to 16 KiB.
func TestAFDAgainstPublishedThroughput(t *testing.T) {
	var ratios []float64
	for _, table := range []struct {
		rtt       float64 // s
		published [5]float64
	}{
		{12e-3, [5]float64{5.30, 6.14, 5.30, 6.81, 13.38}},
		{40e-3, [5]float64{1.62, 1.87, 1.62, 1.77, 4.86}},
	} {
		for i, published := range table.published {
			ours := float64(AFD{DefaultAFDQuota}.Outstanding(1024<<i)) * 8 / table.rtt / 1e6
			ratios = append(ratios, ours/published)
		}
	}
	slices.Sort(ratios)
	if median := (ratios[4] + ratios[5]) / 2; math.Abs(median-1) > 0.15 {
		t.Errorf("the model's median is %.2f of what was published", median)
	}
}

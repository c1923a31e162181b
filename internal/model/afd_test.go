package model

import (
	"testing"
	"time"
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

// Cells made by the rule itself give their round trip back, also where some fill the
// link; nothing but full cells, or none, imply no round trip.
func TestFitRTT(t *testing.T) {
	const rtt, link = 12 * time.Millisecond, 20e6
	var cells []AFDCell
	for _, quota := range []int{8192, 16384, 65536} {
		for _, write := range []int{1024, 16384} {
			cells = append(cells, AFDCell{quota, write, AFD{quota}.Goodput(write, rtt, link)})
		}
	}
	if got := FitRTT(cells, link); got < rtt*99/100 || got > rtt*101/100 {
		t.Errorf("a round trip of %v is taken for %v", rtt, got)
	}
	if FitRTT(nil, link) != 0 {
		t.Error("no cells imply a round trip")
	}
}

package main

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

// Cells made by the rule itself give their round trip back, also where some fill the
// link; nothing but full cells, or none, imply no round trip.
func TestFitRTT(t *testing.T) {
	const rtt, link = 12 * time.Millisecond, 20e6
	var cells []afdCell
	for _, quota := range []int{8192, 16384, 65536} {
		for _, write := range []int{1024, 16384} {
			cells = append(cells, afdCell{quota, write, afdGoodput(model.AFD{Quota: quota}, write, rtt, link)})
		}
	}
	if got := fitRTT(cells, link); got < rtt*99/100 || got > rtt*101/100 {
		t.Errorf("a round trip of %v is taken for %v", rtt, got)
	}
	if fitRTT(nil, link) != 0 {
		t.Error("no cells imply a round trip")
	}
}

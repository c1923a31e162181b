//go:build linux

package bench

import (
	"fmt"
	"math"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestBankSpeedGoodput compares the goodput that browser tests and ndt7 report with the link's own counters, over the
// same seconds.
func TestBankSpeedGoodput(t *testing.T) {
	bankOnly(t)
	for _, rate := range []string{"1mbit", "10mbit", "100mbit", "500mbit"} {
		path := "rate=" + rate + ",rtt=20ms"
		for _, how := range []string{"page", "ndt7"} {
			t.Run(rate+"/"+how, func(t *testing.T) {
				off := map[string][]float64{}
				var runs exact
				for runs.want = 3; runs.more(); {
					alone(t, func() {
						one := map[string]float64{}
						s := harness.NewSpeedLab(t, path)
						defer s.Close()
						if how == "page" {
							s.ComparePage(t, one)
						} else {
							s.CompareNDT7(t, one)
						}
						t.Log(path, how, one)
						if kept, err := runs.keepLab(s.Lab); kept && err == nil {
							for way, ratio := range one {
								off[way] = append(off[way], 100*(ratio-1))
							}
						}
					})
				}
				for _, way := range []string{"download", "upload"} {
					record(t, runs.into(goodputRow(path, how, way, off[way])))
				}
			})
		}
	}
}

func goodputRow(path, how, way string, off []float64) bankRow {
	worst, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, one := range off {
		worst, least, most = max(worst, math.Abs(one)), min(least, one), max(most, one)
	}
	tool := map[string]string{"page": "/test in Chromium", "ndt7": "measure ndt7://"}[how]
	return bankRow{Section: "Test from a browser", Case: fmt.Sprintf("goodput, %s, %s, %s", path, tool, way),
		Claim:    "within 3 % of the payload that the link's counters tell of the same seconds",
		Measured: fmt.Sprintf("%.2f %% off at most", worst), Spread: fmt.Sprintf("%+.2f to %+.2f %% in %d", least, most,
			len(off)), Verdict: passed(len(off) > 0 && worst <= 3), Command: "make bank RUN=TestBankSpeedGoodput"}
}

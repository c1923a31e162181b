//go:build linux

package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestBankCapacity searches links of known rate. It takes four minutes.
func TestBankCapacity(t *testing.T) {
	bankOnly(t)
	for _, c := range []struct {
		name string
		bps  float64
	}{{"rate=1mbit,rtt=40ms", 1e6}, {"rate=20mbit,rtt=40ms", 20e6}, {"rate=100mbit,rtt=40ms", 100e6},
		{"rate=400mbit,rtt=10ms", 400e6}} {
		t.Run(c.name, func(t *testing.T) {
			off := map[string][]float64{}
			for range 3 {
				for _, d := range harness.MeasureCapacity(t, c.name, "10s") {
					off[string(d.Direction)] = append(off[string(d.Direction)], 100*(d.CapacityBps/c.bps-1))
				}
			}
			for direction, all := range off {
				worst := math.Max(slices.Max(all), -slices.Min(all))
				record(t, bankRow{Section: "UDP capacity (RFC 9097)", Case: c.name + ", " + direction,
					Claim:    "the link's rate at the IP layer within 3 %",
					Measured: fmt.Sprintf("%+.2f %% (median)", median(all)), Spread: fmt.Sprintf("3 runs, %+.2f to %+.2f %%",
						slices.Min(all), slices.Max(all)),
					Verdict: quietVerdict(worst <= 3, company(t)), Command: "fullpipe measure --udp --capacity"})
			}
		})
	}
}

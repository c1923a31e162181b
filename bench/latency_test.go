//go:build linux

package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestBankLatency compares the measured queueing delay with the delay calculated from the queue's length. It takes
// three minutes.
func TestBankLatency(t *testing.T) {
	bankOnly(t)
	program := harness.Program(t)
	const rate, rtt = 50e6, 0.020
	for _, window := range []float64{192 << 10, 256 << 10, 512 << 10} {
		for _, direction := range []string{"up", "down"} {
			want := window*1500/1448*8/rate - rtt // with the headers of full packets
			var off []float64
			runs := exact{want: 5}
			for runs.more() {
				args := fmt.Sprintf("$FULLPIPE_FAR --window %.0f -t 4s -d %s", window, direction)
				doc := harness.Measure(t, "rate=50mbit,rtt=20ms,queue=40bdp", program+" serve --quiet", args)
				if !runs.keep(doc.Late) {
					continue
				}
				d := doc.Directions[0]
				if d.Latency == nil || d.Latency.AddedS == nil {
					t.Fatalf("not known: %+v", d.Latency)
				}
				off = append(off, *d.Latency.AddedS/want-1)
			}
			if len(off) == 0 {
				t.Errorf("window %.0f KiB, %s: the lab was too late in every run", window/1024, direction)
				continue
			}
			worst := math.Max(slices.Max(off), -slices.Min(off))
			record(t, runs.into(bankRow{Section: "Latency under load", Case: fmt.Sprintf("50 Mbit/s, 20 ms, window %.0f KiB, %s",
				window/1024, direction),
				Claim:    fmt.Sprintf("small packets wait the queue's %.0f ms longer, within 10 %%", 1000*want),
				Measured: fmt.Sprintf("%+.1f %% (median)", 100*median(off)), Spread: fmt.Sprintf("%d runs, %+.1f to %+.1f %%",
					len(off), 100*slices.Min(off), 100*slices.Max(off)),
				Verdict: passed(worst <= 0.10), Command: "fullpipe measure --window W"}))
		}
	}
}

//go:build linux

package kernel

import (
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestLinkCounters_MatchMeasuredBytes checks that the link's counters have every byte that measure counts, and little
// else.
func TestLinkCounters_MatchMeasuredBytes(t *testing.T) {
	for _, kind := range []string{"native", "iperf3"} {
		for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
			t.Run(kind+" "+string(d), func(t *testing.T) {
				t.Parallel()
				const bytes = 1 << 20
				m, series := harness.MeasureInLab(t, "rate=20mbit,rtt=10ms,queue=2MB", kind, d, "-n", fmt.Sprint(bytes))
				if m.Bytes != bytes && !(kind == "iperf3" && m.Bytes >= bytes && m.Bytes < bytes+128<<10) {
					t.Errorf("%d bytes of %d", m.Bytes, bytes)
				}
				extra := series[len(series)-1].Payload - m.Bytes - m.SpuriousBytes
				if extra < 0 || extra > 24<<10 {
					t.Errorf("the link carried %d bytes more than the %d that were measured and the %d retransmitted", extra, m.Bytes,
						m.SpuriousBytes)
				}
				// iperf3 starts its clock when it gets to it: on a busy machine after the first data.
				if !(m.GoodputBps > 0) || kind == "native" && m.GoodputBps > 20e6 {
					t.Errorf("%g bit/s over a link of 20 Mbit/s", m.GoodputBps)
				}
			})
		}
	}
}

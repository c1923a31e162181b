package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_WindowsOfFewSegments checks that a sender which fills only whole segments of a window, acknowledged in
// pairs, is limited by that window, and that the window allows at least what came.
func TestJudge_WindowsOfFewSegments(t *testing.T) {
	for _, window := range []int{2920, 4380, 5300, 8192} {
		for _, loop := range []int64{1, 50, 99} { // percent of the round trip
			for _, timestamps := range []bool{false, true} {
				x := transfer{bytes: 100 * window, bps: 50e6, rtt: 20 * ms, loop: 20 * ms * loop / 100, tapBeforeLine: loop == 1,
					timestamps: timestamps, window: window, ackEvery: 2, delayedAck: 40 * ms}
				g, _, _ := x.play(t)
				if g.Limiter != verdict.ReceiverWindow {
					t.Errorf("%s %s %v: %+v", g.Confidence, g.Limiter, g.Shares, x)
				} else if allows := evidenceOf(&g, verdict.CapturedWindowFull)["allows_bps"]; 1.01*allows < g.GoodputBps {
					t.Errorf("the window allows %.0f bit/s, %.0f came: %+v", allows, g.GoodputBps, x)
				}
			}
		}
	}
}

package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_SmallUnscaledWindows checks that window scaling is not the remedy for a window that it does not change, and
// that the evidence names the bound of a larger one.
func TestJudge_SmallUnscaledWindows(t *testing.T) {
	for window, want := range map[int]string{17520: verdict.Fixed, 8192: verdict.Fixed, 2920: verdict.Fixed,
		32768: verdict.Fixed, 64240: verdict.Unscaled, 65535: verdict.Unscaled} {
		const rtt = 50 * ms
		x := newTape(rtt, 0)
		x.all[1].Options &^= flow.HasScale
		x.all[1].Window = uint16(window)
		for round := range 40 {
			for at := 0; at+1460 <= window; at += 1460 {
				x.data((100+51*int64(round))*ms+int64(at), round*(window/1460*1460)+at, 1460, 0)
			}
			x.ack((100+51*int64(round))*ms+rtt, (round+1)*(window/1460*1460), 0)
			x.all[len(x.all)-1].Window = uint16(window)
		}
		g, _ := x.judge(t)
		bounded := has(&g, verdict.CapturedUnscaled)
		if g.Limiter != verdict.ReceiverWindow || g.Subtype != want || bounded != (want == verdict.Fixed) {
			t.Errorf("%d bytes: %s %s (%s) %v", window, g.Confidence, g.Limiter, g.Subtype, g.Evidence)
		}
	}
}

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

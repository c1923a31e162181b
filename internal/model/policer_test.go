package model

import (
	"math"
	"testing"
	"time"
)

// policedGoodput returns the goodput of a window behind a policer over its rate, computed round trip by round trip.
// Segments without tokens are dropped and reduce the window.
func policedGoodput(rateBps float64, rtt time.Duration, mss int, control string, bucket float64) float64 {
	const rounds = 200_000
	perRound := BDP(rateBps, rtt) / float64(mss)
	full := bucket / float64(mss)
	tokens := full
	window := perRound
	most := window
	reduced := 0
	passed := 0.0
	for i := range rounds {
		tokens = math.Min(tokens+perRound, full+perRound)
		sent := math.Min(window, tokens)
		tokens -= sent
		passed += sent
		beta := renoBeta
		if control == "cubic" {
			beta = CubicBeta
		}
		if sent < window {
			most = window
			window *= beta
			reduced = i
			continue
		}
		window += renoIncrease
		if control == "cubic" {
			friendly := most*beta + 3*(1-beta)/(1+beta)*float64(i-reduced)
			window = math.Max(friendly, CubicWindow(most, time.Duration(i-reduced)*rtt))
		}
	}
	return passed / perRound / rounds
}

// TestPolicerBucket checks that the bucket keeps the rate, and that a tenth of it does not.
func TestPolicerBucket(t *testing.T) {
	for _, c := range []struct {
		bps float64
		rtt time.Duration
	}{{50e6, 30 * time.Millisecond}, {10e6, 100 * time.Millisecond}, {200e6, 100 * time.Millisecond},
		{1e9, 10 * time.Millisecond}, {5e6, 250 * time.Millisecond}} {
		for _, control := range []string{"reno", "cubic"} {
			needed := PolicerBucket(c.bps, c.rtt, 1448, control)
			if got := policedGoodput(c.bps, c.rtt, 1448, control, needed); got < 0.97 {
				t.Errorf("%.0f Mbit/s, %v, %s: %.0f bytes give %.3f of the rate", c.bps/1e6, c.rtt, control, needed, got)
			}
			if got := policedGoodput(c.bps, c.rtt, 1448, control, needed/10); got > 0.95 {
				t.Errorf("%.0f Mbit/s, %v, %s: a tenth of %.0f bytes gives %.3f", c.bps/1e6, c.rtt, control, needed, got)
			}
		}
	}
	if got := PolicerBucket(50e6, 30*time.Millisecond, 1448, "bbr"); got != 0 {
		t.Errorf("bbr: %.0f", got)
	}
}

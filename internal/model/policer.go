package model

import (
	"math"
	"time"
)

// Constants of Reno's congestion avoidance (RFC 5681 sections 3.1 and 3.2).
const (
	renoIncrease = 1.0 // segments a round trip
	renoBeta     = 0.5
)

// PolicerBucket returns the bytes of a policer's bucket with which one connection of Reno or CUBIC keeps the policed
// rate in the long run; 0 for other controls. The bucket takes the bytes that the window is above the BDP until the
// next loss, and fills again while the window is below it. A smaller one overflows then: part of the rate is lost.
func PolicerBucket(rateBps float64, rtt time.Duration, mss int, control string) float64 {
	bdp := BDP(rateBps, rtt) / float64(mss)
	switch control {
	case "reno":
		return float64(mss) * aimdExcess(bdp, renoIncrease, renoBeta)
	case "cubic":
		friendly := aimdExcess(bdp, 3*(1-CubicBeta)/(1+CubicBeta), CubicBeta) // RFC 9438 section 4.3
		return float64(mss) * math.Min(friendly, cubicExcess(bdp, rtt))
	}
	return 0
}

// aimdExcess returns the segments above bdp in one period of a window that is reduced to beta, grows by increase
// segments a round trip, and is bdp segments on average.
func aimdExcess(bdp, increase, beta float64) float64 {
	above := bdp * (1 - beta) / (1 + beta)
	return above * above / (2 * increase)
}

// cubicExcess returns the segments above bdp in one period of CUBIC's window, which is bdp segments on average.
func cubicExcess(bdp float64, rtt time.Duration) float64 {
	const below = (1 - CubicBeta) / 4 // share by which the average is below the largest window
	above := bdp * below / (1 - below)
	lasts := math.Cbrt(above / CubicC)
	return 0.75 * above * lasts / rtt.Seconds()
}

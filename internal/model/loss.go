package model

import (
	"math"
	"time"
)

// Mathis returns Reno's goodput in bit/s at random loss ratio p: MSS/RTT × √(3/2)/√p (Mathis, Semke, Mahdavi, Ott
// 1997). Each segment opens the window, as Linux counts bytes (RFC 3465). Without loss it returns infinity.
func Mathis(mss int, rtt time.Duration, p float64) float64 {
	if p <= 0 || rtt <= 0 {
		return math.Inf(1)
	}
	return perRoundTrip(math.Sqrt(1.5/p), mss, rtt)
}

// PFTK returns Reno's goodput in bit/s with timeouts (Padhye, Firoiu, Towsley, Kurose 1998, equation 32, b = 1).
// most is the window limit in bytes, rto the first retransmission timeout.
func PFTK(mss int, rtt, rto time.Duration, p float64, most int) float64 {
	bound := Rate(most, rtt)
	if p <= 0 || rtt <= 0 {
		return bound
	}
	fast := rtt.Seconds() * math.Sqrt(2*p/3)
	slow := rto.Seconds() * min(1, 3*math.Sqrt(3*p/8)) * p * (1 + 32*p*p)
	return min(bound, float64(8*mss)/(fast+slow))
}

// CUBIC's constants (RFC 9438 sections 4.1.1 and 4.6).
const (
	CubicC    = 0.4 // segments/s³
	CubicBeta = 0.7
)

// Cubic returns CUBIC's goodput in bit/s at random loss ratio p: the larger of its own mean window (RFC 9438
// section 5.1, equation 5) and Reno's (section 4.3).
func Cubic(mss int, rtt time.Duration, p float64) float64 {
	if p <= 0 || rtt <= 0 {
		return math.Inf(1)
	}
	window := math.Pow(CubicC*(3+CubicBeta)/(4*(1-CubicBeta)), 0.25) * math.Pow(rtt.Seconds()/p, 0.75)
	return max(perRoundTrip(window, mss, rtt), Mathis(mss, rtt, p))
}

// CubicWindow returns CUBIC's window in segments at time t after a reduction from most to CubicBeta × most segments
// (RFC 9438 section 4.2, figures 1 and 2).
func CubicWindow(most float64, t time.Duration) float64 {
	k := math.Cbrt(most * (1 - CubicBeta) / CubicC)
	return CubicC*math.Pow(t.Seconds()-k, 3) + most
}

// bbrTolerates is the loss ratio up to which BBR keeps its rate: probing at 1.25 times its estimate still delivers
// that estimate (Cardwell et al. 2016, pacing gain 5/4).
const bbrTolerates = 0.2

// BBR returns the goodput in bit/s of BBR version 1 at loss ratio p on a path that carries capacityBps. It keeps
// its rate up to 20 % loss. Above, each probe delivers less than the previous one and the rate collapses.
func BBR(capacityBps, p float64) float64 {
	if p >= bbrTolerates {
		return 0
	}
	return capacityBps * (1 - p)
}

func perRoundTrip(segments float64, mss int, rtt time.Duration) float64 {
	return segments * float64(8*mss) / rtt.Seconds()
}
